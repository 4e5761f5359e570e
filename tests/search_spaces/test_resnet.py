import pytest
import torch

from search_spaces import InvalidConfigurationError, catalog
from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.residual_blocks import BLOCKS, STEMS, ResidualBlock, residual_network
from search_spaces.shapes import ImageShape
from tests.search_spaces.image_spaces import DRAWS, IMAGENET, SHAPES, build, chained, configuration, draws_that_learn

resnet = catalog.load("resnet")


@pytest.mark.parametrize(
    ("block", "depths", "parameters", "multiply_adds"),
    [
        ("basic", (2, 2, 2, 2), 11_689_512, 1_814_073_344),
        ("basic", (3, 4, 6, 3), 21_797_672, 3_663_761_408),
        ("bottleneck", (3, 4, 6, 3), 25_557_032, 4_089_184_256),
    ],
    ids=["ResNet-18", "ResNet-34", "ResNet-50"],
)
def test_published_networks_have_their_published_sizes(
    block: str, depths: tuple[int, ...], parameters: int, multiply_adds: int
) -> None:
    with torch.device("meta"):
        network = residual_network(IMAGENET, 1000, block=block, depths=depths, width=64, stem="conv7x7")
    assert count_parameters(network) == parameters
    assert count_multiply_adds(network, IMAGENET) == multiply_adds


def test_resnet_18_is_in_the_space() -> None:
    depths = {f"stage_{stage}_depth": 2 for stage in range(1, 5)}
    values = configuration(resnet, block="basic", width=64, stem="conv7x7", stages=4, **depths)
    with torch.device("meta"):
        assert count_parameters(resnet.build_model(values, IMAGENET, 1000)) == 11_689_512


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("block", BLOCKS)
def test_images_of_every_shape_have_a_network(shape: ImageShape, stem: str, block: str) -> None:
    values = configuration(resnet, stem=stem, block=block, width=8, stages=4, stage_4_depth=1)
    network = build(resnet, shape, values)
    images_NCHW = torch.rand(2, *shape)
    assert network(images_NCHW).shape == (2, 3)
    assert torch.equal(chained(network.eval(), images_NCHW), network(images_NCHW))


@pytest.mark.parametrize(
    ("shape", "last_map"), [((1, 8, 8), (2, 2)), ((3, 32, 32), (4, 4)), ((3, 2, 128), (2, 8)), (IMAGENET, (7, 7))]
)
def test_stages_halve_what_can_be_halved(shape: ImageShape, last_map: tuple[int, int]) -> None:
    network = build(resnet, shape, configuration(resnet, width=8, stages=4, stage_4_depth=1)).eval()
    seen_NCHW = network.get_submodule("stages")(network.get_submodule("stem")(torch.rand(1, *shape)))
    assert seen_NCHW.shape == (1, 64, *last_map)


def test_block_of_equal_shape_adds_to_its_input() -> None:
    block = ResidualBlock(8, 8, "basic").eval()
    x_NCHW = torch.randn(2, 8, 4, 4)
    assert torch.equal(block(x_NCHW), torch.relu(x_NCHW + block.branch(x_NCHW)))
    assert not list(block.shortcut.parameters())
    assert list(ResidualBlock(8, 8, "bottleneck").shortcut.parameters())  # 32 channels come out


def test_later_blocks_are_left_out_more_often() -> None:
    values = configuration(resnet, stages=2, stage_2_depth=3, stochastic_depth=0.2)
    del values["stage_3_depth"]
    blocks = [part for part in build(resnet, (1, 8, 8), values).modules() if isinstance(part, ResidualBlock)]
    assert [block.dropped.drop for block in blocks] == pytest.approx([0.05, 0.1, 0.15, 0.2])


def test_depth_of_a_stage_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidConfigurationError, match="stage_3_depth=1 is given, but it is there only when stages"):
        resnet.build_model(configuration(resnet, stages=2), (1, 8, 8), 10)


@pytest.mark.slow
def test_random_networks_learn() -> None:
    assert draws_that_learn(resnet, (1, 8, 8)) == DRAWS
