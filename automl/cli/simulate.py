"""`automl simulate`: what samplers and pruners would do, on a table, a function, or the curves of a finished study."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from automl.cli.options import JsonOption, StorageOption
from automl.cli.simulate_answer import Answer, tell

if TYPE_CHECKING:
    from automl.simulation.problems import Problem
    from trainers.config import Direction

__all__ = ["simulate"]

_USUAL_SAMPLERS = "random,tpe"
_USUAL_RULES = "median,asha,asha_promote"
_USUAL_TRIALS = 100
_USUAL_REPEATS = 20
_USUAL_EPOCHS = 9
_ONLY_TABLE = ("space", "sampler", "metric", "direction", "trials", "seconds", "repeats", "seed", "missing")
_log = logging.getLogger(__name__)


def simulate(
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            help="A .csv, .tsv or .parquet file with a column for each parameter, the objective, and maybe epoch, "
            "seconds and seed; or a .py file with curve(configuration, seed).",
            metavar="FILE",
        ),
    ] = None,
    study: Annotated[
        str | None, typer.Option("--study", help="A study whose curves other pruners shall judge.", metavar="NAME")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option("--space", help="What is searched. Default: the values that the table holds.", metavar="NAME"),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            help="Samplers to compare, with commas; a setting behind a colon: evolution:population_size=20. "
            "Default: random,tpe.",
            metavar="A,B",
        ),
    ] = None,
    pruner: Annotated[
        str | None,
        typer.Option(
            "--pruner",
            help="Pruners to compare, likewise. Default: none,asha_promote where there are epochs.",
            metavar="P,Q",
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Trainings at the same time.", metavar="N", min=1)] = 1,
    trials: Annotated[
        int | None, typer.Option("--trials", help="Trainings of a search. Default: 100.", metavar="N", min=1)
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Simulated time of a search.", metavar="SECONDS", min=0)
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", help="Searches with each method. Default: 20.", metavar="N", min=1)
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of the first search. Default: 0.", metavar="N", min=0)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", help="Epochs of a full training. Default: all.", metavar="N", min=1)
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Column of the objective. Default: value.", metavar="NAME")
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            "--direction",
            help="Which objectives are better. Default: what the metric's name says, else minimize.",
            metavar="maximize|minimize",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            "--missing",
            help="A configuration that the table lacks is taken for the nearest one in it, or refused. "
            "Default: nearest.",
            metavar="nearest|refuse",
        ),
    ] = None,
    resume_seconds: Annotated[
        float,
        typer.Option("--resume-seconds", help="What going on with a paused trial takes.", metavar="SECONDS", min=0),
    ] = 0.0,
    storage: StorageOption = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="HTML page to draw the comparison on.", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Try samplers and pruners on a table of trainings, or pruners on a finished study, without training anything."""
    given = {
        "table": table, "study": study, "space": space, "sampler": sampler, "pruner": pruner, "workers": workers,
        "trials": trials, "seconds": seconds, "repeats": repeats, "seed": seed, "epochs": epochs, "metric": metric,
        "direction": direction, "missing": missing, "resume_s": resume_seconds, "storage": storage,
    }  # fmt: skip
    _check_options(given)
    answer = _compared(given, as_json) if study is None else _replayed(given)
    tell(answer, plot, as_json)
    return 0 if answer.has_result else 3


def _check_options(given: Mapping[str, Any]) -> None:
    """Refuse what does not go together.

    Raises:
        InvalidSpecError: with every mistake.
    """
    from automl.errors import InvalidSpecError

    problems = []
    if (given["table"] is None) == (given["study"] is None):
        problems.append("give one of both: --table FILE with trainings, or --study NAME whose curves are judged anew")
    elif given["study"] is not None:
        for name in _ONLY_TABLE:
            if given[name] is not None:
                problems.append(f"{name}: is for --table; a study is judged as it was searched")
    for name, allowed in (("direction", ("maximize", "minimize")), ("missing", ("nearest", "refuse"))):
        if given[name] is not None and given[name] not in allowed:
            problems.append(f"{name}: {given[name]!r} is neither {allowed[0]} nor {allowed[1]}")
    if problems:
        raise InvalidSpecError(problems, "the command line")


def _compared(given: Mapping[str, Any], as_json: bool) -> Answer:
    """Search a table or a function with each of the methods."""
    from automl.cli.simulate_words import comparison_facts, comparison_lines
    from automl.simulation.comparison import Budget, compare
    from automl.simulation.methods import methods_named
    from search_spaces.own_code import prints_aside

    with prints_aside(as_json):
        problem = _problem(given)
        samplers = given["sampler"] or _USUAL_SAMPLERS
        pruners = given["pruner"] or ("none,asha_promote" if problem.epochs > 1 else "none")
        methods = methods_named(samplers, pruners, problem.direction, problem.epochs)
        has_budget = given["trials"] is not None or given["seconds"] is not None
        budget = Budget(
            workers=given["workers"],
            trials=given["trials"] if has_budget else _USUAL_TRIALS,
            seconds=math.inf if given["seconds"] is None else given["seconds"],
            resume_s=given["resume_s"],
        )
        first = given["seed"] or 0
        seeds = range(first, first + (given["repeats"] or _USUAL_REPEATS))
        found = compare(problem, methods, budget, seeds, lambda one: _log.info("simulated %s", one.name))
    return Answer(
        title=problem.name,
        metric=problem.metric,
        lines=comparison_lines(problem, budget, seeds, found),
        facts=comparison_facts(problem, budget, seeds, found),
        courses={one.method.name: one.courses for one in found},
        has_result=any(course.best is not None for one in found for course in one.courses),
    )


def _problem(given: Mapping[str, Any]) -> "Problem":
    from automl.cli.spaces import loaded
    from automl.simulation.functions import problem_of_function
    from automl.simulation.tables import problem_of_table
    from search_spaces.own_files import is_python_file

    path: Path = given["table"]
    epochs: int | None = given["epochs"]
    direction: Direction | None = given["direction"]
    if is_python_file(path.name):
        space = loaded(given["space"] or str(path))
        full = _USUAL_EPOCHS if epochs is None else epochs
        return problem_of_function(path, space, epochs=full, metric=given["metric"], direction=direction)
    missing: Literal["nearest", "refuse"] = given["missing"] or "nearest"
    return problem_of_table(
        path,
        space=None if given["space"] is None else loaded(given["space"]),
        metric=given["metric"],
        direction=direction,
        epochs=epochs,
        missing=missing,
    )


def _replayed(given: Mapping[str, Any]) -> Answer:
    """Let each of the rules judge a study anew.

    Raises:
        StudyNotFoundError: there is none of that name.
        InvalidSpecError: it has nothing to judge, or a rule cannot be.
    """
    from automl.cli.replay_words import replay_facts, replay_lines
    from automl.errors import InvalidSpecError
    from automl.lookup import find_study
    from automl.simulation.methods import pruners_named
    from automl.simulation.replay import record_of, replay

    name = given["study"]
    study = find_study(name, given["storage"]).study
    record = record_of(study, given["epochs"])
    if not record.trials:
        raise InvalidSpecError(["it has no trial with a report yet"], f"study '{name}'")
    found = []
    for rule in pruners_named(given["pruner"] or _USUAL_RULES, record.direction, record.epochs):
        pruner = rule.make_pruner(record.direction, record.epochs)
        found.append((rule.pruner, replay(record, pruner, workers=given["workers"], resume_s=given["resume_s"])))
    metric = str(study.specification.get("metric", "value"))
    return Answer(
        title=name,
        metric=metric,
        lines=replay_lines(name, metric, record, found),
        facts=replay_facts(name, metric, record, found),
        courses={rule: (one.course,) for rule, one in found},
        has_result=True,
    )
