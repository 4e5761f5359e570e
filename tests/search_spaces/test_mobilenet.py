import pytest
import torch
from torch import nn

from search_spaces import InvalidConfigurationError, catalog
from search_spaces.catalog.mobilenet import WIDTHS
from search_spaces.configuration import JsonScalar
from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.inverted_residuals import (
    InvertedResidual,
    SqueezeExcite,
    Stage,
    conv_norm_act,
    inverted_residual_network,
    multiple_of_8,
)
from search_spaces.shapes import ImageShape
from tests.search_spaces.image_spaces import DRAWS, IMAGENET, SHAPES, build, chained, configuration, draws_that_learn

mobilenet = catalog.load("mobilenet")

V2_TABLE_2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
"""Expansion, width, depth and stride of each stage."""
V3_TABLE_1 = [
    (3, 16, 16, False),
    (3, 64, 24, False),
    (3, 72, 24, False),
    (5, 72, 40, True),
    (5, 120, 40, True),
    (5, 120, 40, True),
    (3, 240, 80, False),
    (3, 200, 80, False),
    (3, 184, 80, False),
    (3, 184, 80, False),
    (3, 480, 112, True),
    (3, 672, 112, True),
    (5, 672, 160, True),
    (5, 960, 160, True),
    (5, 960, 160, True),
]
"""Kernel, hidden channels, channels out and squeeze-excite of each block of MobileNetV3-Large."""


def test_mobilenet_v2_has_its_published_size() -> None:
    stages = [Stage(width=w, depth=n, expansion=t, stride=(s, s)) for t, w, n, s in V2_TABLE_2]
    with torch.device("meta"):
        network = inverted_residual_network(
            IMAGENET, 1000, stages, stem_width=32, stem_strides=[(2, 2)], last_width=1280
        )
    assert count_parameters(network) == 3_504_872
    assert count_multiply_adds(network, IMAGENET) == 300_774_272


def test_blocks_of_mobilenet_v3_have_their_published_weights() -> None:
    with torch.device("meta"):
        parts: list[nn.Module] = [*conv_norm_act(3, 16, 3, (2, 2), activation="hard_swish")]
        channels = 16
        for kernel, hidden, channels_out, excite in V3_TABLE_1:
            parts.append(InvertedResidual(channels, channels_out, hidden, kernel=kernel, squeeze_excite=excite))
            channels = channels_out
        parts += [*conv_norm_act(channels, 960, 1, activation="hard_swish")]
        parts += [nn.Linear(960, 1280), nn.Linear(1280, 1000)]
        assert count_parameters(nn.Sequential(*parts)) == 5_483_032


@pytest.mark.parametrize(("channels", "multiple"), [(4, 8), (11.9, 16), (18, 24), (24, 24), (180, 184), (1, 8)])
def test_multiple_of_8_loses_at_most_a_tenth(channels: float, multiple: int) -> None:
    assert multiple_of_8(channels) == multiple


def test_squeeze_excite_weighs_whole_channels() -> None:
    x_NCHW = torch.rand(2, 16, 3, 3) + 0.1
    with torch.no_grad():
        weights_NCHW = SqueezeExcite(16)(x_NCHW) / x_NCHW
    torch.testing.assert_close(weights_NCHW, weights_NCHW.mean(dim=(2, 3), keepdim=True).expand_as(weights_NCHW))
    assert 0.0 <= float(weights_NCHW.min()) and float(weights_NCHW.max()) <= 1.0


def test_input_is_added_where_shapes_are_equal() -> None:
    x_NCHW = torch.randn(2, 8, 4, 4)
    block = InvertedResidual(8, 8, 24).eval()
    assert torch.equal(block(x_NCHW), x_NCHW + block.branch(x_NCHW))
    for other in (InvertedResidual(8, 16, 24).eval(), InvertedResidual(8, 8, 24, stride=(1, 2)).eval()):
        assert torch.equal(other(x_NCHW), other.branch(x_NCHW))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("excite", [False, True])
def test_images_of_every_shape_have_a_network(shape: ImageShape, excite: bool) -> None:
    further: dict[str, JsonScalar] = {
        f"stage_{stage}_{name}": value
        for stage in (4, 5)
        for name, value in (("depth", 1), ("kernel", 7), ("expansion", 1), ("squeeze_excite", excite))
    }
    network = build(mobilenet, shape, configuration(mobilenet, width=0.5, stages=5, **further))
    images_NCHW = torch.rand(2, *shape)
    assert network(images_NCHW).shape == (2, 3)
    assert torch.equal(chained(network.eval(), images_NCHW), network(images_NCHW))


def test_large_images_are_halved_by_the_stem_and_every_stage() -> None:
    network = build(mobilenet, IMAGENET, configuration(mobilenet, width=0.5)).eval()
    seen_NCHW = network.get_submodule("stages")(network.get_submodule("stem")(torch.rand(1, *IMAGENET)))
    assert seen_NCHW.shape == (1, 24, 14, 14)


def test_every_width_of_the_space_gives_other_channels() -> None:
    multipliers = [0.5, 0.75, 1.0, 1.25, 1.5]
    assert all(mobilenet.SPACE.parameters["width"].problem(multiplier) is None for multiplier in multipliers)
    for width in WIDTHS:
        assert len({width * multiplier for multiplier in multipliers}) == len(multipliers)
        assert all((width * multiplier) % 4 == 0 for multiplier in multipliers)


def test_all_choices_of_a_stage_change_the_network() -> None:
    def weights(**values: JsonScalar) -> int:
        return count_parameters(build(mobilenet, (1, 8, 8), configuration(mobilenet, **values)))

    changed = [weights(stage_2_kernel=7), weights(stage_2_depth=2), weights(stage_2_expansion=6)]
    assert len({weights(), weights(stage_2_squeeze_excite=True), weights(width=0.5), *changed}) == 6


def test_kernel_of_a_stage_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidConfigurationError, match="stage_3_kernel=3 is given, but it is there only when stages"):
        mobilenet.build_model(configuration(mobilenet, stages=2), (1, 8, 8), 10)


@pytest.mark.slow
def test_random_networks_learn() -> None:
    assert draws_that_learn(mobilenet, (1, 8, 8)) == DRAWS
