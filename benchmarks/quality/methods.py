"""Who searches: our samplers and pruners through the product's scheduler, and peers through their own programs."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np
import optuna

from automl.executors.simulated import Measure, Measured, simulate
from automl.pruners.base import Pruner
from automl.registry import pruner_class
from automl.samplers.base import Sampler
from automl.scheduler import Scheduler
from automl.simulation.methods import Method
from benchmarks.quality.tables import Problem
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.space import SearchSpace
from studies.trial import Trial

__all__ = ["PEERS", "Course", "Step", "course_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """A report: epochs or seconds spent so far, ended trainings so far, the regret of what is best by then."""

    spent: float
    ended: int
    regret: float


@dataclass(frozen=True, slots=True)
class Course:
    """How a search went, and the CPU seconds of a proposal."""

    steps: Sequence[Step]
    proposal_s: float

    def at_ended(self, count: int) -> float:
        """The regret once so many trainings have ended."""
        return next((step.regret for step in reversed(self.steps) if step.ended <= count), math.nan)

    def at_spent(self, budget: float) -> float:
        """The regret once so many epochs, or seconds, were spent."""
        return next((step.regret for step in reversed(self.steps) if step.spent <= budget), math.nan)


def course_of(
    problem: Problem, method: str, seed: int, *, trials: int | None = None, units: float | None = None, workers: int = 1
) -> Course:
    """Search a problem.

    Args:
        problem: what is searched.
        method: SAMPLER or SAMPLER+PRUNER of ours (with options: `evolution:population_size=20`), or the name of a
            peer likewise.
        seed: of the noise and the method.
        trials: trainings that may end; None: any number.
        units: of the problem's budget that may be spent; None: any number; for one worker.
        workers: trainings at the same time; peers have one.
    """
    sampler, _, pruner = method.partition("+")
    if sampler in PEERS:
        return _peer(problem, PEERS[sampler](seed), pruner, seed, trials, units)
    return _ours(problem, sampler, pruner or "none", seed, trials, units, workers)


# Ours


class _Timed(Sampler):
    """A sampler whose CPU time is taken."""

    def __init__(self, own: Sampler) -> None:
        super().__init__(own.direction)
        self.own, self.seconds, self.count = own, 0.0, 0

    def suggest(self, space: SearchSpace, trials: Sequence[Trial], rng: np.random.Generator) -> Configuration:
        began = time.process_time()
        configuration = self.own.suggest(space, trials, rng)
        self.seconds, self.count = self.seconds + time.process_time() - began, self.count + 1
        return configuration

    def may_repeat(self, trials: Sequence[Trial]) -> bool:
        return self.own.may_repeat(trials)


def _ours(
    problem: Problem, sampler: str, pruner: str, seed: int, trials: int | None, units: float | None, workers: int
) -> Course:
    timed = _Timed(Method(sampler=sampler, pruner=pruner).make_sampler("minimize"))
    scheduler = Scheduler(space=problem.space, sampler=timed, pruner=_pruner(pruner, problem.epochs), seed=seed)
    seconds = math.inf if units is None else units * problem.unit
    measure = problem.measure(seed) if units is None else _paid(problem, seed)
    found = simulate(scheduler, measure, workers=workers, trials=trials, seconds=seconds)
    steps = _steps(
        problem,
        [
            (found.trials[one.number].configuration, one.epoch, one.value, one.state.is_ended, one.time_s)
            for one in found.happenings
            if one.value is not None
        ],
        averages="repeat_from" in sampler,
    )
    return Course(steps, timed.seconds / max(1, timed.count))


def _paid(problem: Problem, seed: int) -> Measure:
    """Trainings whose seconds are what a budget pays for: their own, or one for each epoch."""
    measure = problem.measure(seed)
    if problem.pays_seconds:
        return measure
    return lambda configuration, number, epoch: Measured(measure(configuration, number, epoch).value)


def _pruner(name: str, epochs: int) -> Pruner:
    made = pruner_class(name)
    has_rungs = name.startswith("asha") or name == "pasha"
    return made("minimize", epochs, **({"min_epochs": min(3, max(1, epochs - 1))} if has_rungs else {}))


_Report: TypeAlias = tuple[Mapping[str, object], int, float, bool, float]
"""Configuration, epoch, loss, whether the training has ended, and what was spent in all."""


def _steps(problem: Problem, reports: Sequence[_Report], *, averages: bool = False) -> list[Step]:
    """The regret of what looked best so far, after each report that counts.

    Args:
        problem: tells the regret.
        reports: in order.
        averages: whether the best is the one with the best mean, once there is one that was trained several times.
    """
    steps: list[Step] = []
    best, regret, ended = math.inf, math.nan, 0
    ends: dict[Configuration, list[float]] = {}
    for given, epoch, value, is_end, spent in reports:
        configuration = Configuration(given)  # type: ignore[arg-type]
        if value < best and epoch >= problem.counted_from:
            best, regret = value, problem.regret(configuration, value)
        ended += is_end
        if averages and is_end:
            ends.setdefault(configuration, []).append(value)
            means = {each: fmean(values) for each, values in ends.items() if len(values) > 1}
            if means:
                regret = problem.regret(min(means, key=lambda each: means[each]), min(means.values()))
        steps.append(Step(spent, ended, regret))
    return steps


# Peers


class _AgingEvolution:
    """Regularized evolution as in the paper's algorithm 1: population 20, tournament 10, one mutation."""

    population, tournament = 20, 10

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def propose(self, space: SearchSpace, history: Sequence[tuple[Configuration, float]]) -> Configuration:
        if len(history) < self.population:
            return space.sample(self.rng)
        alive = history[-self.population :]
        chosen = self.rng.choice(self.population, size=self.tournament, replace=False)
        parent, _ = min((alive[at] for at in chosen), key=lambda known: known[1])
        return space.mutate(parent, self.rng)


class _LocalSearch:
    """Hill climbing as in White et al. 2020 (arXiv 2005.02960): all neighbours in random order, a step to a better one.

    At a local optimum it begins again elsewhere.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.centre: tuple[Configuration, float] | None = None
        self.waiting: list[Configuration] = []

    def propose(self, space: SearchSpace, history: Sequence[tuple[Configuration, float]]) -> Configuration:
        if history and (self.centre is None or history[-1][1] < self.centre[1]):
            self.centre = history[-1]
            self._look_around(space, {known for known, _ in history})
        if not self.waiting:
            self.centre = None
            return space.sample(self.rng)
        return self.waiting.pop()

    def _look_around(self, space: SearchSpace, known: set[Configuration]) -> None:
        assert self.centre is not None
        around = [each for each in space.neighbours(self.centre[0]) if each not in known]
        self.waiting = [around[place] for place in self.rng.permutation(len(around))]


def _optuna(make: Callable[[int], optuna.samplers.BaseSampler]) -> Callable[[int], optuna.samplers.BaseSampler]:
    def quietly(seed: int) -> optuna.samplers.BaseSampler:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(seed)

    return quietly


PEERS: Mapping[str, Callable[[int], "optuna.samplers.BaseSampler | _AgingEvolution | _LocalSearch"]] = {
    "rea": _AgingEvolution,
    "local_search": _LocalSearch,
    "optuna_tpe": _optuna(lambda seed: optuna.samplers.TPESampler(seed=seed)),
    "optuna_tpe_independent": _optuna(lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=False)),
    "optuna_gp": _optuna(lambda seed: optuna.samplers.GPSampler(seed=seed)),
    "optuna_nsga2": _optuna(lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=20)),
    "optuna_random": _optuna(lambda seed: optuna.samplers.RandomSampler(seed=seed)),
}


def _optuna_pruner(name: str, epochs: int) -> optuna.pruners.BasePruner:
    made: Mapping[str, Callable[[], optuna.pruners.BasePruner]] = {
        "": optuna.pruners.NopPruner,
        "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(
            min_resource=min(3, max(1, epochs - 1)), reduction_factor=3
        ),
        "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=3, max_resource=epochs, reduction_factor=3),
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=5),
    }
    return made[name]()


def _peer(
    problem: Problem,
    sampler: "optuna.samplers.BaseSampler | _AgingEvolution | _LocalSearch",
    pruner: str,
    seed: int,
    trials: int | None,
    units: float | None,
) -> Course:
    measure = _paid(problem, seed)
    reports: list[_Report] = []
    most_trials, most_spent = trials or 10**9, math.inf if units is None else units * problem.unit
    seconds, number, spent = 0.0, 0, 0.0
    if isinstance(sampler, _AgingEvolution | _LocalSearch):
        history: list[tuple[Configuration, float]] = []
        while number < most_trials and spent < most_spent:
            began = time.process_time()
            proposal = sampler.propose(problem.space, history)
            seconds += time.process_time() - began
            for epoch in range(1, problem.epochs + 1):
                measured = measure(proposal, number, epoch)
                spent += measured.seconds
                reports.append((proposal, epoch, measured.value, epoch == problem.epochs, spent))
            history.append((proposal, measured.value))
            number += 1
        return Course(_steps(problem, reports), seconds / max(1, number))
    study = optuna.create_study(sampler=sampler, pruner=_optuna_pruner(pruner, problem.epochs), study_name=f"s{seed}")
    distributions = problem.space.distributions()
    while number < most_trials and spent < most_spent:
        began = time.process_time()
        trial = study.ask()
        configuration = _suggested(trial, problem.space, distributions)
        seconds += time.process_time() - began
        value, state = math.inf, optuna.trial.TrialState.COMPLETE
        for epoch in range(1, problem.epochs + 1):
            if spent >= most_spent:
                break
            measured = measure(configuration, number, epoch)
            value, spent = measured.value, spent + measured.seconds
            if not math.isfinite(value):
                state = optuna.trial.TrialState.FAIL
                break
            is_last = epoch == problem.epochs
            if problem.epochs > 1:
                trial.report(value, epoch)
                if not is_last and trial.should_prune():
                    state = optuna.trial.TrialState.PRUNED
            is_end = is_last or state is optuna.trial.TrialState.PRUNED
            reports.append((configuration, epoch, value, is_end, spent))
            if is_end:
                break
        study.tell(trial, value if state is optuna.trial.TrialState.COMPLETE else None, state=state)
        number += 1
    return Course(_steps(problem, reports), seconds / max(1, number))


def _suggested(
    trial: optuna.Trial, space: SearchSpace, distributions: Mapping[str, optuna.distributions.BaseDistribution]
) -> Configuration:
    """Ask for one parameter after the other, those that are not there left out, as a person's objective would."""
    values: dict[str, JsonScalar] = {}
    for name, parameter in space.parameters.items():
        if parameter.when is None or parameter.condition.holds(values):
            values[name] = trial._suggest(name, distributions[name])
    return space.validate(values)
