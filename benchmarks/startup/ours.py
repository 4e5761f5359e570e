"""What our executor needs for the trials of `trial_startup`: the loop of a driver and nothing else, no database."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import optuna

from automl.executors.base import Event, Executor, Failed, Finished, Reported
from benchmarks.startup.ray_tools import SEED, SPACE
from trainers.config import TrainConfig, TrainTask
from trainers.reporting import Decision, TrialResult

__all__ = ["Proposals", "Run", "equal_tasks", "run_trials"]

PATIENCE_S = 120.0
"""How long nothing may happen before the benchmark gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trial as the driver saw it; nanoseconds of `time.monotonic_ns`.

    Attributes:
        submitted_ns: just before the call of `submit`.
        ended_ns: just after the driver got the event that the trial is finished.
        result: what the training gave.
    """

    submitted_ns: int
    ended_ns: int
    result: TrialResult


def run_trials(
    executor: Executor, tasks: Iterable[TrainTask], at_once: int, observe: Callable[[Event], None] = lambda event: None
) -> list[Run]:
    """Keep `at_once` tasks under way and let every report go on; return the runs in the order of their ends.

    Raises:
        RuntimeError: a trial failed, or nothing happened for a long time.
    """
    waiting = iter(tasks)
    submitted: dict[int, int] = {}
    runs: list[Run] = []

    def submit_next() -> None:
        task = next(waiting, None)
        if task is not None:
            moment = time.monotonic_ns()
            submitted[executor.submit(task).id] = moment

    for _ in range(at_once):
        submit_next()
    heard_at = time.monotonic()
    while submitted:
        events = executor.events(1.0)
        moment = time.monotonic_ns()
        if not events and time.monotonic() - heard_at > PATIENCE_S:
            raise RuntimeError(f"{len(submitted)} trials are under way, and nothing happened for {PATIENCE_S:g} s")
        for event in events:
            heard_at = time.monotonic()
            observe(event)
            if isinstance(event, Reported):
                executor.decide(event.job, Decision.CONTINUE)
            else:
                began = submitted.pop(event.job.id)
                runs.append(Run(submitted_ns=began, ended_ns=moment, result=_result(event)))
                submit_next()
    return runs


def _result(event: Finished | Failed) -> TrialResult:
    if isinstance(event, Failed):
        raise RuntimeError(f"a trial of the benchmark failed: {event.failure}")
    assert isinstance(event.outcome, TrialResult)
    return event.outcome


def equal_tasks(count: int, epochs: int) -> Iterator[TrainTask]:
    """Trials of one configuration."""
    return (_task(number, 0.5, epochs) for number in range(count))


class Proposals:
    """Trials that Optuna's random sampler proposes in memory: what `OptunaSearch` does for Ray Tune."""

    def __init__(self, epochs: int) -> None:
        """Begin a study of trials of so many epochs."""
        self._study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=SEED))
        self._trials: dict[str, optuna.Trial] = {}
        self._losses: dict[str, float] = {}
        self._epochs = epochs

    def tasks(self, count: int) -> Iterator[TrainTask]:
        """Ask for so many more trials, each when it is wanted."""
        for _ in range(count):
            trial = self._study.ask(SPACE)
            task = _task(trial.number, trial.params["x"], self._epochs)
            self._trials[task.checkpoint_dir] = trial
            yield task

    def observe(self, event: Event) -> None:
        """Tell the study what has happened."""
        assert isinstance(event.job.task, TrainTask)
        folder = event.job.task.checkpoint_dir
        if isinstance(event, Reported):
            self._losses[folder] = event.report.metrics["loss"]
            self._trials[folder].report(self._losses[folder], event.report.epoch)
        else:
            self._study.tell(self._trials.pop(folder), self._losses.pop(folder))


def _task(number: int, x: float, epochs: int) -> TrainTask:
    return TrainTask(
        space="trial_startup",
        configuration={"x": x},
        training=TrainConfig(epochs=epochs, metric="loss", direction="minimize"),
        artifacts_root="/",  # nothing is written
        checkpoint_dir=f"trial-{number:06d}",
    )
