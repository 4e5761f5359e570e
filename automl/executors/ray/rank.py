"""One rank of a worker group, inside a Ray worker process.

At import this module needs only the standard library, Ray and modules of ours that need no more: our packages are put
first on the import path before anything else of theirs is loaded.
"""

import os
import queue
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray

from automl.env import put_own_packages_first, visible_devices

if TYPE_CHECKING:
    from automl.executors.ray.watch import Pulse
    from automl.worker import Failure, Outcome, Task
    from trainers.config import Precision
    from trainers.distributed import Ranks
    from trainers.reporting import Decision, Report
    from trainers.trainer import Trainer

__all__ = ["Began", "Place", "Rank", "Unusable"]


@dataclass(frozen=True, slots=True)
class Began:
    """The first answer of a new process: rank 0 is set up and works on its first task."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """The process cannot run any task of this search, or the group cannot be joined; no fault of the task.

    Attributes:
        failure: why.
        is_for_good: whether every new process on this machine would meet the same.
    """

    failure: "Failure"
    is_for_good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A rank's place in its group.

    Attributes:
        rank: 0 to `ranks` - 1.
        ranks: processes of the group.
        has_gpu: whether a GPU, or a share of one, is reserved for it.
        timeout_s: how long a collective operation may take.
    """

    rank: int
    ranks: int
    has_gpu: bool
    timeout_s: float


class Rank:
    """Keeps torch, the device, the data and the process group warm from one trial to the next.

    Ray runs `set_up`, `open_store`, `join` and `work` one after the other, in the order of the calls and in one thread;
    `exchange` and `pulse` run beside them in concurrency groups of their own. The driver never waits for a set-up step:
    what goes wrong there is the answer to the first task.
    """

    def __init__(self, place: Place) -> None:
        put_own_packages_first()
        from automl.executors.ray.offspring import take_care_of_processes
        from automl.executors.ray.vital_signs import VitalSigns

        take_care_of_processes()
        self._place = place
        self._signs = VitalSigns()
        self._trainer: Trainer | None = None
        self._data: Any = None
        self._ranks: Ranks | None = None
        self._unusable: Unusable | None = None
        self._is_new = True
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._decisions: queue.SimpleQueue[Decision] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Began | Report | Outcome | Failure | Unusable] = queue.SimpleQueue()

    @ray.method(concurrency_group="control")
    def pulse(self) -> "Pulse":
        """What this process does at the moment, also while it trains."""
        return self._signs.pulse()

    @ray.method(concurrency_group="control")
    def process(self) -> int:
        """The process that runs this rank."""
        return os.getpid()

    def set_up(self, trainer: str, data: Any, threads: int, versions: Mapping[str, str]) -> None:
        """Import torch and the trainer, and keep the data, which Ray shares among the processes of a machine.

        Args:
            trainer: reference of the trainer.
            data: what its `load` returned.
            threads: threads that torch computes with.
            versions: what the driver runs with.
        """
        from automl.executors.ray.offspring import take_care_of_processes
        from automl.executors.ray.versions import mismatch, own_versions
        from trainers.errors import UnknownTrainerError

        take_care_of_processes()  # for this thread, in which trials run
        try:
            differing = mismatch(versions, own_versions(), socket.gethostname())
            if differing is not None:
                raise RuntimeError(differing)
            import torch

            from trainers.tasks import load_trainer

            torch.set_num_threads(threads)
            self._trainer = load_trainer(trainer)
            self._data = data
        except UnknownTrainerError as error:  # the driver has it
            is_file = trainer.endswith(".py")
            advice = "put it there, too" if is_file else "install it there, or set PYTHONPATH before `ray start`"
            error.args = (f"machine {socket.gethostname()} cannot import {trainer}; {advice}",)
            self._refuse(error, rank=None, is_for_good=True)
        except Exception as error:
            self._refuse(error, rank=None, is_for_good=not _may_pass(error))

    def open_store(self) -> tuple[str, int]:
        """Open the rendezvous of the group on a port that the system chooses; return its host and port."""
        host = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]  # Ray's own
        try:
            from torch._C._distributed_c10d import TCPStore

            self._store = TCPStore(host, 0, self._place.ranks, is_master=True, wait_for_workers=False)
        except Exception as error:
            self._refuse(error, rank=0)
            return host, 0  # nobody listens there: the other ranks fail, too
        return host, self._store.port

    def join(self, address: tuple[str, int] | None, precision: "Precision") -> None:
        """Take the place in the process group; a group of one needs no rendezvous.

        Args:
            address: the rendezvous; None for a group of one.
            precision: what the search trains with, which this device must be able to.
        """
        from trainers.errors import UnsupportedDeviceError

        if self._unusable is not None:
            return
        place = self._place
        try:
            import torch
            from torch._C._distributed_c10d import TCPStore

            from trainers.distributed import Ranks, open_ranks
            from trainers.precision import check_precision

            device = torch.device("cuda", _gpu_index()) if place.has_gpu else torch.device("cpu")
            check_precision(precision, device)
            if address is None:
                self._ranks = Ranks.alone(device)
                return
            if place.rank > 0:
                host, port = address
                self._store = TCPStore(host, port, place.ranks, is_master=False)
            self._ranks = open_ranks(place.rank, place.ranks, self._store, device, place.timeout_s)
        except UnsupportedDeviceError as error:
            self._refuse(error, rank=place.rank, is_for_good=True)
        except Exception as error:
            self._refuse(error, rank=place.rank)

    def work(self) -> None:
        """Run tasks as they come, for as long as the process lives; its end is that of the process."""
        try:
            while True:
                self._answers.put(self._run(self._tasks.get()))
        finally:
            os._exit(1)  # nobody would answer any more

    @ray.method(concurrency_group="exchange")
    def exchange(self, message: "Task | Decision | None") -> "Began | Report | Outcome | Failure | Unusable":
        """Give the process something, and wait for what it has to say: one answer to each message.

        Args:
            message: a task, which is answered by its first report or its end; a decision, answered by the next report
                or the end; None after `Began`, answered likewise.
        """
        from trainers.reporting import Decision

        if isinstance(message, Decision):
            self._decisions.put(message)
        elif message is not None:
            self._tasks.put(message)
        return self._answers.get()

    def _run(self, task: "Task") -> "Outcome | Failure | Unusable":
        """Train or evaluate; failures are returned, not raised."""
        from automl.leftovers import no_leftovers
        from automl.worker import run_task
        from trainers.errors import PeerFailedError

        if self._ranks is None and self._unusable is None:
            # Ray has left out `join`, as rank 0 has ended before it could open the rendezvous.
            self._refuse(PeerFailedError("rank 0 has ended before its peers came"), rank=self._place.rank)
        if self._unusable is not None:
            return self._unusable
        assert self._ranks is not None
        assert self._trainer is not None
        if self._is_new and self._place.rank == 0:
            self._answers.put(Began())
        self._is_new = False
        with self._signs.watched(), no_leftovers():
            return run_task(task, self._trainer, self._data, self._ranks, self._ask)

    def _ask(self, report: "Report") -> "Decision":
        self._answers.put(report)
        return self._decisions.get()

    def _refuse(self, error: Exception, *, rank: int | None, is_for_good: bool = False) -> None:
        """Answer every task by this error."""
        from automl.worker import describe_failure

        self._unusable = Unusable(describe_failure(error, rank), is_for_good)


def _may_pass(error: BaseException | None) -> bool:
    """Whether the system has refused something that it may give the next time, such as a file of a busy server."""
    while error is not None:
        if isinstance(error, OSError):
            return True
        error = error.__cause__
    return False


def _gpu_index() -> int:
    """The number under which torch knows the GPU that Ray has reserved for this process."""
    from automl.executors.ray.gpus import gpu_index

    (assigned,) = ray.get_runtime_context().get_accelerator_ids()["GPU"]
    return gpu_index(assigned, visible_devices())
