"""`automl spaces score`: which random networks of a space look promising before any of them is trained."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from automl.cli.options import DATA_FIELDS, JsonOption, given_fields, with_fields
from automl.cli.space_draws import Tried, check_refusal, drawn, tried

if TYPE_CHECKING:
    from automl.spec import SearchSpec
    from search_spaces.configuration import Configuration
    from search_spaces.scores import Score

__all__ = ["score"]

USUAL_SCORES = "synflow,naswot"
"""Those that order networks best, besides the plain number of weights (benchmarks/RESULTS.md)."""
MOST_DRAWS = 50
"""Draws for each network that is wanted, after which a space has no more that differ."""


@with_fields(("data", *DATA_FIELDS))
def score(
    name: Annotated[str, typer.Argument(help="A space by its name or file.", metavar="NAME")],
    scores: Annotated[
        str, typer.Option("--scores", help="Names of scores, with commas between them.", metavar="NAMES")
    ] = USUAL_SCORES,
    configurations: Annotated[
        int, typer.Option("--configurations", help="Random networks that are scored.", metavar="N", min=1)
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws, the items and the weights.", metavar="N")] = 0,
    as_json: JsonOption = False,
    **options: Any,
) -> int:
    """Score random networks of a space on one batch of data, untrained, and list them with the best first.

    Scores are synflow, naswot, jacob_cov, snip, gradient_norm and parameters. A network's rank is the mean of its ranks
    by each score. Those that cannot be built are left out, and told. Nothing is trained or stored.
    """
    from automl.errors import NothingCompletedError
    from search_spaces.own_code import prints_aside
    from search_spaces.strict_json import strict_json

    names = list(dict.fromkeys(scores.split(",")))
    with prints_aside(as_json):
        spec = _spec({"space": name, "seed": seed, **given_fields(options)}, names)
        found = _scored(spec, names, configurations)
    left_out = _left_out(found)
    if not found.made:
        raise NothingCompletedError(
            f"no network of space '{spec.space}' that was drawn can be built for data '{spec.data.source}': "
            f"{left_out}; `automl spaces check {spec.space}` tells more"
        )
    if left_out is not None:
        typer.echo(f"note: {left_out}", err=True)
    ranked = _ranked(_rows(spec, found), names)
    typer.echo(strict_json([_facts(*each) for each in ranked], indent=2) if as_json else _in_words(ranked, names))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One network: its configuration, the parameters that make its architecture, and its scores."""

    configuration: "Configuration"
    architecture: Sequence[str]
    scores: "Mapping[str, Score]"


def _rows(spec: "SearchSpec", found: Tried["Mapping[str, Score]"]) -> Sequence[_Row]:
    training = set(spec.search_space.names("training"))
    return [
        _Row(configuration=each, architecture=[name for name in each if name not in training], scores=scores)
        for each, scores in found.made
    ]


def _spec(fields: Mapping[str, object], names: Sequence[str]) -> "SearchSpec":
    """Check all that was given, as a search would.

    Raises:
        InvalidSpecError: with every mistake.
    """
    from automl.errors import InvalidSpecError
    from automl.spec import SearchSpec
    from search_spaces.scores import UnknownScoreError, check_names

    problems: list[str] = []
    try:
        check_names(names)
    except UnknownScoreError as error:
        problems.append(f"scores: {error}")
    try:
        spec = SearchSpec.from_mapping(fields, "the command line")
    except InvalidSpecError as error:
        raise InvalidSpecError([*error.problems, *problems], "the command line") from None
    if not spec.make_trainer().has_networks:
        problems.append(f"space: '{spec.space}' builds no networks that could be scored; its own code does")
    if problems:
        raise InvalidSpecError(problems, "the command line")
    return spec


def _scored(spec: "SearchSpec", names: Sequence[str], wanted: int) -> Tried["Mapping[str, Score]"]:
    """Draw networks that differ from each other, and score those that can be built."""
    from automl.network_promise import BATCH_ITEMS
    from trainers.network_scores import network_scores, scored_batch

    space, trainer = spec.search_space, spec.make_trainer()
    problem = trainer.drafts(spec.space, trainer.load(spec.data)).problem
    batch = scored_batch(problem, BATCH_ITEMS, spec.seed)
    training = set(space.names("training"))

    def scores_of(configuration: "Configuration") -> "Mapping[str, Score]":
        check_refusal(space, configuration)
        return network_scores(spec.space, configuration, problem, batch, names, seed=spec.seed)

    def architecture(configuration: "Configuration") -> Hashable:
        canonical = space.canonical(configuration)
        return tuple((name, value) for name, value in canonical.items() if name not in training)

    draws = islice(drawn(space, spec.seed), MOST_DRAWS * wanted)
    return tried(draws, scores_of, wanted=wanted, key=architecture)


def _left_out(found: Tried["Mapping[str, Score]"]) -> str | None:
    """How many networks have no scores, and why the first of them has none; None: all have."""
    reasons = [*found.faults_in_words(), *found.infeasible]
    if not reasons:
        return None
    return (
        f"{found.total - len(found.made)} of {found.total} networks cannot be built or scored; one reason: {reasons[0]}"
    )


def _ranked(rows: Sequence[_Row], names: Sequence[str]) -> Sequence[tuple[float, _Row]]:
    """Each row with its mean rank, 1 being the best, in their order."""
    values = {name: [row.scores[name].value for row in rows] for name in names}
    ranks = [sum(_rank(row.scores[name].value, values[name]) for name in names) / len(names) for row in rows]
    return sorted(zip(ranks, rows, strict=True), key=lambda ranked: ranked[0])


def _rank(value: float, values: Sequence[float]) -> float:
    """The place of a value, the largest being 1; equal ones share the mean of their places."""
    better, equal = sum(other > value for other in values), sum(other == value for other in values)
    return better + (equal + 1) / 2


def _facts(rank: float, row: _Row) -> dict[str, Any]:
    return {
        "rank": rank,
        "scores": {name: found.value for name, found in row.scores.items()},
        "reasons": [found.reason for found in row.scores.values() if found.reason is not None],
        "configuration": row.configuration.as_dict(),
    }


def _in_words(ranked: Sequence[tuple[float, _Row]], names: Sequence[str]) -> str:
    from automl.cli.tables import number, table

    lines = [
        (
            rank,
            *(found.value if found.reason is None else None for found in row.scores.values()),
            " ".join(f"{name}={number(row.configuration[name])}" for name in row.architecture),
        )
        for rank, row in ranked
    ]
    reasons = {found.reason for _, row in ranked for found in row.scores.values() if found.reason is not None}
    notes = [f"no score: {reason}" for reason in sorted(reasons)]
    return "\n".join([*table(("rank", *names, "network"), lines), *notes])
