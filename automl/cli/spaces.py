"""`automl spaces`."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from automl.cli.options import JsonOption
from automl.cli.tables import table
from search_spaces.parameters import Categorical, Parameter

if TYPE_CHECKING:
    from search_spaces.space import SearchSpace

__all__ = ["loaded", "spaces"]


def spaces(
    name: Annotated[str | None, typer.Argument(help="A space; default: a list of all.", metavar="[NAME]")] = None,
    as_json: JsonOption = False,
) -> int:
    """List the search spaces, or the parameters of one."""
    return _list(as_json) if name is None else _describe(name, as_json)


def loaded(name: str, study: str | None = None) -> "SearchSpace":
    """The space of a name that was given in the command, or that a study has stored.

    Raises:
        InvalidSpecError: there is none, or it cannot be used.
    """
    from automl.errors import InvalidSpecError
    from search_spaces import catalog
    from search_spaces.discovery import PluginImportError
    from search_spaces.errors import InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError

    try:
        return catalog.load(name, has_networks=False).SPACE
    except (UnknownSearchSpaceError, SpaceNameClashError, InvalidSpaceError, PluginImportError) as error:
        raise InvalidSpecError([str(error)], "the command line" if study is None else f"study '{study}'") from error


def _list(as_json: bool) -> int:
    from search_spaces import catalog

    found = [catalog.load(name).SPACE for name in catalog.available()]
    if as_json:
        typer.echo(
            json.dumps(
                [{"name": s.name, "task": s.task, "size": s.size(), "description": s.description} for s in found],
                indent=2,
            )
        )
        return 0
    rows = [(space.name, space.task, len(space.parameters), space.description) for space in found]
    for line in table(("space", "task", "parameters", "description"), rows):
        typer.echo(line)
    return 0


def _describe(name: str, as_json: bool) -> int:
    space = loaded(name)
    if as_json:
        typer.echo(json.dumps({**space.to_json(), "size": space.size()}, indent=2))
        return 0
    typer.echo(f"{space.name}: {space.description}")
    rows = [(key, parameter.role, _values(parameter)) for key, parameter in space.parameters.items()]
    for line in table(("parameter", "role", "values"), rows):
        typer.echo(line)
    return 0


def _values(parameter: Parameter) -> str:
    """What a parameter may be, as a person writes it: `adam | sgd`, `0.001 to 0.1 (log)`, `8 to 32 in steps of 8`."""
    if isinstance(parameter, Categorical):
        return " | ".join(map(str, parameter.choices))
    scale = " (log)" if parameter.log else ""
    step = f" in steps of {parameter.step:g}" if parameter.step not in (None, 1) else ""
    return f"{parameter.low:g} to {parameter.high:g}{step}{scale}"
