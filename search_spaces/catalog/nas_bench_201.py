"""NAS-Bench-201: all cells of four nodes and five operations, in the benchmark's network, trained as it was.

Only the six edges are searched, 15,625 cells; width, depth and training are the benchmark's, as constants. With images
of 3x32x32 and of 3x16x16 networks are those of the benchmark: its tables tell the same number of weights. Other sizes
get its three stages, too; images above 64 pixels are halved first, and an axis that is too short is not halved.
To search with other constants, copy this file.

Source: Dong and Yang 2020, NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search,
    arXiv:2001.00326, section 2. Deviations: dead edges get no weights; weight decay leaves out biases and
    normalisation, as everywhere here; images are shifted, turned and zoomed rather than cropped and mirrored.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from search_spaces.cell_costs import CellNetworkCosts, cell_network_costs
from search_spaces.cell_forms import first_of_each_form, published_form
from search_spaces.configuration import JsonScalar
from search_spaces.genotype import EDGE_NAMES, OPERATIONS, CellGenotype, canonical_edges, why_no_path
from search_spaces.graph import NetworkGraph, cell_graph
from search_spaces.parameters import Categorical, Parameter
from search_spaces.shapes import ImageShape
from search_spaces.skeleton import Skeleton
from search_spaces.space import SearchSpace

if TYPE_CHECKING:
    from torch import nn

__all__ = ["SPACE", "build_model", "costs", "facts", "graph"]

CHANNELS: Final = 16
"""Of the first stage; each reduction doubles them (section 2.1)."""
CELLS_PER_STAGE: Final = 5
"""Cells in each of the three stages (section 2.1)."""
REDUCTIONS: Final = 2
"""Residual blocks between the stages (section 2.1)."""

_EDGES: dict[str, Parameter] = {name: Categorical(choices=OPERATIONS, role="architecture") for name in EDGE_NAMES}
_TRAINING: dict[str, JsonScalar] = {  # section 2.2, table 1; the 200 epochs are the budget of whoever searches
    "optimizer": "sgd",  # with Nesterov momentum
    "momentum": 0.9,
    "learning_rate": 0.1,
    "schedule": "cosine",  # to 0
    "warmup_fraction": 0.0,
    "weight_decay": 5e-4,
    "gradient_clip": 0.0,
    "batch_size": 256,
    "augmentation": 0.5,
}
_BEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_1x1~1|nor_conv_3x3~2|"

SPACE = SearchSpace(
    "nas_bench_201",
    {**_EDGES, **_TRAINING},
    defaults={**CellGenotype.parse(_BEST).to_configuration(), **_TRAINING},
    canonical=canonical_edges,
    canonical_over=EDGE_NAMES,
    refuse=why_no_path,
    description="The 15,625 cells of NAS-Bench-201 in its network of 15 cells, trained as the benchmark trains them.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: ImageShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration; only edges on a path from the input to the output get weights.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
        InfeasibleArchitectureError: the cell has no path from its input to its output.
    """
    from search_spaces.networks import CellNetwork

    return CellNetwork(
        CellGenotype.from_configuration(SPACE.validate(configuration)),
        input_shape,
        num_classes,
        channels=CHANNELS,
        cells_per_stage=CELLS_PER_STAGE,
        skeleton=Skeleton.with_reductions(*input_shape[1:], REDUCTIONS),
    )


def graph(configuration: Mapping[str, JsonScalar]) -> NetworkGraph:
    """Return the drawing of a configuration's cell, its dead edges included."""
    return cell_graph(CellGenotype.from_configuration(configuration))


def costs(
    configuration: Mapping[str, JsonScalar], input_shape: ImageShape = (3, 32, 32), num_classes: int = 10
) -> CellNetworkCosts:
    """Return what the network of a configuration costs, and what the benchmark says that it costs (declared)."""
    return cell_network_costs(
        CellGenotype.from_configuration(configuration),
        input_shape,
        num_classes,
        channels=CHANNELS,
        cells_per_stage=CELLS_PER_STAGE,
        skeleton=Skeleton.with_reductions(*input_shape[1:], REDUCTIONS),
    )


def facts() -> Mapping[str, int]:
    """Return how many cells differ as the benchmark counts them, and how many compute something else than all others.

    The benchmark compares expressions; see `cell_forms`. Cells without a path are among them. A search trains one cell
    of those that compute the same (`SPACE.different()`).
    """
    published = {published_form(operations) for operations in first_of_each_form(OPERATIONS)}
    exactly = SPACE.different()
    assert exactly is not None
    return {"different": len(published), "exactly_different": exactly}
