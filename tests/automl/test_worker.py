"""What goes wrong in a task, told in words that help: datasets that move to the GPU, ranks with different tasks."""

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, random_split

from automl import worker
from automl.memory_kills import MemoryKills
from automl.retries import is_tried_again
from automl.worker import Failure, describe_failure, run_task
from tests.contracts.executor_contract import toy_task
from tests.helpers.memory_limits import memory_limit_for
from tests.helpers.toy import ToyTrainer
from tests.helpers.trials import make_trial
from tests.trainers.rank_pool import RankPool
from trainers.config import TrainTask
from trainers.distributed import Ranks, forget_frames
from trainers.errors import PeerFailedError, UserCodeError
from trainers.reporting import Decision, Report, Reporter, TrialResult


class MovesToTheGpu(Dataset[torch.Tensor]):
    """Four numbers, moved where they must not be moved."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, item: int) -> torch.Tensor:
        if not torch.cuda.is_available():
            return torch.tensor([item]).cuda()
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, ...")


class RaisesItsOwn(MovesToTheGpu):
    def __getitem__(self, item: int) -> torch.Tensor:
        raise ZeroDivisionError("a mistake of the dataset's own")


def error_of(dataset: Dataset[torch.Tensor]) -> Exception:
    try:
        for _ in DataLoader(dataset, num_workers=2):
            pass
    except Exception as error:
        return error
    raise AssertionError("the dataset raised nothing")


def test_dataset_that_moves_to_the_gpu_in_a_worker_is_named_with_what_to_do() -> None:
    failure = describe_failure(error_of(MovesToTheGpu()), rank=1)
    assert (failure.cause, failure.is_follow_up) == ("user_error", False)
    assert failure.message.startswith("the dataset MovesToTheGpu asks for CUDA in a worker process of its DataLoader")
    assert failure.message.endswith("return CPU tensors, and move to the device in the training step")
    assert "in __getitem__" in failure.traceback


@pytest.mark.slow
def test_dataset_inside_of_a_split_is_named() -> None:
    part, _ = random_split(MovesToTheGpu(), [2, 2])
    assert describe_failure(error_of(part), rank=0).message.startswith("the dataset MovesToTheGpu ")


def test_dataset_is_found_by_its_file_where_the_variables_are_gone() -> None:
    error = error_of(MovesToTheGpu())
    forget_frames(error)
    assert f"the dataset's code at {__file__}, line " in describe_failure(error, rank=0).message


def test_advice_is_given_for_an_error_that_was_raised_from_it() -> None:
    wrapped = UserCodeError("reading failed")
    wrapped.__cause__ = error_of(MovesToTheGpu())
    failure = describe_failure(wrapped, rank=0)
    assert failure.cause == "user_error"
    assert "MovesToTheGpu" in failure.message


@pytest.mark.slow
def test_other_error_of_a_worker_keeps_its_words() -> None:
    failure = describe_failure(error_of(RaisesItsOwn()), rank=0)
    assert (failure.cause, failure.error) == ("user_error", "ZeroDivisionError")
    assert "a mistake of the dataset's own" in failure.message


def test_cuda_error_outside_of_a_loader_keeps_its_words() -> None:
    error = AssertionError("Torch not compiled with CUDA enabled")
    assert describe_failure(error, rank=0).message == str(error)


def run_own_task(ranks: Ranks, tasks: Mapping[int, TrainTask]) -> Any:
    reported: list[Report] = []

    def reporter(report: Report) -> Decision:
        reported.append(report)
        return Decision.CONTINUE

    return run_task(tasks[ranks.rank], ToyTrainer(), "digits", ranks, reporter), len(reported)


@pytest.mark.slow
def test_ranks_with_another_task_are_named_before_anything_is_trained(tmp_path: Path) -> None:
    task, other = toy_task(tmp_path), toy_task(tmp_path, x=0.1234567890123)
    four = RankPool(4, tmp_path)
    try:
        apart = four.run(run_own_task, {0: task, 1: task, 2: other, 3: other})
        alike = four.run(run_own_task, dict.fromkeys(range(4), task))
    finally:
        four.stop()
    for outcome, reports in apart:
        assert isinstance(outcome, Failure)
        assert (outcome.cause, outcome.error) == ("rank_error", "RanksDivergedError")
        assert outcome.message.startswith("ranks 2 and 3 got another task than rank 0; digests: rank 0: ")
        assert reports == 0
    assert [outcome.outcome for outcome, _ in alike] == ["completed"] * 4  # the group is as good as before


# Out of memory, and workers of a DataLoader that are gone


class EndsItsWorker(MovesToTheGpu):
    """As the kernel does for want of memory."""

    def __getitem__(self, item: int) -> torch.Tensor:
        if item == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor([item])


class Hoards(MovesToTheGpu):
    """Takes memory until there is none left."""

    def __getitem__(self, item: int) -> torch.Tensor:
        hoard = [bytearray(b"x" * 2**26) for _ in range(128)]
        raise AssertionError(f"{len(hoard)} pieces were there")


class OwnLoader(ToyTrainer):
    """Its data are the dataset."""

    def fit(self, task: TrainTask, data: Any, ranks: Ranks, reporter: Reporter) -> TrialResult:
        for _ in DataLoader(data, num_workers=1):
            pass
        raise AssertionError("the worker is alive")


def failure_of_loader(dataset: Dataset[torch.Tensor], folder: Path) -> Failure:
    def reporter(report: Report) -> Decision:
        raise AssertionError("nothing is reported")

    outcome = run_task(toy_task(folder), OwnLoader(), dataset, Ranks.alone(), reporter)
    assert isinstance(outcome, Failure)
    return outcome


def failure_in_a_thread(dataset: Dataset[torch.Tensor], folder: Path) -> Failure:
    """As in a rank, which trains in a thread of its own: there torch cannot tell the signal."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(failure_of_loader, dataset, folder).result(60.0)


def let_the_kernel_count(monkeypatch: pytest.MonkeyPatch, *kills: int) -> None:
    counts = iter(kills)
    monkeypatch.setattr(worker, "memory_kills", lambda *counter: MemoryKills(Path("counter"), next(counts)))


@pytest.mark.parametrize(
    "run", [failure_of_loader, pytest.param(failure_in_a_thread, marks=pytest.mark.slow)], ids=["main", "thread"]
)
def test_loader_worker_that_the_kernel_ended_for_want_of_memory_is_a_memory_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[[Dataset[torch.Tensor], Path], Failure]
) -> None:
    let_the_kernel_count(monkeypatch, 7, 8)
    failure = run(EndsItsWorker(), tmp_path)
    assert (failure.cause, failure.is_memory_kill, failure.error) == ("oom", True, "RuntimeError")
    assert "--memory-per-trial" in failure.message
    assert is_tried_again(make_trial(0), failure, max_retries=0)


def test_loader_worker_that_was_killed_otherwise_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_the_kernel_count(monkeypatch, 7, 7)
    failure = failure_of_loader(EndsItsWorker(), tmp_path)
    assert (failure.cause, failure.is_memory_kill) == ("lost", False)
    assert "ended it from outside" in failure.message


def caught(raising: Exception) -> Exception:
    try:
        raise raising
    except Exception as error:
        return error


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        MemoryError(),
    ],
    ids=["device", "words of the device", "machine", "python"],
)
def test_memory_that_an_own_trainer_cannot_get_is_out_of_memory_and_no_kill(error: Exception) -> None:
    failure = describe_failure(caught(error), rank=0)
    assert (failure.cause, failure.is_memory_kill, failure.is_follow_up) == ("oom", False, False)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("the batch is out of memory"), "user_error"),
        (OSError(errno.ENOSPC, "not enough memory on the disk"), "disk_full"),
        (PeerFailedError("rank 1 is out of memory"), "rank_error"),
    ],
)
def test_error_that_only_speaks_of_memory_keeps_its_cause(error: Exception, cause: str) -> None:
    assert describe_failure(caught(error), rank=0).cause == cause


@pytest.mark.slow
def test_loader_worker_that_hoards_is_ended_by_the_kernel_and_told_as_a_memory_kill(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        pid = process.submit(os.getpid).result(60.0)
        with memory_limit_for(pid, 512 * 2**20):
            failure = process.submit(failure_of_loader, Hoards(), tmp_path).result(60.0)
    assert (failure.cause, failure.is_memory_kill) == ("oom", True)
