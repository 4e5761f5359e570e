"""What the trainer costs beside a loop written by hand for one model, and beside Lightning, in one run.

The same network, data, batch size, optimizer, schedule, clipping and precision, with a validation after each epoch;
the trainer also writes a checkpoint and a report. The sides take turns, round by round, in the same processes, so that
other work on the machine meets all alike; a time is the median over the epochs, without the first of each round.

    python -m benchmarks.trainer_overhead [--json] [--rounds 9] [--workloads convnet,mlp,transformer]

Networks compute in the usual memory format on all sides. Lightning is not installed with the project:
pip install lightning
"""

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import torch

from benchmarks.overhead.by_hand import train_by_hand
from benchmarks.overhead.workloads import WORKLOADS, Workload
from trainers.distributed import Ranks
from trainers.launching import run_on_ranks
from trainers.networks import build_network
from trainers.reporting import Decision, Report, Reporter, TrialResult

MOST_RATIO = 1.03
"""Goal: how much longer than the hand-written loop an epoch may take."""
EPOCHS = 4
"""Of each side in each round; the first is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Median seconds of an epoch on each side; ratios are medians over the rounds."""

    workload: str
    ranks: int
    by_hand_s: float
    ours_s: float
    ours_to_hand: float
    lightning_s: float | None
    ours_to_lightning: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and say whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    given = parser.parse_args(arguments)
    print(f"{'workload':12} {'ranks':>5} {'by hand':>9} {'ours':>9} {'ratio':>6} {'Lightning':>9} {'ours to it':>10}")
    rows = []
    for name in given.workloads.split(","):
        for world_size in map(int, given.ranks.split(",")):
            row = _row(name, world_size, _times(name, world_size, given.rounds))
            rows.append(row)
            print(
                f"{row.workload:12} {row.ranks:5} {row.by_hand_s:8.3f}s {row.ours_s:8.3f}s {row.ours_to_hand:6.3f} "
                + (
                    f"{row.lightning_s:8.3f}s {row.ours_to_lightning:10.2f}"
                    if row.lightning_s
                    else f"{'-':>9} {'-':>10}"
                ),
                flush=True,
            )
    beside = [row.ours_to_lightning for row in rows]
    met = {
        "at most 1.03 times the hand-written loop": all(row.ours_to_hand <= MOST_RATIO for row in rows),
        "faster than Lightning": all(ratio is not None and ratio < 1.0 for ratio in beside),
    }
    if None in beside:
        print("Lightning is not installed: not compared")
    for goal, is_met in met.items():
        print(f"{'met   ' if is_met else 'MISSED'} {goal}")
    if given.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "goals_met": all(met.values()), "goals": met}))
    return 0


def _times(name: str, world_size: int, rounds: int) -> dict[str, list[list[float]]]:
    """Return for each side the seconds of the epochs of each round."""
    result = run_on_ranks(partial(_work, name, rounds), world_size, _go_on, device="cpu")
    times: dict[str, list[list[float]]] = json.loads(str(result.facts["times"]))
    return times


def _go_on(_: Report) -> Decision:
    return Decision.CONTINUE


def _work(name: str, rounds: int, ranks: Ranks, reporter: Reporter) -> TrialResult:
    torch.set_num_threads(1)
    workload = WORKLOADS[name]()
    times: dict[str, list[list[float]]] = defaultdict(list)
    for _ in range(rounds):
        times["by_hand"].append(list(_by_hand(workload, ranks)))
        times["ours"].append(_ours(workload, ranks))
        if importlib.util.find_spec("lightning") is not None:
            times["lightning"].append(list(_with_lightning(workload, ranks)))
    return TrialResult(outcome="completed", epoch=EPOCHS, facts={"times": json.dumps(times)})


def _by_hand(workload: Workload, ranks: Ranks) -> Sequence[float]:
    network = build_network(workload.space, workload.configuration, workload.data)
    return train_by_hand(
        network,
        workload.train_batches,
        workload.items,
        workload.validation_batches,
        workload.validation_items,
        batch_size=workload.batch_size,
        learning_rate=workload.learning_rate,
        epochs=EPOCHS,
        ranks=ranks,
    )


def _with_lightning(workload: Workload, ranks: Ranks) -> Sequence[float]:
    from benchmarks.overhead.lightning_loop import train_with_lightning

    return train_with_lightning(
        build_network(workload.space, workload.configuration, workload.data),
        workload.train_batches,
        workload.items,
        workload.validation_batches,
        workload.validation_items,
        batch_size=workload.batch_size,
        learning_rate=workload.learning_rate,
        epochs=EPOCHS,
        ranks=ranks,
    )


def _ours(workload: Workload, ranks: Ranks) -> list[float]:
    """Return the seconds from report to report: training, validation, checkpoint and report."""
    import time

    moments: list[float] = []

    def reporter(_: Report) -> Decision:
        moments.append(time.perf_counter())
        return Decision.CONTINUE

    with tempfile.TemporaryDirectory() as folder:
        workload.trainer.fit(workload.task(folder, EPOCHS), workload.data, ranks, reporter)
    return [0.0, *(after - before for before, after in pairwise(moments))]


def _row(name: str, world_size: int, times: dict[str, list[list[float]]]) -> Row:
    seconds = {side: [statistics.median(epochs[1:]) for epochs in rounds] for side, rounds in times.items()}

    def ratio(other: str) -> float | None:
        if other not in seconds:
            return None
        return statistics.median(ours / theirs for ours, theirs in zip(seconds["ours"], seconds[other], strict=True))

    to_hand = ratio("by_hand")
    assert to_hand is not None
    return Row(
        workload=name,
        ranks=world_size,
        by_hand_s=statistics.median(seconds["by_hand"]),
        ours_s=statistics.median(seconds["ours"]),
        ours_to_hand=to_hand,
        lightning_s=statistics.median(seconds["lightning"]) if "lightning" in seconds else None,
        ours_to_lightning=ratio("lightning"),
    )


if __name__ == "__main__":
    sys.exit(main())
