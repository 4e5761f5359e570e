"""`automl spaces score`: which random networks of a space look promising before any of them is trained."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from automl.cli.options import DATA_FIELDS, JsonOption, given_fields, with_fields

if TYPE_CHECKING:
    from automl.spec import SearchSpec
    from search_spaces.configuration import Configuration
    from search_spaces.scores import Score
    from search_spaces.space import SearchSpace

__all__ = ["score"]

USUAL_SCORES = "synflow,naswot"
"""Those that order networks best, besides the plain number of weights (benchmarks/RESULTS.md)."""
BATCH_ITEMS = 64
"""Training items that networks are scored on; naswot tells more items apart the more ReLUs there are."""
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
    by each score. Nothing is trained or stored.
    """
    from automl.errors import NothingCompletedError
    from search_spaces.strict_json import strict_json

    names = list(dict.fromkeys(scores.split(",")))
    spec = _spec({"space": name, "seed": seed, **given_fields(options)}, names)
    ranked = _ranked(list(_scored(spec, names, configurations)), names)
    if not ranked:
        raise NothingCompletedError(
            f"no network of space '{spec.space}' that was drawn can be built for data '{spec.data.source}'; "
            f"`automl spaces check {spec.space}` tells why"
        )
    typer.echo(strict_json([_facts(*each) for each in ranked], indent=2) if as_json else _in_words(ranked, names))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One network: its configuration, the parameters that make its architecture, and its scores."""

    configuration: "Configuration"
    architecture: Sequence[str]
    scores: "Mapping[str, Score]"


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


def _scored(spec: "SearchSpec", names: Sequence[str], wanted: int) -> Iterator[_Row]:
    """Draw networks that differ from each other and can be built, and score them."""
    from search_spaces.errors import InfeasibleArchitectureError
    from trainers.network_scores import network_scores, scored_batch

    space, trainer = spec.search_space, spec.make_trainer()
    problem = trainer.drafts(spec.space, trainer.load(spec.data)).problem
    batch = scored_batch(problem, BATCH_ITEMS, spec.seed)
    count = 0
    for configuration, architecture in _different(space, spec.seed, MOST_DRAWS * wanted):
        try:
            found = network_scores(spec.space, configuration, problem, batch, names, seed=spec.seed)
        except InfeasibleArchitectureError:
            continue
        yield _Row(configuration=configuration, architecture=architecture, scores=found)
        count += 1
        if count == wanted:
            return


def _different(space: "SearchSpace", seed: int, draws: int) -> "Iterator[tuple[Configuration, tuple[str, ...]]]":
    """Draw configurations that are not refused, each network once, with the names of what makes its architecture."""
    import numpy as np

    training = set(space.names("training"))
    rng, seen = np.random.default_rng(seed), set()
    for _ in range(draws):
        configuration = space.sample(rng)
        if space.refusal(configuration) is not None:
            continue
        canonical = space.canonical(configuration)
        key = tuple((name, value) for name, value in canonical.items() if name not in training)
        if key not in seen:
            seen.add(key)
            yield configuration, tuple(name for name in configuration if name not in training)


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
