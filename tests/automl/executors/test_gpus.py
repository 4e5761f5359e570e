"""The GPU of a rank under every form of CUDA_VISIBLE_DEVICES."""

import pytest

from automl.executors.ray.gpus import gpu_index


@pytest.mark.parametrize(
    "assigned, setting, index",
    [
        ("3", "3", 0), ("2", "2,3", 0), ("3", "2,3", 1), ("2", "3,2", 1), ("3", "3, 2", 0), ("1", None, 1),
        ("GPU-bbbb", "GPU-aaaa,GPU-bbbb", 1), ("GPU-bbbb", "GPU-bbbb", 0),
    ],
)  # fmt: skip
def test_gpu_has_the_number_of_its_place_in_the_setting(assigned: str, setting: str | None, index: int) -> None:
    assert gpu_index(assigned, setting) == index


def test_gpu_that_is_not_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES=0"):
        gpu_index("3", "0")
