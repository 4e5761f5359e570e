"""Inverted residuals for images: kernel, expansion, depth and squeeze-excite of each stage, and how they are trained.

The choices of a stage are those of the networks that MnasNet (Tan et al. 2018, arXiv 1807.11626), ProxylessNAS (Cai et
al. 2018, arXiv 1812.00332) and Once-for-All (Cai et al. 2019, arXiv 1908.09791) search; all blocks of a stage are
equal, as in MnasNet. The ranges suit small images that are learned from scratch, on a CPU at their lower end.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from search_spaces.blocks import repeat
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.shapes import ImageShape
from search_spaces.space import SearchSpace
from search_spaces.usual_training import image_training, usual_image_training

if TYPE_CHECKING:
    from torch import nn

    from search_spaces.inverted_residuals import Stage
    from search_spaces.skeleton import AxisStride

__all__ = ["SPACE", "build_model"]

WIDTHS = (16, 32, 48, 96, 160)
"""Channels of each stage at a multiplier of 1; multiples of 16, so that every multiplier gives other whole numbers."""
LAST_WIDENING = 4
"""How many times wider than the last stage the layer is that the head reads; 1280 / 320 in MobileNetV2."""

_STAGE: Mapping[str, Parameter] = {
    "depth": Integer(low=1, high=4),
    "kernel": Categorical(choices=(3, 5, 7), ordered=True),
    "expansion": Categorical(choices=(1, 3, 4, 6), ordered=True),
    "squeeze_excite": Categorical(choices=(False, True)),
}
_USUAL_STAGE: Mapping[str, JsonScalar] = {"depth": 1, "kernel": 3, "expansion": 3, "squeeze_excite": False}

SPACE = SearchSpace(
    "mobilenet",
    {
        "width": Float(low=0.5, high=1.5, step=0.25, role="architecture"),
        "activation": Categorical(choices=("relu6", "hard_swish"), role="architecture"),
        **repeat("stages", Integer(low=2, high=len(WIDTHS)), _STAGE, item="stage", role="architecture"),
        "dropout": Float(low=0.0, high=0.3, step=0.05, role="architecture"),
        **image_training(highest_learning_rate=1e-1, optimizers=("sgd", "adam", "adamw")),
    },
    defaults={
        "width": 1.0,
        "activation": "hard_swish",
        "stages": 3,
        **{f"stage_{stage}_{name}": value for stage in range(1, 4) for name, value in _USUAL_STAGE.items()},
        "dropout": 0.1,
        **usual_image_training(learning_rate=1e-2),
    },
    description="Stages of inverted residuals, their kernels, expansions, depths and width, and how they are trained.",
)


def build_model(configuration: Mapping[str, JsonScalar], input_shape: ImageShape, num_classes: int) -> "nn.Module":
    """Build the network of a configuration; how often it halves its map follows from the images.

    Args:
        configuration: valid in `SPACE`.
        input_shape: (channels, height, width) of one image.
        num_classes: number of logits.

    Raises:
        InvalidConfigurationError: the configuration does not belong to the space.
    """
    from search_spaces.inverted_residuals import inverted_residual_network
    from search_spaces.skeleton import Skeleton

    valid = SPACE.validate(configuration)
    skeleton = Skeleton.with_reductions(*input_shape[1:], cast(int, valid["stages"]) - 1)
    strides: tuple[AxisStride, ...] = ((1, 1), *skeleton.reductions)
    stages = [_stage(valid, number, stride) for number, stride in enumerate(strides, start=1)]
    return inverted_residual_network(
        input_shape,
        num_classes,
        stages,
        stem_width=stages[0].width,
        stem_strides=skeleton.stem,
        last_width=LAST_WIDENING * stages[-1].width,
        activation=cast(str, valid["activation"]),
        dropout=cast(float, valid["dropout"]),
    )


def _stage(valid: Configuration, number: int, stride: "AxisStride") -> "Stage":
    from search_spaces.inverted_residuals import Stage

    return Stage(
        width=round(WIDTHS[number - 1] * cast(float, valid["width"])),
        depth=cast(int, valid[f"stage_{number}_depth"]),
        kernel=cast(int, valid[f"stage_{number}_kernel"]),
        expansion=cast(int, valid[f"stage_{number}_expansion"]),
        squeeze_excite=cast(bool, valid[f"stage_{number}_squeeze_excite"]),
        stride=stride,
    )
