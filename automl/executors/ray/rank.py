"""One rank of a worker group, inside a Ray worker process.

At import this module needs only the standard library and Ray: our packages are put first on the import path before
anything of theirs is loaded.
"""

import os
import queue
from typing import TYPE_CHECKING, Any

import ray

from automl.env import put_own_packages_first

if TYPE_CHECKING:
    from automl.worker import Failure, Outcome, Task
    from trainers.distributed import Ranks
    from trainers.reporting import Decision, Report
    from trainers.trainer import Trainer

__all__ = ["Rank"]


class Rank:
    """Keeps torch, the device, the data and the process group warm from one trial to the next.

    Ray runs `set_up`, `join` and `run` one after the other in the order of the calls; `next_report` and `process` run
    beside them in concurrency groups of their own. The driver never waits for a set-up step: what goes wrong there is
    told by the first `run`.
    """

    def __init__(self) -> None:
        put_own_packages_first()
        self._trainer: Trainer | None = None
        self._data: Any = None
        self._ranks: Ranks | None = None
        self._setup_failure: Failure | None = None
        self._reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
        self._decisions: queue.SimpleQueue[Decision] = queue.SimpleQueue()

    @ray.method(concurrency_group="control")
    def process(self) -> int:
        """The process that runs this rank, also while it trains."""
        return os.getpid()

    def set_up(self, trainer: str, data: Any, threads: int) -> None:
        """Import torch and the trainer, and keep the data, which Ray shares among the processes of a machine."""
        from automl.worker import describe_failure

        try:
            import torch

            from trainers.tasks import load_trainer

            torch.set_num_threads(threads)
            self._trainer = load_trainer(trainer)
            self._data = data
        except Exception as error:
            self._setup_failure = describe_failure(error, rank=None)

    def open_store(self, world_size: int) -> tuple[str, int]:
        """Open the rendezvous of the group on a port that the system chooses; return its host and port."""
        from automl.worker import describe_failure

        host = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]  # Ray's own
        try:
            from torch._C._distributed_c10d import TCPStore

            self._store = TCPStore(host, 0, world_size, is_master=True, wait_for_workers=False)
        except Exception as error:
            self._setup_failure = describe_failure(error, rank=0)
            return host, 0  # nobody listens there: the other ranks fail, too
        return host, self._store.port

    def join(
        self, rank: int, world_size: int, address: tuple[str, int] | None, timeout_s: float, has_gpu: bool
    ) -> None:
        """Take a place in the process group; a group of one needs no rendezvous.

        Ray shows each rank the one GPU that it reserved, so that it is always number 0.
        """
        from automl.worker import describe_failure

        if self._setup_failure is not None:
            return
        try:
            import torch
            from torch._C._distributed_c10d import TCPStore

            from trainers.distributed import Ranks, open_ranks

            device = torch.device("cuda", 0) if has_gpu else torch.device("cpu")
            if address is None:
                self._ranks = Ranks.alone(device)
                return
            if rank > 0:
                host, port = address
                self._store = TCPStore(host, port, world_size, is_master=False)
            self._ranks = open_ranks(rank, world_size, self._store, device, timeout_s)
        except Exception as error:
            self._setup_failure = describe_failure(error, rank=rank)

    def run(self, task: "Task") -> "Outcome | Failure":
        """Train or evaluate; failures are returned, not raised."""
        from automl.worker import run_task

        if self._setup_failure is not None:
            return self._finish(self._setup_failure)
        assert self._trainer is not None
        assert self._ranks is not None
        return self._finish(run_task(task, self._trainer, self._data, self._ranks, self._ask))

    @ray.method(concurrency_group="reports")
    def next_report(self, decision: "Decision | None") -> "Report | None":
        """Answer the last report, if there was one, and wait for the next; None: the task has ended."""
        if decision is not None:
            self._decisions.put(decision)
        return self._reports.get()

    def _ask(self, report: "Report") -> "Decision":
        self._reports.put(report)
        return self._decisions.get()

    def _finish(self, outcome: "Outcome | Failure") -> "Outcome | Failure":
        self._reports.put(None)
        return outcome
