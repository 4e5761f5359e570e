import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_spaces.skeleton import Skeleton


@pytest.mark.parametrize(
    ("height", "width", "stem", "reductions", "map_size"),
    [
        (1, 1, [(1, 1)], [], (1, 1)),
        (2, 2, [(1, 1)], [], (2, 2)),
        (5, 3, [(1, 1)], [(2, 2)], (3, 2)),
        (8, 8, [(1, 1)], [(2, 2)], (4, 4)),
        (28, 28, [(1, 1)], [(2, 2)] * 2, (7, 7)),
        (32, 32, [(1, 1)], [(2, 2)] * 2, (8, 8)),
        (64, 64, [(1, 1)], [(2, 2)] * 3, (8, 8)),
        (224, 224, [(2, 2)] * 2, [(2, 2)] * 3, (7, 7)),
        (2, 128, [(1, 2)], [(1, 2)] * 3, (2, 8)),
        (1, 9, [(1, 1)], [(1, 2)], (1, 5)),
    ],
)
def test_skeleton_fits_the_images(
    height: int,
    width: int,
    stem: list[tuple[int, int]],
    reductions: list[tuple[int, int]],
    map_size: tuple[int, int],
) -> None:
    skeleton = Skeleton.fitting(height, width)
    assert (list(skeleton.stem), list(skeleton.reductions), skeleton.map_size) == (stem, reductions, map_size)
    assert skeleton.stage_sizes(height, width)[-1] == map_size


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_skeleton_last_map_is_small_but_never_empty(height: int, width: int) -> None:
    skeleton = Skeleton.fitting(height, width)
    for size, last in zip((height, width), skeleton.map_size, strict=True):
        assert min(size, 2) <= last <= 8


@pytest.mark.parametrize(
    ("height", "width", "stem", "reductions", "map_size"),
    [
        (1, 1, [(1, 1)], [(1, 1)] * 2, (1, 1)),
        (2, 2, [(1, 1)], [(1, 1)] * 2, (2, 2)),
        (8, 8, [(1, 1)], [(2, 2)] * 2, (2, 2)),
        (16, 16, [(1, 1)], [(2, 2)] * 2, (4, 4)),
        (32, 32, [(1, 1)], [(2, 2)] * 2, (8, 8)),
        (5, 64, [(1, 1)], [(2, 2), (2, 2)], (2, 16)),
        (2, 128, [(1, 2)], [(1, 2)] * 2, (2, 16)),
        (224, 224, [(2, 2)] * 2, [(2, 2)] * 2, (14, 14)),
    ],
)
def test_skeleton_with_reductions_has_as_many_for_every_size(
    height: int,
    width: int,
    stem: list[tuple[int, int]],
    reductions: list[tuple[int, int]],
    map_size: tuple[int, int],
) -> None:
    skeleton = Skeleton.with_reductions(height, width, 2)
    assert (list(skeleton.stem), list(skeleton.reductions), skeleton.map_size) == (stem, reductions, map_size)
    assert len(skeleton.stage_sizes(height, width)) == 3


def test_skeleton_of_an_image_without_pixels_is_refused() -> None:
    for make in (Skeleton.fitting, lambda height, width: Skeleton.with_reductions(height, width, 2)):
        with pytest.raises(ValueError, match="images of 0x8 pixels"):
            make(0, 8)
