"""Runs a training on one or several ranks of this machine, without a cluster: each rank is a process of its own.

A search has its own executors; this is for whoever trains one configuration.
"""

import multiprocessing
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TypeAlias

from trainers.distributed import Ranks, forget_frames, open_ranks
from trainers.errors import TrialError, is_consequence
from trainers.reporting import Decision, Report, Reporter, TrialResult

__all__ = ["RankDiedError", "Work", "run_on_ranks"]

Work: TypeAlias = Callable[[Ranks, Reporter], TrialResult]
"""What every rank does; picklable when there are several ranks."""

PEERS_GRACE_S = 5.0
"""Seconds that the other ranks have to tell their side after one has failed."""
COLLECTIVE_TIMEOUT_S = 600.0
"""Seconds that a rank waits for its peers in one collective."""


class RankDiedError(TrialError):
    """A rank's process ended without a word, or its error cannot be carried over."""

    cause = "lost"


@dataclass(frozen=True, slots=True)
class _Told:
    """A message of a rank: a report that waits for its answer, a result, or an error."""

    report: Report | None = None
    result: TrialResult | None = None
    error: BaseException | None = None


def run_on_ranks(work: Work, world_size: int, reporter: Reporter, *, device: str | None = None) -> TrialResult:
    """Do some work on every rank and return rank 0's result.

    A single rank works in this process. Several are processes that are gone when this returns, also after an error or
    an interrupt.

    Args:
        work: called with a rank's place and its reporter.
        world_size: number of ranks, at least 1.
        reporter: asked in this process.
        device: of every rank, such as `cpu`; None: one GPU each, or the CPU without GPUs.

    Raises:
        TrialError: what the first rank that failed has raised.
        RankDiedError: a rank's process ended without a word.
    """
    if world_size == 1:
        return work(Ranks.alone(device), reporter)
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        ranks = [_start(context, work, rank, world_size, f"{folder}/store", device) for rank in range(world_size)]
        try:
            return _follow(dict(enumerate(ranks)), reporter)
        finally:
            for process, connection in ranks:
                connection.close()
                process.kill()  # the groups are closed where all went well; a process that is gone is left alone
                process.join()


def _start(
    context: SpawnContext, work: Work, rank: int, world_size: int, store: str, device: str | None
) -> tuple[SpawnProcess, Connection]:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, rank, world_size, store, device, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _follow(ranks: dict[int, tuple[SpawnProcess, Connection]], reporter: Reporter) -> TrialResult:
    """Answer reports until every rank is done, or one has failed and the others had their say."""
    waiting, results, errors = dict(ranks), {}, {}
    deadline: float | None = None
    while waiting and (deadline is None or time.monotonic() < deadline):
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = wait([connection for _, connection in waiting.values()], timeout)
        for rank in [rank for rank, (_, connection) in waiting.items() if connection in ready]:
            process, connection = waiting[rank]
            told = _receive(rank, process, connection)
            if told.report is not None:
                connection.send(reporter(told.report))
                continue
            del waiting[rank]
            if told.error is not None:
                errors[rank] = told.error
                deadline = deadline or time.monotonic() + PEERS_GRACE_S
            else:
                assert told.result is not None
                results[rank] = told.result
    if errors:
        raise min(errors.values(), key=is_consequence)
    return results[0]


def _receive(rank: int, process: SpawnProcess, connection: Connection) -> _Told:
    try:
        told: _Told = connection.recv()
    except (EOFError, ConnectionError):
        process.join()
        return _Told(error=RankDiedError(f"the process of rank {rank} has ended with exit code {process.exitcode}"))
    return told


def _serve(work: Work, rank: int, world_size: int, store: str, device: str | None, connection: Connection) -> None:
    """Work as one rank; the process's main function."""
    from torch._C._distributed_c10d import FileStore

    def reporter(report: Report) -> Decision:
        connection.send(_Told(report=report))
        decision: Decision = connection.recv()
        return decision

    try:
        ranks = open_ranks(rank, world_size, FileStore(store, world_size), device, COLLECTIVE_TIMEOUT_S)
        told = _Told(result=work(ranks, reporter))
        ranks.close()
    except BaseException as error:
        forget_frames(error)
        told = _Told(error=_portable(error))
    connection.send(told)


def _portable(error: BaseException) -> BaseException:
    """Return an error that crosses the border of a process, with the traceback of this one as a note."""
    text = "".join(traceback.format_exception(error))
    try:
        copy: BaseException = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever a class of somebody else's does while it is copied
        copy = RankDiedError(f"{type(error).__name__}: {error}")
    copy.add_note(text)
    return copy
