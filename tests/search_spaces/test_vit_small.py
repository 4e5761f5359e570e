import pytest
import torch

from search_spaces import InfeasibleArchitectureError, catalog
from search_spaces.cost import count_multiply_adds, count_parameters
from search_spaces.shapes import ImageShape
from search_spaces.stochastic_depth import StochasticDepth
from search_spaces.vision_transformer import PatchEmbedding, Pooling, vision_transformer
from tests.search_spaces.image_spaces import DRAWS, IMAGENET, SHAPES, build, chained, configuration, draws_that_learn

vit_small = catalog.load("vit_small")


def test_vit_s_16_of_the_space_has_its_published_size() -> None:
    values = configuration(
        vit_small, patch=16, depth=12, heads=6, head_width=64, expansion=4, pooling="class_token", dropout=0.0
    )
    with torch.device("meta"):
        network = vit_small.build_model(values, IMAGENET, 1000)
    assert count_parameters(network) == 22_050_664
    tokens, width = 14 * 14 + 1, 6 * 64
    block = tokens * (3 + 1 + 2 * 4) * width**2 + 2 * tokens**2 * width
    patches = 14 * 14 * 16 * 16 * 3 * width
    assert count_multiply_adds(network, IMAGENET) == patches + 12 * block + width * 1000


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_images_of_every_shape_have_a_network(shape: ImageShape, pooling: str) -> None:
    patch = min(2, *shape[1:])
    network = build(vit_small, shape, configuration(vit_small, patch=patch, depth=2, heads=3, pooling=pooling))
    images_NCHW = torch.rand(2, *shape)
    assert network(images_NCHW).shape == (2, 3)
    assert torch.equal(chained(network.eval(), images_NCHW), network(images_NCHW))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 2, 128)], ids=str)
def test_patch_larger_than_the_image_is_infeasible(shape: ImageShape) -> None:
    _, height, width = shape
    message = f"patches of 16x16 pixels are larger than images of {height}x{width} pixels"
    with pytest.raises(InfeasibleArchitectureError, match=message):
        build(vit_small, shape, configuration(vit_small, patch=16))


def test_more_patches_than_can_be_trained_are_infeasible() -> None:
    message = "patches of 2x2 pixels cut images of 224x224 pixels into 12,544 tokens, more than 1,024"
    with pytest.raises(InfeasibleArchitectureError, match=message):
        build(vit_small, IMAGENET, configuration(vit_small, patch=2))


def test_pixels_of_images_that_patches_do_not_divide_all_count() -> None:
    embedding = PatchEmbedding((1, 5, 3), 2, 8, has_class_token=False)
    images_NCHW = torch.rand(1, 1, 5, 3, requires_grad=True)
    tokens_NLE = embedding(images_NCHW)
    assert tokens_NLE.shape == (1, 3 * 2, 8)
    tokens_NLE.square().sum().backward()
    assert images_NCHW.grad is not None
    assert (images_NCHW.grad != 0).all()


def test_each_patch_is_one_token_at_its_place() -> None:
    embedding = PatchEmbedding((1, 4, 4), 2, 8, has_class_token=True).eval()
    black_NCHW = torch.zeros(1, 1, 4, 4)
    white_NCHW = black_NCHW.clone()
    white_NCHW[:, :, 2:, :2] = 1.0  # the lower left patch
    changed = (embedding(white_NCHW) != embedding(black_NCHW)).any(dim=2)
    assert changed.tolist() == [[False, False, False, True, False]]


@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_order_of_the_patches_counts(pooling: Pooling) -> None:
    network = vision_transformer(
        (1, 4, 4), 3, patch=2, depth=1, heads=2, head_width=8, expansion=2, pooling=pooling
    ).eval()
    images_NCHW = torch.rand(1, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    exchanged = images_NCHW.roll(2, dims=3)
    assert (network(images_NCHW) - network(exchanged)).abs().max() > 1e-3


def test_stochastic_depth_rises_to_the_last_block() -> None:
    network = build(vit_small, (1, 8, 8), configuration(vit_small, depth=4, stochastic_depth=0.2))
    drops = [part.drop for part in network.modules() if isinstance(part, StochasticDepth)]
    assert drops == pytest.approx([0.05, 0.1, 0.15, 0.2])


@pytest.mark.slow
def test_random_networks_learn_unless_their_patches_are_larger_than_the_image() -> None:
    assert 0.7 * DRAWS < draws_that_learn(vit_small, (1, 8, 8)) < 0.9 * DRAWS
