"""Joins the verbs into one program and turns every error into one message and an exit code."""

import sys
import traceback
from collections.abc import Sequence

import click
import typer

from automl import __version__
from automl.cli import report, search, spaces, studies
from automl.errors import AutomlError

__all__ = ["app", "run"]

app = typer.Typer(
    name="automl",
    help="Search hyperparameters and neural architectures.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (search, studies, report, spaces):
    module.add_to(app)


@app.callback(invoke_without_command=True)
def _global_options(
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True),
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks and debug messages."),
) -> None:
    from automl.log import configure

    configure(debug=debug)
    if version:
        typer.echo(f"automl {__version__}")
        raise typer.Exit


def run(arguments: Sequence[str]) -> int:
    """Run the program with these arguments and return its exit code."""
    debug = "--debug" in arguments
    try:
        # `--debug` may stand anywhere, as people add it to the end of the command that went wrong.
        rest = [argument for argument in arguments if argument != "--debug"]
        code = app([*(["--debug"] if debug else []), *rest], standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _say(error.format_message(), 2, debug)
    except (click.Abort, KeyboardInterrupt):
        return _say("interrupted before anything was started", 130, debug)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left, as `automl ... | head` does
        return 1
    except Exception as error:
        return _say(_message(error), _exit_code(error), debug)


def _say(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"automl: {message}", file=sys.stderr)
    return code


def _exit_code(error: Exception) -> int:
    """2 for what a person can put right in the command, 1 for everything else."""
    from studies.errors import StorageFullError, StudyError
    from trainers.errors import BadDataError

    if isinstance(error, AutomlError):
        return error.exit_code
    if isinstance(error, StorageFullError):
        return 1
    return 2 if isinstance(error, StudyError | BadDataError) else 1


def _message(error: Exception) -> str:
    from studies.errors import StudyError
    from trainers.errors import TrialError

    if isinstance(error, AutomlError | StudyError | TrialError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}\nThis should not happen; --debug shows where it did."
