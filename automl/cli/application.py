"""Joins the verbs into one program and turns every error into one message and an exit code."""

import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Annotated

import typer

from automl import __version__
from automl.errors import AutomlError

__all__ = ["VERBS", "application", "run"]

VERBS: Mapping[str, tuple[str, str]] = {
    "search": (
        "automl.cli.search",
        "Search for the best network and hyperparameters; a study that exists is continued.",
    ),
    "resume": ("automl.cli.search", "Go on with a study by its name, on this or another machine."),
    "enqueue": ("automl.cli.queue", "Queue configurations for a study to try; the search completes what is left open."),
    "retry": ("automl.cli.queue", "Try the configurations of failed trials again, and go on with the study."),
    "import": ("automl.cli.queue", "Give a study the results of another study or of a file to learn from."),
    "stop": ("automl.cli.stop", "End the search of a study on every machine, after the running epochs."),
    "status": (
        "automl.cli.studies",
        "Say how the studies of a storage stand, or one of them with its unfinished trials.",
    ),
    "show": ("automl.cli.studies", "Show one trial, or all trials of a study in a table."),
    "best": ("automl.cli.studies", "Print the best complete trials of a study."),
    "report": ("automl.cli.report", "Write one self-contained HTML page with what the study has found."),
    "export": ("automl.cli.export", "Write all trials of a study as CSV, JSON or parquet."),
    "simulate": (
        "automl.cli.simulate",
        "Try samplers and pruners on a table of trainings, or pruners on a finished study, without training anything.",
    ),
    "storage": ("automl.cli.storage", "Bring the tables of a database to the form that this version needs."),
    "doctor": ("automl.cli.doctor", "Look at what a search needs on this machine, and say what is wrong."),
    "spaces": ("automl.cli.spaces", "List the search spaces, show one, or check one of your own."),
    "space": ("automl.cli.space", "Compare the search space of a study with the one that it has stored."),
}
"""Verb -> the module that defines a function, or a group of commands, of that name, and what it does.

A verb that Python keeps for itself has an underscore behind the function's name.
"""


def application(arguments: Sequence[str]) -> typer.Typer:
    """The program with all its verbs; only those among the arguments are imported, so that `--help` answers at once."""
    app = typer.Typer(
        name="automl",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_HELP_FLAGS,
    )
    app.callback()(_program)
    for verb, (module, text) in VERBS.items():
        name = f"{verb}_" if iskeyword(verb) else verb
        command = getattr(import_module(module), name) if verb in arguments else _stand_in
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=verb, short_help=text, context_settings=_HELP_FLAGS)
        else:
            app.command(verb, short_help=text, context_settings=_HELP_FLAGS)(command)
    return app


_HELP_FLAGS = {"help_option_names": ["-h", "--help"]}


def _stand_in() -> None:
    """Stands in the list of verbs for one that is not among the arguments."""


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"automl {__version__}")
        raise typer.Exit


def _program(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug messages.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Search hyperparameters and neural architectures.

    `automl search --space nas_small` is all that is needed for a first try.
    """
    from automl.log import configure

    configure(debug=debug)


_INTERRUPTED = "interrupted before any trial was started"


def run(arguments: Sequence[str]) -> int:
    """Run the program with these arguments and return its exit code."""
    if not arguments:
        return run(["--help"]) or 2
    debug = "--debug" in arguments
    # `--debug` may stand anywhere, as people add it to the end of the command that went wrong.
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        code = application(rest)([*(["--debug"] if debug else []), *rest], standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        return _say(error.format_message(), error.exit_code, debug)
    except typer.Exit as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _say(_INTERRUPTED, 130, debug)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _say(_INTERRUPTED, 130, debug)
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
    from search_spaces.errors import SpaceRuleError
    from studies.errors import CheckpointStoreError, StorageFullError, StudyError
    from trainers.errors import BadDataError

    if isinstance(error, AutomlError):
        return error.exit_code
    if isinstance(error, StorageFullError | CheckpointStoreError):
        return 1
    return 2 if isinstance(error, StudyError | BadDataError | SpaceRuleError) else 1


def _message(error: Exception) -> str:
    from search_spaces.errors import SpaceRuleError
    from studies.errors import StudyError
    from trainers.errors import TrialError

    if isinstance(error, AutomlError | StudyError | TrialError | SpaceRuleError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}\nThis should not happen; --debug shows where it did."
