"""Real processes for tests of several ranks: they stay open, so that torch is imported once."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from trainers.distributed import Ranks

__all__ = ["RankPool"]

Check: TypeAlias = Callable[..., Any]
REPLY_TIMEOUT_S = 60.0


class RankPool:
    """Ranks of one group, each in its own process, which run module-level functions `check(ranks, *arguments)`."""

    def __init__(self, world_size: int, folder: Path) -> None:
        self._folder = folder
        self._opened = 0
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes = []
        for rank in range(world_size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, world_size, theirs), daemon=True)
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)
        self.reopen()

    def run(self, check: Check, *arguments: Any) -> list[Any]:
        """Run a check on all ranks; return its results, or the errors that it raised, in rank order."""
        for connection in self._connections:
            connection.send((check, arguments))
        return [self._reply(rank) for rank in range(len(self._connections))]

    def reopen(self) -> None:
        """Close the group and open another one in the same processes."""
        self._opened += 1
        replies = self.run(_open, str(self._folder / f"store-{self._opened}"))
        assert replies == ["open"] * len(self._processes), replies

    def stop(self) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join(timeout=10.0)
            if process.is_alive():
                process.kill()
                process.join()

    def _reply(self, rank: int) -> Any:
        assert self._connections[rank].poll(REPLY_TIMEOUT_S), f"rank {rank} does not answer"
        return self._connections[rank].recv()


def _open(ranks: Ranks | None, store: str) -> str:
    raise AssertionError("handled by _serve")


def _serve(rank: int, world_size: int, connection: Connection) -> None:
    import torch
    from torch._C._distributed_c10d import FileStore

    from trainers.distributed import open_ranks

    torch.set_num_threads(1)
    ranks: Ranks | None = None
    kept: list[Exception] = []  # a caller may keep errors; the group must close all the same
    while True:
        try:
            check, arguments = connection.recv()
        except EOFError:
            return
        try:
            if check is _open:
                if ranks is not None:
                    ranks.close()
                ranks = open_ranks(rank, world_size, FileStore(arguments[0], world_size), timeout_s=30.0)
                reply: Any = "open"
            else:
                reply = check(ranks, *arguments)
        except Exception as error:
            kept.append(error)
            reply = error
        connection.send(reply)
