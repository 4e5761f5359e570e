"""Public tables in place of trainings, read from the folder that AUTOML_BENCH_DATA names, or from a package.

NAS-Bench-201 (Dong and Yang 2020), HPOlib's FCNet (Klein and Hutter 2019), HPOBench's MLP (Eggensperger et al. 2021),
LCBench's surrogate in YAHPO Gym (Pfisterer et al. 2022; it needs `onnxruntime`), TaskSet's curves (Metz et al. 2020).
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from automl.executors.simulated import Measure, Measured
from benchmarks.quality.package_tables import table_of_package
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Categorical, Float, Integer
from search_spaces.space import SearchSpace

__all__ = [
    "LCBENCH_EPOCHS",
    "Problem",
    "branches",
    "fcnet",
    "hpobench",
    "lcbench",
    "nas_bench_201",
    "nats",
    "taskset",
    "taskset_tasks",
    "two_fidelities",
]

OPERATIONS = ("none", "skip", "conv1x1", "conv3x3", "avg_pool")
LCBENCH_EPOCHS = 52
_CELLS = SearchSpace("nb201", {f"edge_{at}": Categorical(choices=OPERATIONS) for at in range(6)})
_NATS_SECONDS = {"c10": 20_000.0, "c100": 40_000.0, "in16": 120_000.0}
"""Budgets of NATS-Bench (Dong et al. 2021)."""
_BEST_KNOWN = {
    "167168": 88.77, "189873": 95.98, "189906": 93.76, "34539": 99.03, "126026": 99.53, "167190": 92.88
}  # fmt: skip
"""Of 150,000 random configurations after 52 epochs; a search may find better ones, so that its regret is below 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something to be searched.

    Attributes:
        name: of the task.
        space: what is searched.
        epochs: of a full training.
        measure: seed -> what trainings bring, the loss being smaller for better; equal seeds have equal noise.
        regret: how far a configuration is from the best one; where a loss is without noise, of the loss itself.
        counted_from: the epoch from which on a loss counts as a result.
        unit: what a checkpoint of a budget counts: epochs, or seconds where those are paid.
        pays_seconds: whether a budget is of the seconds of the trainings rather than of epochs.
    """

    name: str
    space: SearchSpace
    epochs: int
    measure: Callable[[int], Measure]
    regret: Callable[[Configuration, float], float]
    counted_from: int = 1
    unit: float = 1.0
    pays_seconds: bool = False


def nas_bench_201(dataset: str) -> Problem:
    """Cells on `c10`, `c100` or `in16`: accuracy after 200 epochs of one seed, in points; the mean of all is scored."""
    table = _table("nb201")
    accuracies, seconds = table[f"val200_{dataset}"], table[f"time200_{dataset}"]
    means = np.nanmean(accuracies, axis=1)

    def measure(seed: int) -> Measure:
        def noisy(configuration: Configuration, number: int, epoch: int) -> Measured:
            row = _cell(configuration)
            return Measured(-_one_of(accuracies[row], seed, number), float(seconds[row]))

        return noisy

    return Problem(
        name=f"nb201_{dataset}",
        space=_CELLS,
        epochs=1,
        measure=measure,
        regret=lambda found, _: float(means.max() - means[_cell(found)]),
    )


def nats(dataset: str) -> Problem:
    """The protocol of NATS-Bench: accuracy after 12 epochs is seen, in so many seconds; that after 200 is scored."""
    table = _table("nb201")
    means, seconds = np.nanmean(table[f"val200_{dataset}"], axis=1), table[f"time200_{dataset}"] * (12 / 200)
    losses = -table[f"val12_{dataset}"]

    def exact(configuration: Configuration, number: int, epoch: int) -> Measured:
        row = _cell(configuration)
        return Measured(float(losses[row]), float(seconds[row]))

    return Problem(
        name=f"nats_{dataset}",
        space=_CELLS,
        epochs=1,
        measure=lambda seed: exact,
        regret=lambda found, _: float(means.max() - means[_cell(found)]),
        unit=_NATS_SECONDS[dataset],
        pays_seconds=True,
    )


def two_fidelities(dataset: str) -> Problem:
    """Cells that are trained for 12 epochs first, and, if that is promising, for 200 from the beginning.

    The two trainings are the two `epochs` of the problem, each with its seconds; budgets are in usual full trainings.
    """
    table = _table("nb201")
    accuracies, seconds = table[f"val200_{dataset}"], table[f"time200_{dataset}"]
    short, means = table[f"val12_{dataset}"], np.nanmean(accuracies, axis=1)

    def measure(seed: int) -> Measure:
        def noisy(configuration: Configuration, number: int, epoch: int) -> Measured:
            row = _cell(configuration)
            if epoch == 1:
                return Measured(-float(short[row]), float(seconds[row]) * (12 / 200))
            return Measured(-_one_of(accuracies[row], seed, number), float(seconds[row]))

        return noisy

    return Problem(
        name=f"two_fidelities_{dataset}",
        space=_CELLS,
        epochs=2,
        measure=measure,
        regret=lambda found, _: float(means.max() - means[_cell(found)]),
        counted_from=2,
        unit=float(seconds.mean()),
        pays_seconds=True,
    )


def _cell(configuration: Configuration) -> int:
    places = [OPERATIONS.index(str(value)) for value in configuration.values()]
    return int(np.ravel_multi_index(places, (len(OPERATIONS),) * len(places)))


def _one_of(known: NDArray[np.floating[Any]], seed: int, number: int) -> float:
    """The result of one of the seeds that the table has."""
    return float(np.random.default_rng([seed, number]).choice(known[~np.isnan(known)]))


def branches(seed_of_function: int) -> Problem:
    """A conditional function: three branches with 2, 3 and 4 numbers of their own, and two that all have.

    The branches' best values are 0.25, 0.1 and 0, so that one may begin well and be the wrong one; noise is 0.01.
    """
    own = {"first": 2, "second": 3, "third": 4}
    best = dict(zip(own, (0.25, 0.1, 0.0), strict=True))
    parameters: dict[str, Any] = {"branch": Categorical(choices=tuple(own))}
    for branch, count in own.items():
        for at in range(count):
            parameters[f"{branch}_{at}"] = Float(low=0.0, high=1.0, when={"branch": branch})
    parameters |= {f"shared_{at}": Float(low=0.0, high=1.0) for at in range(2)}
    rng = np.random.default_rng(seed_of_function)
    centres = {name: float(rng.uniform(0.15, 0.85)) for name in parameters if name != "branch"}

    def value(configuration: Configuration) -> float:
        squares = [(float(str(configuration[name])) - at) ** 2 for name, at in centres.items() if name in configuration]
        return best[str(configuration["branch"])] + 2.0 * float(np.mean(squares))

    def measure(seed: int) -> Measure:
        def noisy(configuration: Configuration, number: int, epoch: int) -> Measured:
            return Measured(value(configuration) + 0.01 * float(np.random.default_rng([seed, number]).normal()))

        return noisy

    return Problem(
        name=f"branches_{seed_of_function}",
        space=SearchSpace("branches", parameters),
        epochs=1,
        measure=measure,
        regret=lambda found, _: value(found),
    )


def fcnet(task: str) -> Problem:
    """Networks for regression: the decimal logarithm of the mean squared error beside that of the best."""
    table = _table("hpolib_fcnet")
    return _grid(f"fcnet_{task}", table, np.log10(table[f"{task}/val_loss"]), by_mean_of=table[f"{task}/val_loss"])


def hpobench(task: str) -> Problem:
    """Networks for classes: accuracy in points."""
    table = _table("hpobench_mlp")
    return _grid(f"hpobench_{task}", table, -100.0 * table[f"{task}/val_acc"])


def _grid(
    name: str,
    table: Mapping[str, NDArray[Any]],
    losses: NDArray[np.float64],
    by_mean_of: NDArray[np.float64] | None = None,
) -> Problem:
    """A full grid of ordered values; one of the seeds is seen, their mean is scored."""
    values: dict[str, list[JsonScalar]] = json.loads(str(table["space_json"]))
    space = SearchSpace(
        name, {key: Categorical(choices=tuple(found), ordered=_are_numbers(found)) for key, found in values.items()}
    )
    scores = losses.mean(axis=1) if by_mean_of is None else np.log10(by_mean_of.mean(axis=1))

    def row(configuration: Configuration) -> int:
        places = [values[key].index(configuration[key]) for key in values]
        return int(np.ravel_multi_index(places, tuple(map(int, table["dims"]))))

    def measure(seed: int) -> Measure:
        def noisy(configuration: Configuration, number: int, epoch: int) -> Measured:
            return Measured(float(np.random.default_rng([seed, number]).choice(losses[row(configuration)])))

        return noisy

    return Problem(
        name=name,
        space=space,
        epochs=1,
        measure=measure,
        regret=lambda found, _: float(scores[row(found)] - scores.min()),
    )


def _are_numbers(values: list[JsonScalar]) -> bool:
    return len(values) > 2 and not any(isinstance(value, str) for value in values)


def lcbench(instance: str, *, curves: bool) -> Problem:
    """Fully connected networks for classes, seven continuous hyperparameters: accuracy in points.

    Args:
        instance: number of the data set at OpenML.
        curves: whether every epoch is reported, of which the first two are artefacts; else the last one is.
    """
    space = SearchSpace(
        "lcbench",
        {
            "batch_size": Integer(low=16, high=512, log=True),
            "learning_rate": Float(low=1e-4, high=1e-1, log=True),
            "momentum": Float(low=0.1, high=0.99),
            "weight_decay": Float(low=1e-5, high=0.1),
            "num_layers": Integer(low=1, high=5),
            "max_units": Integer(low=64, high=1024, log=True),
            "max_dropout": Float(low=0.0, high=1.0),
        },
    )
    answer = _lcbench_answer(instance)

    def measure(seed: int) -> Measure:
        known: dict[Configuration, NDArray[np.float64]] = {}

        def exact(configuration: Configuration, number: int, epoch: int) -> Measured:
            if configuration not in known:
                known[configuration] = answer([float(str(value)) for value in configuration.values()], curves)
            return Measured(-float(known[configuration][epoch - 1]))

        return exact

    return Problem(
        name=f"lcbench_{instance}",
        space=space,
        epochs=LCBENCH_EPOCHS if curves else 1,
        measure=measure,
        regret=lambda _, loss: _BEST_KNOWN[instance] + loss,
        counted_from=3 if curves else 1,
        unit=LCBENCH_EPOCHS if curves else 1,
    )


@cache
def _lcbench_session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(_folder() / "yahpo" / "lcbench_model.onnx"), options)


def _lcbench_answer(instance: str) -> Callable[[list[float], bool], NDArray[np.float64]]:
    places = json.loads((_folder() / "yahpo" / "lcbench_encoding.json").read_text())["OpenML_task_id"]

    def answer(values: list[float], whole: bool) -> NDArray[np.float64]:
        epochs = np.arange(1, LCBENCH_EPOCHS + 1) if whole else np.array([LCBENCH_EPOCHS])
        numbers = np.column_stack([epochs, np.tile(values, (len(epochs), 1))]).astype(np.float32)
        inputs = {"x_cat": np.full((len(epochs), 1), places[instance], np.int32), "x_cont": numbers}
        found: NDArray[np.float64] = _lcbench_session().run(None, inputs)[0][:, 1].astype(np.float64)
        return found

    return answer


def taskset(task: str) -> Problem:
    """Real curves of text networks, 1,000 settings of Adam in an order that the seed decides; 0 best, 1 median.

    Diverged trainings are in it: their losses are no numbers.
    """
    losses = _table("taskset_nlp")[f"{task}/valid_loss"].astype(np.float64)
    finals = losses[:, -1][np.isfinite(losses[:, -1])]
    best, median = float(finals.min()), float(np.median(finals))

    def measure(seed: int) -> Measure:
        order = np.random.default_rng(seed).permutation(len(losses))

        def exact(configuration: Configuration, number: int, epoch: int) -> Measured:
            return Measured(float(losses[order[number % len(order)], epoch - 1]))

        return exact

    return Problem(
        name=f"taskset_{task}",
        space=SearchSpace("taskset", {"any": Float(low=0.0, high=1.0)}),
        epochs=losses.shape[1],
        measure=measure,
        regret=lambda _, loss: (loss - best) / (median - best) if math.isfinite(loss) else math.inf,
        counted_from=3,
        unit=losses.shape[1],
    )


def taskset_tasks() -> tuple[str, ...]:
    """The names of its twelve tasks."""
    return tuple(sorted({name.split("/")[0] for name in _table("taskset_nlp") if name.endswith("/valid_loss")}))


@cache
def _table(name: str) -> Mapping[str, NDArray[Any]]:
    if not os.environ.get("AUTOML_BENCH_DATA"):
        return table_of_package(name)
    with np.load(_folder() / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def _folder() -> Path:
    folder = os.environ.get("AUTOML_BENCH_DATA")
    if not folder:
        raise SystemExit("AUTOML_BENCH_DATA names no folder with the benchmark's tables")
    return Path(folder)
