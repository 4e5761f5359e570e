import logging
import multiprocessing
import random
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from automl.worker import Failure, run_task
from tests.trainers.custom.own import Reports, own_task, write
from trainers.data.batches import epoch_batches, epoch_order, micro_batches
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.errors import BadDataError, UserCodeError
from trainers.feeding import loader
from trainers.feeding.items import Collation, KeyPlan
from trainers.feeding.loader import ItemReader
from trainers.feeding.targets import TargetCheck
from trainers.tasks import load_trainer

ITEMS = 64


class Draws:
    """Items that are what they draw from each generator, and who has read them."""

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, item: int) -> tuple[Any, int]:
        draws = [np.random.randint(2**31), random.randrange(2**31), int(torch.randint(2**31, ()))]
        return torch.tensor([*draws, multiprocessing.current_process().pid or 0]), item


def draws_of(rank: int, ranks: int, epoch: int, workers: int, seed: int = 1) -> torch.Tensor:
    order = torch.from_numpy(epoch_order(ITEMS, seed, epoch))
    parts = [part for batch in epoch_batches(ITEMS, 16) for part in micro_batches(batch, 8, rank, ranks)]
    reader = ItemReader(Draws(), seed=seed, workers=workers, device=torch.device("cpu"))
    return torch.cat([batch.inputs[0] for batch in reader.read(KeyPlan(order, parts, epoch))])


def test_no_worker_rank_or_epoch_draws_what_another_one_does() -> None:
    drawn = [draws_of(rank, 2, epoch, workers=2) for epoch in (1, 2) for rank in (0, 1)]
    assert all(len(set(part[:, 3].tolist())) == 2 for part in drawn), "two workers have read"
    for generator in range(3):
        values = torch.cat(drawn)[:, generator].tolist()
        assert len(set(values)) == len(values) == 2 * ITEMS
    again = draws_of(0, 2, 1, workers=2)
    assert torch.equal(again[:, :3], drawn[0][:, :3])
    assert not torch.equal(draws_of(0, 2, 1, workers=0, seed=2)[:, :3], drawn[0][:, :3])


def test_draws_depend_neither_on_workers_nor_on_ranks() -> None:
    whole = draws_of(0, 1, 1, workers=0)
    torch.testing.assert_close(draws_of(0, 1, 1, workers=2)[:, :3], whole[:, :3], rtol=0, atol=0)
    halves = torch.cat([draws_of(rank, 2, 1, workers=0) for rank in (0, 1)])
    assert set(map(tuple, halves[:, :3].tolist())) == set(map(tuple, whole[:, :3].tolist()))


@pytest.mark.parametrize("workers", [0, 1])
def test_reading_leaves_the_generators_alone(workers: int) -> None:
    def states() -> list[Any]:
        return [random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()]

    before = states()
    draws_of(0, 1, 1, workers)
    assert states() == before


def test_batches_without_room_in_shared_memory_are_read_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loader, "shared_memory_bytes", lambda: 1000)
    with caplog.at_level(logging.WARNING):
        drawn = draws_of(0, 1, 1, workers=2)
    assert set(drawn[:, 3].tolist()) == {multiprocessing.current_process().pid}
    assert "2 loader workers need" in caplog.text and "/dev/shm has 0 MiB free" in caplog.text
    assert "--shm-size" in caplog.text


class FullMemory(Draws):
    def __getitem__(self, item: int) -> tuple[Any, int]:
        raise RuntimeError("unable to write to file </torch_123_456>: No space left on device (28)")


def test_worker_without_shared_memory_is_told_with_its_size() -> None:
    reader = ItemReader(FullMemory(), seed=1, workers=1, device=torch.device("cpu"))
    reader._has_room = lambda plan, workers: True  # type: ignore[method-assign]  # it was enough a moment ago
    with pytest.raises(loader.SharedMemoryError, match=r"no shared memory left: /dev/shm has \d+ MiB free"):
        list(reader.read(KeyPlan(torch.arange(4), [slice(0, 4)], 1)))


class OneWrong(Draws):
    """Items of which the class is 0, but for one."""

    def __getitem__(self, item: int) -> tuple[Any, int]:
        return torch.zeros(1), -100 if item == 50 else 0


@pytest.mark.parametrize("workers", [0, 2])
def test_wrong_target_is_told_with_its_number_in_the_dataset(workers: int) -> None:
    before = set(psutil.Process().children())
    check = TargetCheck(place="own.py: train", classes=2)
    reader = ItemReader(OneWrong(), seed=1, workers=workers, device=torch.device("cpu"), check=check)
    order = torch.arange(ITEMS).flip(0)
    batches = reader.read(KeyPlan(order, [slice(0, 8), slice(8, 16), slice(16, 24)], 1))
    assert next(batches).targets.tolist() == [0] * 8
    with pytest.raises(BadDataError, match=r"own\.py: train item 50 has the target -100") as kept:
        next(batches)
    assert set(psutil.Process().children()) == before, f"the workers are gone while this is kept: {kept}"


@pytest.mark.parametrize(
    "items, words",
    [
        ([1.0, 2.0], r"an item of the dataset is a float; needed: \(input, target\)"),
        ([(1.0, 2.0, 3.0)], "3 values"),
        ([("text", 1)], "hold a str"),
        ([({"a": 1}, 1)], "hold a dict"),
    ],
)
def test_items_that_make_no_batch_are_refused(items: list[Any], words: str) -> None:
    with pytest.raises(UserCodeError, match=words):
        Collation()(items)


def test_items_become_the_numbers_that_networks_take() -> None:
    items = [((np.float64(1), np.array([1], dtype=np.int16)), True), ((np.float64(2), np.array([2], np.int16)), False)]
    (first, second), targets = Collation()(items)
    assert (first.dtype, second.dtype, targets.dtype) == (torch.float32, torch.int64, torch.int64)
    assert (first.tolist(), second.tolist(), targets.tolist()) == ([1.0, 2.0], [[1], [2]], [1, 0])


CUDA = """
    import torch
    from torch import nn
    from search_spaces import Float, SearchSpace

    SPACE = SearchSpace("own", {"learning_rate": Float(low=0.0, high=1.0)})

    class OnTheDevice:
        def __len__(self):
            return 8
        def __getitem__(self, item):
            return torch.zeros(2).cuda() if torch.utils.data.get_worker_info() else torch.zeros(2), item % 2

    def datasets(source):
        return OnTheDevice(), OnTheDevice()

    def build_model(configuration):
        return nn.Linear(2, 2)
    """


@pytest.mark.skipif(torch.cuda.is_available(), reason="the error of a machine without CUDA")
def test_dataset_that_asks_for_cuda_in_a_worker_is_named_with_the_way_out(tmp_path: Path) -> None:
    file = write(tmp_path, "data.py", CUDA)
    trainer = load_trainer(str(file))
    task = own_task(tmp_path, str(file), {"learning_rate": 0.1}, batch_size=4, loader_workers=1)
    failure = run_task(task, trainer, trainer.load(DataSpec()), Ranks.alone("cpu"), Reports())
    assert isinstance(failure, Failure)
    assert failure.cause == "user_error"
    assert "the dataset OnTheDevice asks for CUDA" in failure.message
    assert "move to the device in the training step" in failure.message
