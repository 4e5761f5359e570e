"""`automl storage upgrade`: brings the tables of a database to the form that this version needs."""

from typing import Annotated

import typer

__all__ = ["storage"]

storage = typer.Typer(help="Bring the tables of a database to the form that this version needs.", rich_markup_mode=None)


@storage.command("upgrade")
def upgrade(
    url: Annotated[
        str | None, typer.Option("--storage", help="Database URL. Default: AUTOML_STORAGE.", metavar="URL")
    ] = None,
) -> int:
    """Bring the tables of a database, Optuna's and ours, to the form that this version needs.

    End the programs that use it first: older ones cannot go on with it. A SQLite file is copied beside itself before
    anything is changed; of a server, make a backup by its own tools. Missing tables are made.
    """
    from automl.env import default_storage
    from studies.storage import Storage

    with Storage(url or default_storage()) as opened:
        result = opened.upgrade()
        if result.copy is not None:
            typer.echo(f"kept a copy: {result.copy}")
        for change in result.done:
            typer.echo(f"{opened.url}: {change}")
        if not result.done:
            typer.echo(f"{opened.url}: nothing to do")
    return 0
