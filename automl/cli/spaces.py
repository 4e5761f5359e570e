"""`automl spaces`: lists the search spaces, shows one, and has commands that look into them."""

import json
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from automl.cli.options import JsonOption
from automl.cli.space_check import check
from automl.cli.space_draws import check_refusal, drawn, fault_in_words, tried
from automl.cli.space_scores import score
from automl.cli.space_words import NO_NETWORK, builds_or_trains, count_in_words, drawing, parameter_rows
from automl.cli.tables import table

if TYPE_CHECKING:
    from search_spaces.catalog import SpaceModule
    from search_spaces.space import SearchSpace

__all__ = ["loaded", "spaces"]

_USUAL = "show"
MOST_DRAWS = 100
"""Configurations of a space without defaults that are drawn until one is not refused."""


class _ShowByDefault(TyperGroup):
    """A word that is no command is the name of a space to show."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] != ["--help"] and args[:1] != ["-h"] and (not args or args[0] not in self.commands):
            args = [_USUAL, *args]
        return super().parse_args(ctx, args)


spaces = typer.Typer(
    cls=_ShowByDefault,
    help="List the search spaces, show one, or check one of your own. `automl spaces NAME` shows a space.",
    rich_markup_mode=None,
)
spaces.command("check")(check)
spaces.command("score")(score)


@spaces.command(_USUAL)
def show(
    name: Annotated[
        str | None, typer.Argument(help="A space by its name or file; default: a list of all.", metavar="[NAME]")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Data that the example network is built for.", metavar="DATA")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """List the search spaces, or show one: its parameters, how many there are, and what its default network costs."""
    return _list(as_json) if name is None else _describe(name, data, as_json)


def loaded(name: str, study: str | None = None) -> "SearchSpace":
    """The space of a name that was given in the command, or that a study has stored.

    Raises:
        InvalidSpecError: there is none, or it cannot be used.
    """
    return _module(name, "the command line" if study is None else f"study '{study}'").SPACE


def _module(name: str, origin: str) -> "SpaceModule":
    from automl.errors import InvalidSpecError
    from search_spaces import catalog
    from search_spaces.discovery import PluginImportError
    from search_spaces.errors import InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError

    try:
        return catalog.load(name, has_networks=False)
    except (UnknownSearchSpaceError, SpaceNameClashError, InvalidSpaceError, PluginImportError) as error:
        raise InvalidSpecError([str(error)], origin) from error


def _list(as_json: bool) -> int:
    from search_spaces import catalog

    modules = [catalog.load(name) for name in catalog.available()]
    found = [(module.SPACE, _counted(module)["different"]) for module in modules]
    if as_json:
        facts = [
            {
                "name": space.name,
                "task": space.task,
                "size": space.size(),
                "different": different,
                "has_defaults": space.defaults is not None,
                "description": space.description,
            }
            for space, different in found
        ]
        typer.echo(json.dumps(facts, indent=2))
        return 0
    rows = [
        (
            space.name,
            space.task,
            len(space.parameters),
            count_in_words(space.size()),
            count_in_words(different, none="-"),
            "yes" if space.defaults is not None else "no",
            space.description,
        )
        for space, different in found
    ]
    for line in table(("space", "task", "parameters", "size", "networks", "defaults", "description"), rows):
        typer.echo(line)
    return 0


def _describe(name: str, data: str | None, as_json: bool) -> int:
    from search_spaces.own_code import prints_aside

    with prints_aside(as_json):
        module = _module(name, "the command line")
        space, counted = module.SPACE, _counted(module)
        example = _example(name, module, data)
    if as_json:
        facts = {"size": space.size(), **counted, "notes": list(space.notes)}
        typer.echo(json.dumps({**space.to_json(), **facts, "example": example}, indent=2))
        return 0
    typer.echo(f"{space.name}: {space.description}" if space.description else space.name)
    for line in table(("parameter", "role", "values", "default", "condition"), parameter_rows(space)):
        typer.echo(line)
    counts = [f"{count_in_words(space.size())} configurations"]
    counts += [_count_in_words(fact, count) for fact, count in counted.items() if count is not None]
    typer.echo(f"\n{', '.join(counts)}; {f'task {space.task}' if builds_or_trains(module) else NO_NETWORK}")
    for note in space.notes:
        typer.echo(f"note: {note}")
    if example is not None:
        _print_example(example)
    return 0


def _counted(module: "SpaceModule") -> dict[str, int | None]:
    """How many networks differ, and what a module counts itself; it may count otherwise what differs.

    Raises:
        InvalidSpecError: the space's own code, which tells which are the same, fails.
    """
    from automl.errors import InvalidSpecError
    from search_spaces.own_code import OWN_CODE_ERRORS

    tell = getattr(module, "facts", dict)
    try:
        return {"different": module.SPACE.different(), **tell()}
    except OWN_CODE_ERRORS as error:
        problem = f"different networks cannot be counted: {fault_in_words(error)}"
        raise InvalidSpecError([problem], f"space '{module.SPACE.name}'") from error


def _count_in_words(fact: str, count: int) -> str:
    if fact == "different":
        return f"{count_in_words(count)} different networks"
    return f"{count:,} {fact.replace('_', ' ')}"


def _example(name: str, module: "SpaceModule", data: str | None) -> dict[str, Any] | None:
    """The default network and its costs; None: nobody knows what it would be fed, or the space builds none."""
    if not callable(getattr(module, "build_model", None)):
        return None
    from automl.cli.space_check import sample_for
    from search_spaces import catalog
    from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
    from trainers.space_trial import part_costs

    space, sample = module.SPACE, sample_for(name, data)
    if sample is None:
        return None
    asked = [space.defaults] if space.defaults is not None else islice(drawn(space, 0), MOST_DRAWS)
    found = tried(asked, partial(check_refusal, space), wanted=1)
    if not found.made:
        return {"data": sample.words, "problem": [*found.faults_in_words(), *found.infeasible][0]}
    configuration, _ = found.made[0]
    try:
        whole, parts = part_costs(name, configuration, sample)
    except OWN_CODE_ERRORS as error:  # its parameters can be shown all the same
        return {"data": sample.words, "problem": error_in_words(error)}
    declare = getattr(module, "costs", None)
    declared = {} if declare is None else declare(configuration, sample.input_shape, sample.num_outputs)
    graph = catalog.graph(module, configuration)
    return {
        "is_default": space.defaults is not None,
        "data": sample.words,
        "configuration": configuration.as_dict(),
        "parameters": whole.parameters,
        "declared_parameters": getattr(declared, "declared_parameters", None),
        "multiply_adds": whole.multiply_adds,
        "parts": [
            {"name": p.name, "kind": p.kind, "parameters": p.parameters, "multiply_adds": p.multiply_adds}
            for p in parts
        ],
        "cell": [] if graph is None else list(drawing(graph)),
    }


def _print_example(example: Mapping[str, Any]) -> None:
    if "problem" in example:
        typer.echo(f"\nno network for {example['data']} can be shown: {example['problem']}")
        return
    which = "the default network" if example["is_default"] else "a random network"
    typer.echo(f"\n{which} for {example['data']}:")
    rows = [(p["name"], p["kind"], f"{p['parameters']:,}", f"{p['multiply_adds']:,}") for p in example["parts"]]
    total = ("all", "", f"{example['parameters']:,}", f"{example['multiply_adds']:,}")
    for line in table(("part", "kind", "weights", "multiply-adds"), [*rows, total]):
        typer.echo(f"  {line}")
    declared = example["declared_parameters"]
    if declared is not None and declared != example["parameters"]:
        typer.echo(f"  with the weights of dead edges: {declared:,}")
    for line in example["cell"]:
        typer.echo(f"  {line}")
