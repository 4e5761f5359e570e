"""What it costs to start a trial: our warm worker groups beside Ray Train and Ray Tune, in one run on one cluster.

(a) End of one trial to the first training step of the next, on a warm group of two ranks (gloo), with a report and a
    decision after every epoch: from the moment in which the driver has the event that a trial is finished, to the
    moment in which rank 0 has built the network and the optimizer of the next and begins its first step.
(b) The same training with Ray Train's TorchTrainer on two gloo workers, which it starts anew in every call: from the
    call of `fit` to the same first step. Not compared, but shown: from the end of rank 0's training until `fit` has
    returned. (a) and (b) take turns.
(c) Trials of three reports that train nothing, in one process each, two at once, with the proposals of Optuna's random
    sampler in memory: our executor; Ray Tune with a class trainable and `reuse_actors`; Ray Tune with a function
    trainable, whose every trial is a new process (fewer trials). A worker imports torch once, as for any training.
    Tune comes as it is, but for checkpoints, which are off; in the line `without its files` it also writes no results
    as CSV, JSON and TensorBoard. Half of ours run before Tune's, half after. Compared are milliseconds a trial over the
    second half of each series, so without anybody's start; shown is also the whole, from the first call to the last
    trial's end.
(d) 2,000 trials of one report through our executor, two at once: the median time from `submit` to the end of the last
    hundred beside that of the first hundred, and by how much the driver's memory grew; both groups are warm before.

    python -m benchmarks.trial_startup [--json] [--only a,b,c,d] [--scale 1.0]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import optuna

from benchmarks.startup.parts import (
    Fits,
    Many,
    Sizes,
    Trivial,
    Warm,
    measure_gaps,
    measure_many,
    measure_trivial,
    private_ray,
)

PARTS = ("a", "b", "c", "d")

MOST_GAP_MS = 25.0
LEAST_TIMES_BELOW_TRAIN = 500.0
MOST_TRIVIAL_MS = 10.0
LEAST_TIMES_BELOW_TUNE = 5.0
MOST_GROWTH = 1.3
MOST_MEMORY_MB = 100.0


@dataclass(slots=True, kw_only=True)
class Figures:
    """What was measured; None or empty where a part was left out."""

    a: Warm | None = None
    b: Fits | None = None
    c: Sequence[Trivial] = ()
    d: Many | None = None

    @property
    def times_below_train(self) -> float | None:
        """How many times less (a) is than (b)."""
        return 1e3 * self.b.to_first_step_s / self.a.gap_ms if self.a and self.b else None

    @property
    def times_below_tune(self) -> float | None:
        """How many times less a trial of (c) costs us than Tune with `reuse_actors`."""
        return self.times_below("reuse_actors")

    def times_below(self, side: str) -> float | None:
        """How many times less a trial of (c) costs us than another side; None where it was not measured."""
        trial_ms = {row.side: row.trial_ms for row in self.c}
        return trial_ms[side] / trial_ms["ours"] if side in trial_ms else None


def measure(parts: frozenset[str], sizes: Sizes) -> Figures:
    """Run the parts, and show the figures of each as soon as they are there."""
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder, private_ray():
        if parts & {"a", "b"}:
            figures.a, figures.b = measure_gaps(sizes, parts, Path(folder))
            show_gaps(figures)
        if "c" in parts:
            figures.c = measure_trivial(sizes, Path(folder))
            show_trivial(figures)
        if "d" in parts:
            figures.d = measure_many(sizes)
            show_many(figures.d)
    return figures


def show_gaps(figures: Figures) -> None:
    """Print (a) and (b)."""
    if warm := figures.a:
        print(
            f"(a) end of a trial to first step of the next: {warm.gap_ms} ms (nine of ten below {warm.gap_p90_ms} ms)"
        )
        print(f"    whole trial of 3 epochs on 2 ranks: {warm.trial_ms} ms = {warm.reach_ms} to reach rank 0", end="")
        print(f" + {warm.build_ms} to build + {warm.train_ms} to train + {warm.return_ms} to return;", end="")
        print(f" a report and its answer take {warm.ask_ms} ms; medians of {warm.trials} trials")
    if fits := figures.b:
        print(f"(b) TorchTrainer, call of fit to first step: {fits.to_first_step_s} s")
        print(f"    end of training to return: {fits.to_return_s} s; all of fit: {fits.total_s} s;", end="")
        print(f" medians of {fits.fits}")
    if figures.times_below_train:
        print(f"    (a) is {figures.times_below_train:.0f} times less than (b)", flush=True)


def show_trivial(figures: Figures) -> None:
    """Print (c)."""
    for row in figures.c:
        print(f"(c) {row.side:>32}: {row.trial_ms:8.2f} ms a trial,", end="")
        print(f" {row.trial_with_start_ms:8.2f} ms with the start ({row.trials} trials)")
    for side in ("reuse_actors", "reuse_actors without its files"):
        print(f"    ours is {figures.times_below(side):.1f} times less than {side}", flush=True)


def show_many(many: Many) -> None:
    """Print (d)."""
    print(f"(d) {many.trials} instant trials: first hundred {many.first_hundred_ms} ms, last {many.last_hundred_ms} ms")
    print(f"    ({many.growth} times); the driver's memory grew by {many.memory_mb} MB", flush=True)


def goals(figures: Figures) -> dict[str, bool]:
    """Which goals are met, of the parts that were run."""
    met = {}
    if figures.a:
        met[f"(a) at most {MOST_GAP_MS:g} ms"] = figures.a.gap_ms <= MOST_GAP_MS
    if (times := figures.times_below_train) is not None:
        met[f"(a) at least {LEAST_TIMES_BELOW_TRAIN:g} times less than (b)"] = times >= LEAST_TIMES_BELOW_TRAIN
    if (times := figures.times_below_tune) is not None:
        met[f"(c) at most {MOST_TRIVIAL_MS:g} ms a trial"] = figures.c[0].trial_ms <= MOST_TRIVIAL_MS
        met[f"(c) at least {LEAST_TIMES_BELOW_TUNE:g} times less than reuse_actors"] = times >= LEAST_TIMES_BELOW_TUNE
    if figures.d:
        met[f"(d) last hundred at most {MOST_GROWTH:g} times the first"] = figures.d.growth <= MOST_GROWTH
        met[f"(d) memory grows by less than {MOST_MEMORY_MB:g} MB"] = figures.d.memory_mb < MOST_MEMORY_MB
    return met


def parts_named(text: str) -> frozenset[str]:
    """Read the value of `--only`."""
    parts = frozenset(text.split(","))
    if wrong := sorted(parts - set(PARTS)):
        raise argparse.ArgumentTypeError(f"no part {', '.join(map(repr, wrong))}; there are {', '.join(PARTS)}")
    return parts


def main(arguments: Sequence[str]) -> int:
    """Measure, print the figures, and with `--json` one JSON object as the last line; 0 when all goals are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--only", type=parts_named, default=frozenset(PARTS), help="which parts, with commas")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of trials")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    figures = measure(options.only, Sizes().scaled(options.scale))
    met = goals(figures)
    for goal, is_met in met.items():
        print(f"{'met' if is_met else 'MISSED':>7}: {goal}")
    if options.json:
        print(json.dumps({"figures": asdict(figures), "goals_met": met}))
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
