"""How well scores of untrained networks order the cells of NAS-Bench-201 by their accuracy on CIFAR-10.

For random cells the network of the space `nas_bench_201` is built for 3x32x32 (16 channels, 5 cells a stage) and scored
on one batch of CIFAR-10; compared is Spearman's rank correlation with the accuracy on the test images after 200 epochs,
as the benchmark's table tells it (mean of its seeds). Cells without a path from input to output, of which no network is
built, count as the lowest; a second column leaves them out.

Needs AUTOML_BENCH_DATA, a folder with `nb201.npz` (`ops`, `test200_c10`) and `cifar10_12k_jpeg.npz`.

    python -m benchmarks.zero_cost [--json] [--cells 500] [--batch 32] [--seed 0] [--scores synflow,naswot]

All runs in one thread; a time is that of the CPU, so other work on the machine is not in it.
"""

import argparse
import io
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from scipy.stats import rankdata

from search_spaces.catalog import nas_bench_201
from search_spaces.configuration import JsonScalar
from search_spaces.genotype import EDGE_NAMES, OPERATIONS
from search_spaces.scores import available, check_names, explained_score

PUBLISHED: Mapping[str, float] = {"synflow": 0.74, "jacob_cov": 0.73, "gradient_norm": 0.58, "snip": 0.58}
"""Spearman correlations with the accuracy on CIFAR-10 over the cells of NAS-Bench-201 (Abdelfattah et al.
2021, arXiv 2101.08134)."""
LEAST_CORRELATION: Mapping[str, float] = {"synflow": 0.7, "naswot": 0.7}
"""Goals."""
MOST_MINUTES = 15.0
"""Goal, of CPU time for 500 cells; in proportion for others."""
IMAGE_SHAPE = (3, 32, 32)
CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was found of one score: correlations with the accuracy, and CPU time of one network."""

    score: str
    all_cells: float
    cells_with_path: float
    published: float | None
    network_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was found: one row for each score, and the CPU time of all with the building of the networks."""

    rows: Sequence[Row]
    cells: int
    cells_with_path: int
    batch: int
    cpu_minutes: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and say whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--cells", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32, help="images that networks are scored on")
    parser.add_argument("--seed", type=int, default=0, help="chooses cells, images and weights")
    parser.add_argument("--scores", default=",".join(available()), help="which, with commas")
    given = parser.parse_args(arguments)
    if "AUTOML_BENCH_DATA" not in os.environ:
        parser.error("AUTOML_BENCH_DATA is not set; it names the folder of the data")
    names = given.scores.split(",")
    check_names(names)
    torch.set_num_threads(1)
    figures = measure(Path(os.environ["AUTOML_BENCH_DATA"]), names, given.cells, given.batch, given.seed)
    show(figures)
    met = goals(figures)
    for goal, is_met in met.items():
        print(f"{'met   ' if is_met else 'MISSED'} {goal}")
    if given.json:
        print(json.dumps({"figures": asdict(figures), "goals_met": met}))
    return 0 if all(met.values()) else 1


def measure(data: Path, names: Sequence[str], cells: int, batch: int, seed: int) -> Figures:
    """Score random cells, and compare with the table."""
    began = time.process_time()
    rng = np.random.default_rng(seed)
    with np.load(data / "nb201.npz") as tables:
        operations, accuracies = tables["ops"], tables["test200_c10"]
    chosen = rng.choice(len(operations), size=cells, replace=False)
    images_NCHW, classes_N = read_images(data / "cifar10_12k_jpeg.npz", batch, rng)
    scores: dict[str, list[float]] = {name: [] for name in names}
    spent_s = dict.fromkeys(names, 0.0)
    for count, cell in enumerate(chosen, start=1):
        network = built(operations[cell], seed)
        for name in names:
            start = time.process_time()
            value = -math.inf
            if network is not None:
                value = explained_score(name, network, (images_NCHW,), classes_N).value
            spent_s[name] += time.process_time() - start
            scores[name].append(value)
        if count % 50 == 0:
            print(f"{count} of {cells} cells", file=sys.stderr, flush=True)
    has_path = np.array([refusal(operations[cell]) is None for cell in chosen])
    truth = accuracies[chosen]
    rows = [
        Row(
            score=name,
            all_cells=round(spearman(np.array(values), truth), 3),
            cells_with_path=round(spearman(np.array(values)[has_path], truth[has_path]), 3),
            published=PUBLISHED.get(name),
            network_ms=round(1e3 * spent_s[name] / has_path.sum(), 1),
        )
        for name, values in scores.items()
    ]
    cpu_minutes = round((time.process_time() - began) / 60, 1)
    return Figures(
        rows=sorted(rows, key=lambda row: -row.all_cells),
        cells=cells,
        cells_with_path=int(has_path.sum()),
        batch=batch,
        cpu_minutes=cpu_minutes,
    )


def configuration_of(digits: npt.NDArray[np.uint8]) -> dict[str, JsonScalar]:
    """Return the cell of a row of the table, whose six digits number the operations in the order of our edges."""
    edges = {name: OPERATIONS[digit] for name, digit in zip(EDGE_NAMES, digits, strict=True)}
    return {**(nas_bench_201.SPACE.defaults or {}), **edges}


def refusal(digits: npt.NDArray[np.uint8]) -> str | None:
    """Return why a cell has no network, or None."""
    return nas_bench_201.SPACE.refusal(configuration_of(digits))


def built(digits: npt.NDArray[np.uint8], seed: int) -> torch.nn.Module | None:
    """Return the untrained network of a cell, or None where it has no path."""
    if refusal(digits) is not None:
        return None
    torch.manual_seed(seed)
    return nas_bench_201.build_model(configuration_of(digits), IMAGE_SHAPE, CLASSES)


def read_images(file: Path, items: int, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random training images, normalised by themselves, and their classes.

    Shapes: images_NCHW float32, classes_N int64.
    """
    with np.load(file) as arrays:
        ends, sizes = np.cumsum(arrays["len_train"]), arrays["len_train"]
        jpeg, classes = arrays["jpeg_train"], arrays["y_train"]
    places = rng.choice(len(ends), size=items, replace=False)
    files = [jpeg[ends[place] - sizes[place] : ends[place]].tobytes() for place in places]
    pixels_NHWC = np.stack([np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files])
    images_NCHW = torch.from_numpy(pixels_NHWC).permute(0, 3, 1, 2).to(torch.float32)
    deviation, mean = torch.std_mean(images_NCHW, dim=(0, 2, 3), keepdim=True)
    return (images_NCHW - mean) / deviation, torch.from_numpy(classes[places].astype(np.int64))


def spearman(scores: npt.NDArray[np.float64], truth: npt.NDArray[np.float32]) -> float:
    """Return the correlation of the ranks; equal values share the mean of theirs, and -inf comes first."""
    return float(np.corrcoef(rankdata(scores), rankdata(truth))[0, 1])


def show(figures: Figures) -> None:
    """Print the table."""
    print(f"{figures.cells} cells, {figures.cells_with_path} of them with a path; batches of {figures.batch} images")
    print(f"{'score':14} {'all cells':>9} {'with path':>9} {'published':>9} {'ms a network':>12}")
    for row in figures.rows:
        published = "-" if row.published is None else f"{row.published:.2f}"
        numbers = f"{row.all_cells:9.3f} {row.cells_with_path:9.3f} {published:>9} {row.network_ms:12.1f}"
        print(f"{row.score:14} {numbers}")
    print(f"CPU time of all: {figures.cpu_minutes} minutes", flush=True)


def goals(figures: Figures) -> dict[str, bool]:
    """Which goals are met, of the scores that were computed."""
    found = {row.score: row.all_cells for row in figures.rows}
    met = {
        f"{name} at least {least}": found[name] >= least for name, least in LEAST_CORRELATION.items() if name in found
    }
    most = MOST_MINUTES * figures.cells / 500
    met[f"at most {most:g} minutes"] = figures.cpu_minutes <= most
    return met


if __name__ == "__main__":
    sys.exit(main())
