"""The four measurements of `trial_startup`, as its text describes them, on a private Ray cluster."""

import logging
import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from automl.executors.ray.executor import RayExecutor
    from benchmarks.startup.ours import Run

__all__ = ["Fits", "Many", "Sizes", "Trivial", "Warm", "measure_gaps", "measure_many", "measure_trivial", "private_ray"]

CPUS = 8
"""Logical ones of the private cluster; at least half of them are free for Ray's own tools while our groups are warm."""
TRIAL_CPUS = 2
"""What a trial reserves, ours or Tune's."""
AT_ONCE = 2
EPOCHS = 3
RANKS = 2
WARM_UP = 2
"""Trials of a round of (a) that are not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many trials each part runs.

    Attributes:
        rounds: of (a) and (b): one call of `fit` each.
        warm: measured trials of (a) in each round.
        trivial: of (c), ours and with `reuse_actors`.
        unreused: of (c), a process each.
        instant: of (d).
    """

    rounds: int = 3
    warm: int = 60
    trivial: int = 200
    unreused: int = 20
    instant: int = 2000

    def scaled(self, scale: float) -> "Sizes":
        """Return smaller or larger sizes, each large enough to be measured."""
        least = {"rounds": 1, "warm": 3, "trivial": 12, "unreused": 3, "instant": 20}
        return Sizes(**{name: max(least[name], round(scale * size)) for name, size in asdict(self).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """Part (a), medians over the measured trials; milliseconds.

    Attributes:
        trials: how many were measured.
        gap_ms: end of a trial to the first step of the next.
        gap_p90_ms: the same, which nine of ten do not exceed.
        trial_ms: a whole trial, from `submit` to the driver's knowledge of its end; its parts follow one another.
        reach_ms: `submit` until rank 0 enters the training.
        build_ms: until it begins its first step.
        train_ms: until it has the answer to its last report.
        return_ms: until the driver knows.
        ask_ms: of `train_ms`, one report: rank 0 sends it, and has the answer and has passed it on.
    """

    trials: int
    gap_ms: float
    gap_p90_ms: float
    trial_ms: float
    reach_ms: float
    build_ms: float
    train_ms: float
    return_ms: float
    ask_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """Part (b), medians; seconds. The fields are those of one `FitTimes`."""

    fits: int
    to_first_step_s: float
    to_return_s: float
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trivial:
    """One side of part (c); milliseconds a trial, over the second half of each series and over all, start included."""

    side: str
    trials: int
    trial_ms: float
    trial_with_start_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    """Part (d): medians of `submit` to end, and what the driver's memory grew by, both groups being warm."""

    trials: int
    first_hundred_ms: float
    last_hundred_ms: float
    growth: float
    memory_mb: float


@contextmanager
def private_ray() -> Iterator[None]:
    """Start a private cluster for all parts."""
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"  # read when Tune is imported; its tables are not for us
    from automl.env import prepare_private_cluster

    prepare_private_cluster()
    import ray

    ray.init(address="local", num_cpus=CPUS, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def ours(trainer: str, *, ranks: int, at_once: int) -> "RayExecutor":
    """Return our executor with a trainer of this benchmark, on the cluster that is there."""
    from automl.executors.ray.executor import RayExecutor
    from automl.executors.ray.placement import Request
    from benchmarks.startup.trainings import toy_data

    request = Request(ranks=ranks, gpus=0, cpus=TRIAL_CPUS)
    reference = f"benchmarks.startup.trainings:{trainer}"
    return RayExecutor(reference, toy_data(), request=request, concurrency=at_once)


def measure_gaps(sizes: Sizes, parts: frozenset[str], folder: Path) -> tuple[Warm | None, Fits | None]:
    """Run (a) and (b) in turns, or one of them."""
    from benchmarks.startup.ours import equal_tasks, run_trials
    from benchmarks.startup.ray_tools import fit_with_ray_train

    pairs: list[tuple[Run, Run]] = []
    fits = []
    with ours("TimedTrainer", ranks=RANKS, at_once=1) as executor:
        for _ in range(sizes.rounds):
            if "a" in parts:
                runs = run_trials(executor, equal_tasks(WARM_UP + sizes.warm, EPOCHS), at_once=1)
                pairs += zip(runs[WARM_UP - 1 :], runs[WARM_UP:], strict=False)
            if "b" in parts:
                fits.append(fit_with_ray_train(RANKS, EPOCHS, folder))
    median_fit = {
        name: round(statistics.median(getattr(fit, name) for fit in fits), 2)
        for name in ("to_first_step_s", "to_return_s", "total_s")
        if fits
    }
    return _warm(pairs) if pairs else None, Fits(fits=len(fits), **median_fit) if fits else None


def _warm(pairs: "Sequence[tuple[Run, Run]]") -> Warm:
    """Summarize trials, each with the one before it."""
    rows = [_steps_ms(before, run) for before, run in pairs]
    median = {name: round(statistics.median(row[name] for row in rows), 2) for name in rows[0]}
    gaps = sorted(row["gap_ms"] for row in rows)
    return Warm(trials=len(rows), gap_p90_ms=round(gaps[int(0.9 * len(gaps))], 2), **median)


def _steps_ms(before: "Run", run: "Run") -> dict[str, float]:
    facts: Any = run.result.facts
    return {
        "gap_ms": (facts["first_step_ns"] - before.ended_ns) / 1e6,
        "trial_ms": (run.ended_ns - run.submitted_ns) / 1e6,
        "reach_ms": (facts["entered_ns"] - run.submitted_ns) / 1e6,
        "build_ms": (facts["first_step_ns"] - facts["entered_ns"]) / 1e6,
        "train_ms": (facts["trained_ns"] - facts["first_step_ns"]) / 1e6,
        "return_ms": (run.ended_ns - facts["trained_ns"]) / 1e6,
        "ask_ms": facts["asking_ns"] / 1e6 / EPOCHS,
    }


def measure_trivial(sizes: Sizes, folder: Path) -> Sequence[Trivial]:
    """Run (c): ours, Ray Tune in all forms, ours again."""
    from benchmarks.startup.ours import Proposals, run_trials
    from benchmarks.startup.ray_tools import ReusedTrial, function_trial, search_with_tune

    tune = partial(search_with_tune, epochs=EPOCHS, at_once=AT_ONCE, cpus=TRIAL_CPUS, folder=folder)
    half = sizes.trivial // 2
    proposals = Proposals(EPOCHS)
    with ours("InstantTrainer", ranks=1, at_once=AT_ONCE) as executor:
        both_started = run_trials(executor, proposals.tasks(AT_ONCE), AT_ONCE, proposals.observe)
        rest = proposals.tasks(half - AT_ONCE)
        halves = [[*both_started, *run_trials(executor, rest, AT_ONCE, proposals.observe)]]
        reused = tune(ReusedTrial, trials=sizes.trivial, reuse=True)
        filed = tune(ReusedTrial, trials=sizes.trivial, reuse=True, files=True)
        unreused = tune(function_trial, trials=sizes.unreused, reuse=False)
        halves.append(run_trials(executor, proposals.tasks(sizes.trivial - half), AT_ONCE, proposals.observe))
    return (
        _trivial("ours", *([runs[0].submitted_ns, *(run.ended_ns for run in runs)] for runs in halves)),
        _trivial("reuse_actors", filed),
        _trivial("reuse_actors without its files", reused),
        _trivial("new processes", unreused),
    )


def _trivial(side: str, *series: Sequence[int]) -> Trivial:
    """Summarize series of trials by the moments in which each began and in which its trials had ended."""
    second_halves = [moments[(len(moments) - 1) // 2 :] for moments in series]
    return Trivial(
        side=side,
        trials=sum(len(moments) - 1 for moments in series),
        trial_ms=_ms_between(second_halves),
        trial_with_start_ms=_ms_between(series),
    )


def _ms_between(series: Sequence[Sequence[int]]) -> float:
    """From the first to the last moment of each series, divided by the steps between them."""
    total_ns = sum(moments[-1] - moments[0] for moments in series)
    return round(total_ns / 1e6 / sum(len(moments) - 1 for moments in series), 2)


def measure_many(sizes: Sizes) -> Many:
    """Run (d)."""
    from benchmarks.startup.ours import equal_tasks, run_trials

    driver = psutil.Process()
    with ours("InstantTrainer", ranks=1, at_once=AT_ONCE) as executor:
        run_trials(executor, equal_tasks(AT_ONCE, epochs=1), AT_ONCE)  # all groups are warm afterwards
        before = driver.memory_info().rss
        runs = run_trials(executor, equal_tasks(sizes.instant, epochs=1), AT_ONCE)
        grown = driver.memory_info().rss - before
    hundred = min(100, sizes.instant // 2)
    times_ms = [(run.ended_ns - run.submitted_ns) / 1e6 for run in runs]
    first, last = statistics.median(times_ms[:hundred]), statistics.median(times_ms[-hundred:])
    return Many(
        trials=len(runs),
        first_hundred_ms=round(first, 2),
        last_hundred_ms=round(last, 2),
        growth=round(last / first, 2),
        memory_mb=round(grown / 1e6, 1),
    )
