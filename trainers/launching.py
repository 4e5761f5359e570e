"""Runs a training on one or several ranks of this machine, without a cluster: each rank is a process of its own.

A search has its own executors; this is for whoever trains one configuration. Ctrl-C is the parent's alone: it ends the
ranks. When the parent is gone, however it ended, they leave by themselves.
"""

import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TypeAlias

import psutil
import torch

from trainers.carried_errors import packed, unpacked
from trainers.devices import devices_of_ranks
from trainers.distributed import Ranks, forget_frames, open_ranks
from trainers.errors import TrialError, is_consequence
from trainers.reporting import Decision, Report, Reporter, TrialResult

__all__ = ["RankDiedError", "Work", "run_on_ranks"]

Work: TypeAlias = Callable[[Ranks, Reporter], TrialResult]
"""What every rank does; picklable when there are several ranks."""

PEERS_GRACE_S = 5.0
"""Seconds that the other ranks have to tell their side after one has failed."""
LOOK_S = 1.0
"""How often is looked whether a rank lives: what it has started may hold its connection open after its end."""


class RankDiedError(TrialError):
    """A rank's process ended without a word."""

    cause = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a rank belongs.

    Attributes:
        rank: 0 to `world_size` - 1.
        world_size: how many there are.
        device: where it computes.
        threads: how many torch computes with; None: as the environment says.
        folder: where the ranks meet; whoever is left last removes it.
    """

    rank: int
    world_size: int
    device: str
    threads: int | None
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A message of a rank: a report that waits for its answer, a result, or an error and what that was raised from."""

    report: Report | None = None
    result: TrialResult | None = None
    errors: Sequence[BaseException] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """A rank as its parent sees it."""

    place: _Place
    process: SpawnProcess
    connection: Connection


def run_on_ranks(work: Work, world_size: int, reporter: Reporter, *, device: str | None = None) -> TrialResult:
    """Do some work on every rank and return rank 0's result.

    A single rank works in this process. Several are processes that are gone when this returns, with what they have
    started, also after an error or an interrupt. They share the threads of this process, unless OMP_NUM_THREADS is set.

    Args:
        work: called with a rank's place and its reporter.
        world_size: number of ranks, at least 1.
        reporter: asked in this process.
        device: `cpu`, or `cuda` for a GPU each; `cuda:NUMBER` for a single rank; None: GPUs, or the CPU without any.

    Raises:
        TrialError: what the first rank that failed has raised.
        RankDiedError: a rank's process ended without a word.
        UnsupportedDeviceError: there is no such device for each rank.
    """
    devices = devices_of_ranks(world_size, device, torch.cuda.device_count())
    if world_size == 1:
        return work(Ranks.alone(devices[0]), reporter)
    threads = None if "OMP_NUM_THREADS" in os.environ else max(1, torch.get_num_threads() // world_size)
    packed_work = pickle.dumps(work, protocol=5)  # multiprocessing's own protocol has no buffers of arrays
    ranks: list[_Process] = []
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        try:
            with _deaf_to_interrupts():
                for rank, own in enumerate(devices):
                    place = _Place(rank=rank, world_size=world_size, device=own, threads=threads, folder=folder)
                    ranks.append(_started(packed_work, place))
            return _follow(ranks, reporter)
        finally:
            _end(ranks)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started here not see Ctrl-C, which a terminal sends to them, too."""
    resource_tracker.ensure_running()  # otherwise the first start of a process does it, and lets the signal in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _started(work: bytes, place: _Place) -> _Process:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # No daemon of multiprocessing: such a process may not start others, and data may be read by some.
    process = context.Process(target=_serve, args=(work, place, theirs), name=f"rank {place.rank}", daemon=False)
    process.start()
    theirs.close()
    return _Process(place=place, process=process, connection=ours)


def _end(ranks: Sequence[_Process]) -> None:
    """End all ranks together, so that none complains of another, and what they have started."""
    started: list[psutil.Process] = []
    for rank in ranks:
        with suppress(psutil.NoSuchProcess):
            started += psutil.Process(rank.process.pid).children(recursive=True)
    for rank in ranks:
        rank.process.kill()
    for rank in ranks:
        rank.process.join()
        rank.connection.close()
    _kill(started)


def _kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _follow(ranks: Sequence[_Process], reporter: Reporter) -> TrialResult:
    """Answer reports until every rank is done, or one has failed and the others had their say."""
    waiting, results = list(ranks), dict[int, TrialResult]()
    errors: list[BaseException] = []
    deadline: float | None = None
    while waiting and (deadline is None or time.monotonic() < deadline):
        ready = wait([rank.connection for rank in waiting], LOOK_S)
        for rank in [rank for rank in waiting if rank.connection in ready or rank.process.exitcode is not None]:
            told = _heard_from(rank)
            if told.report is not None:
                decision = reporter(told.report)
                with suppress(ConnectionError):  # it has ended meanwhile, which the next look finds
                    rank.connection.send(decision)
                continue
            waiting.remove(rank)
            if told.errors:
                errors.append(unpacked(told.errors))
                deadline = deadline or time.monotonic() + PEERS_GRACE_S
            else:
                assert told.result is not None
                results[rank.place.rank] = told.result
    if errors:
        raise min(errors, key=is_consequence)
    return results[0]


def _heard_from(rank: _Process) -> _Told:
    try:
        if rank.connection.poll():
            told: _Told = rank.connection.recv()
            return told
    except (EOFError, ConnectionError):
        pass  # it has ended, or is about to
    rank.process.join()
    code = rank.process.exitcode or 0
    how = f"has ended with exit code {code}"
    if code < 0:
        how = f"was ended by {signal.Signals(-code).name}"
    if code == -signal.SIGKILL:
        how += ": from outside, or because the machine's memory was full"
    return _Told(errors=[RankDiedError(f"the process of rank {rank.place.rank} {how}")])


def _serve(work: bytes, place: _Place, connection: Connection) -> None:
    """Work as one rank; the process's main function."""
    from torch._C._distributed_c10d import FileStore

    threading.Thread(target=_leave_with_the_parent, args=(place.folder,), name="parent", daemon=True).start()
    if place.threads is not None:
        torch.set_num_threads(place.threads)

    def reporter(report: Report) -> Decision:
        connection.send(_Told(report=report))
        decision: Decision = connection.recv()
        return decision

    try:
        own_work: Work = pickle.loads(work)
        store = FileStore(f"{place.folder}/store", place.world_size)
        ranks = open_ranks(place.rank, place.world_size, store, place.device)
        told = _Told(result=own_work(ranks, reporter))
        ranks.close()
    except BaseException as error:
        forget_frames(error)
        told = _Told(errors=packed(error))
    connection.send(told)


def _leave_with_the_parent(folder: str) -> None:
    """End this process, and what it has started, when its parent is gone: nobody would answer any more."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(Path(folder), ignore_errors=True)  # the other ranks do the same at this moment
    _kill(psutil.Process().children(recursive=True))
    os._exit(1)
