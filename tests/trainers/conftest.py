from collections.abc import Iterator

import numpy as np
import pytest
import torch

from tests.trainers.rank_pool import RankPool
from trainers.data.arrays import ImageData, LabelledImages, cut_images
from trainers.data.sources import load_images
from trainers.data.spec import DataSpec


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def digits() -> ImageData:
    return load_images(DataSpec())


@pytest.fixture(scope="session")
def few_digits(digits: ImageData) -> ImageData:
    """101 training and 60 validation images."""
    items = np.arange(101)
    return cut_images(
        LabelledImages(
            train=digits.train.at(items),
            validation=digits.validation.at(items[:60]),
            test=digits.train.at(np.arange(101, 150)),
            class_names=digits.class_names,
        ),
        DataSpec(),
    )


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankPool]:
    pool = RankPool(2, tmp_path_factory.mktemp("pair"))
    yield pool
    pool.stop()
