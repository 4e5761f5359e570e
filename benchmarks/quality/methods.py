"""Who searches: our samplers and pruners through the product's scheduler, and peers through their own programs."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import optuna

from automl.executors.simulated import Measure, simulate
from automl.pruners.base import Pruner
from automl.registry import pruner_class
from automl.samplers.base import Sampler
from automl.scheduler import Scheduler
from automl.simulation.methods import Method
from benchmarks.quality.tables import Problem
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.trial import Trial

__all__ = ["PEERS", "Course", "Step", "course_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """A report: epochs spent so far, ended trainings so far, the regret of what is best by then."""

    epochs: int
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

    def at_epochs(self, count: int) -> float:
        """The regret once so many epochs were trained."""
        return next((step.regret for step in reversed(self.steps) if step.epochs <= count), math.nan)


def course_of(
    problem: Problem, method: str, seed: int, *, trials: int | None = None, epochs: int | None = None, workers: int = 1
) -> Course:
    """Search a problem.

    Args:
        problem: what is searched.
        method: SAMPLER or SAMPLER+PRUNER of ours (with options: `evolution:population_size=20`), or the name of a
            peer likewise.
        seed: of the noise and the method.
        trials: trainings that may end; None: any number.
        epochs: epochs that may be trained; None: any number; for one worker.
        workers: trainings at the same time; peers have one.
    """
    sampler, _, pruner = method.partition("+")
    if sampler in PEERS:
        return _peer(problem, PEERS[sampler](seed), pruner, seed, trials, epochs)
    return _ours(problem, sampler, pruner or "none", seed, trials, epochs, workers)


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


def _ours(
    problem: Problem, sampler: str, pruner: str, seed: int, trials: int | None, epochs: int | None, workers: int
) -> Course:
    timed = _Timed(Method(sampler=sampler, pruner=pruner).make_sampler("minimize"))
    scheduler = Scheduler(space=problem.space, sampler=timed, pruner=_pruner(pruner, problem.epochs), seed=seed)
    measure = problem.measure(seed)
    seconds = math.inf if epochs is None else float(epochs)
    counted = measure if epochs is None else _of_one_second(measure)
    found = simulate(scheduler, counted, workers=workers, trials=trials, seconds=seconds)
    steps = _steps(
        problem,
        [
            (found.trials[one.number].configuration, one.epoch, one.value, one.state.is_ended)
            for one in found.happenings
            if one.value is not None
        ],
    )
    return Course(steps, timed.seconds / max(1, timed.count))


def _of_one_second(measure: Measure) -> Measure:
    from automl.executors.simulated import Measured

    return lambda configuration, number, epoch: Measured(measure(configuration, number, epoch).value)


def _pruner(name: str, epochs: int) -> Pruner:
    made = pruner_class(name)
    return made("minimize", epochs, **({"min_epochs": 3} if name.startswith("asha") else {}))


def _steps(problem: Problem, reports: Sequence[tuple[Mapping[str, object], int, float, bool]]) -> list[Step]:
    """The regret of what looked best so far, after each report; the first two epochs of curves do not count."""
    steps: list[Step] = []
    best, regret, ended = math.inf, math.nan, 0
    for count, (configuration, epoch, value, is_end) in enumerate(reports, start=1):
        if value < best and (epoch >= 3 or problem.epochs == 1):
            best, regret = value, problem.regret(Configuration(configuration), value)  # type: ignore[arg-type]
        ended += is_end
        steps.append(Step(count, ended, regret))
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


def _optuna(make: Callable[[int], optuna.samplers.BaseSampler]) -> Callable[[int], optuna.samplers.BaseSampler]:
    def quietly(seed: int) -> optuna.samplers.BaseSampler:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(seed)

    return quietly


PEERS: Mapping[str, Callable[[int], "optuna.samplers.BaseSampler | _AgingEvolution"]] = {
    "rea": _AgingEvolution,
    "optuna_tpe": _optuna(lambda seed: optuna.samplers.TPESampler(seed=seed)),
    "optuna_tpe_independent": _optuna(lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=False)),
    "optuna_gp": _optuna(lambda seed: optuna.samplers.GPSampler(seed=seed)),
    "optuna_nsga2": _optuna(lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=20)),
    "optuna_random": _optuna(lambda seed: optuna.samplers.RandomSampler(seed=seed)),
}


def _optuna_pruner(name: str, epochs: int) -> optuna.pruners.BasePruner:
    made: Mapping[str, Callable[[], optuna.pruners.BasePruner]] = {
        "": optuna.pruners.NopPruner,
        "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=3, reduction_factor=3),
        "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=3, max_resource=epochs, reduction_factor=3),
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=5),
    }
    return made[name]()


def _peer(
    problem: Problem,
    sampler: "optuna.samplers.BaseSampler | _AgingEvolution",
    pruner: str,
    seed: int,
    trials: int | None,
    epochs: int | None,
) -> Course:
    measure = problem.measure(seed)
    reports: list[tuple[Mapping[str, object], int, float, bool]] = []
    most_trials, most_epochs = trials or 10**9, epochs or 10**9
    seconds, number = 0.0, 0
    if isinstance(sampler, _AgingEvolution):
        history: list[tuple[Configuration, float]] = []
        for number in range(most_trials):
            began = time.process_time()
            proposal = sampler.propose(problem.space, history)
            seconds += time.process_time() - began
            history.append((proposal, measure(proposal, number, 1).value))
            reports.append((proposal, 1, history[-1][1], True))
        return Course(_steps(problem, reports), seconds / most_trials)
    study = optuna.create_study(sampler=sampler, pruner=_optuna_pruner(pruner, problem.epochs), study_name=f"s{seed}")
    distributions = problem.space.distributions()
    while number < most_trials and len(reports) < most_epochs:
        began = time.process_time()
        trial = study.ask(distributions)
        seconds += time.process_time() - began
        configuration = problem.space.validate(trial.params)
        value, state = math.inf, optuna.trial.TrialState.COMPLETE
        for epoch in range(1, problem.epochs + 1):
            if len(reports) >= most_epochs:
                break
            value = measure(configuration, number, epoch).value
            if not math.isfinite(value):
                state = optuna.trial.TrialState.FAIL
                break
            is_last = epoch == problem.epochs
            if problem.epochs > 1:
                trial.report(value, epoch)
                if not is_last and trial.should_prune():
                    state = optuna.trial.TrialState.PRUNED
            is_end = is_last or state is optuna.trial.TrialState.PRUNED
            reports.append((configuration, epoch, value, is_end))
            if is_end:
                break
        study.tell(trial, value if state is optuna.trial.TrialState.COMPLETE else None, state=state)
        number += 1
    return Course(_steps(problem, reports), seconds / max(1, number))
