"""`automl doctor`."""

from typing import Annotated

import typer

from automl.cli.options import JsonOption

__all__ = ["doctor"]


def doctor(
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Remove sessions of automl's own Ray clusters that nobody has used for a day, nothing else."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Look at what a search needs on this machine, and say what is wrong.

    Exit code 0: all is well; 1: something is wrong, and what to do is said.
    """
    from automl.cli.documents import print_json
    from automl.doctor import clean as remove_old_sessions
    from automl.doctor import examine

    cleaned = [remove_old_sessions()] if clean else []
    checks = [*cleaned, *examine()]
    if as_json:
        print_json(
            {
                "is_well": not any(check.problems for check in checks),
                "checks": [
                    {"topic": check.topic, "text": check.text, "problems": check.problems, "facts": check.facts}
                    for check in checks
                ],
            }
        )
    else:
        for check in checks:
            typer.echo(f"{check.topic}: {check.text}")
            for problem in check.problems:
                typer.echo(f"  wrong: {problem}")
    return 1 if any(check.problems for check in checks) else 0
