"""The ranks of one trial: who am I, and what do all of us agree on.

The main group (NCCL on GPUs, gloo on CPUs) carries gradients and sums; a side group on CPUs (always gloo)
carries decisions and objects, so that a word about control never waits for a device. Reading a field never
communicates.

A group outlives its trials. Whoever closes it must first have dropped every DistributedDataParallel that used
it: its destructor waits for ever once the group is gone.
"""

import gc
import hashlib
import logging
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from trainers.devices import device_of_rank
from trainers.equal_copies import buffers_to_share, checksum
from trainers.errors import PeerFailedError, RanksDivergedError, causes
from trainers.memory_limits import memory_owner
from trainers.reporting import Decision

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

__all__ = ["Ranks", "forget_frames", "open_ranks"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

_DECISIONS = tuple(Decision)
_SHOWN_DIGITS = 12
"""Digits of a digest in messages: enough to tell ranks apart by eye."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process's place among the processes that train one trial together.

    Attributes:
        rank: 0 to `world_size` - 1; rank 0 reports and writes checkpoints.
        world_size: number of processes.
        device: where this rank computes.
        main: the group for tensors on `device`; None for a single rank.
        side: the CPU group for decisions and objects; None for a single rank.
        on_this_machine: how many of the ranks share this machine's memory, this one included.
    """

    rank: int
    world_size: int
    device: torch.device
    main: dist.ProcessGroup | None = None
    side: dist.ProcessGroup | None = None
    on_this_machine: int = 1

    @classmethod
    def alone(cls, device: torch.device | str | None = None) -> "Ranks":
        """Return a single rank without any process group; device None: the first GPU, or else the CPU."""
        return cls(rank=0, world_size=1, device=_indexed(device) if device else default_device(0))

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def broadcast_decision(self, decision: Decision | None) -> Decision:
        """Give rank 0's decision to all ranks; the other ranks pass None.

        Raises:
            ValueError: rank 0 passed None.
        """
        if self.is_first and decision is None:
            raise ValueError("rank 0 must bring a decision: continue, stop or pause")
        if self.side is None:
            assert decision is not None
            return decision
        code = torch.tensor([_DECISIONS.index(decision) if decision is not None else 0])
        dist.broadcast(code, group=self.side, group_src=0)
        return _DECISIONS[int(code)]

    def gather_objects(self, value: T) -> list[T]:
        """Return the picklable values of all ranks, in rank order, on every rank."""
        if self.side is None:
            return [value]
        values: list[T | None] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.side)
        return [value for value in values if value is not None]

    def sum_(self, tensor: torch.Tensor) -> torch.Tensor:
        """Replace a tensor on `device` by its sum over all ranks, in place, and return it."""
        if self.main is not None:
            dist.all_reduce(tensor, group=self.main)
        return tensor

    @contextmanager
    def together(self, doing: str) -> Iterator[None]:
        """Run a block that does not communicate, and leave it together: all ranks, or none.

        A rank that fails raises its own error; the others raise PeerFailedError instead of waiting for it later.

        Args:
            doing: what the block does, for the message.

        Raises:
            PeerFailedError: another rank failed in its block.
        """
        try:
            yield
        except Exception as error:
            self._failures(f"{type(error).__name__}: {error}")
            raise
        failures = self._failures("")
        if failures:
            raise PeerFailedError(f"{doing} failed on {'; '.join(failures)}")

    def _failures(self, failure: str) -> list[str]:
        """Exchange what went wrong; one small collective when nothing did."""
        if self.side is None:
            return []
        count = torch.tensor([1 if failure else 0])
        dist.all_reduce(count, group=self.side)
        if int(count) == 0:
            return []
        return [f"rank {rank}: {text}" for rank, text in enumerate(self.gather_objects(failure)) if text]

    def average_buffers(self, network: nn.Module) -> None:
        """Make the buffers of a network equal on all ranks, in place.

        Running statistics of batch normalisation become their mean over the ranks; every other buffer (and
        the count of seen batches) becomes rank 0's.
        """
        if self.main is None:
            return
        averaged, copied = buffers_to_share(network)
        if averaged:
            flat = torch.cat([buffer.reshape(-1).to(torch.float32) for buffer in averaged])
            self.sum_(flat).div_(self.world_size)
            for buffer, values in zip(averaged, torch.split(flat, [b.numel() for b in averaged]), strict=True):
                buffer.copy_(values.view_as(buffer))
        for buffer in copied:
            dist.broadcast(buffer, group=self.main, group_src=0)

    def check_equal(self, network: nn.Module) -> None:
        """Compare checksums of all weights and buffers over the ranks.

        Two 64-bit sums per tensor, of its bits read as integers and of their squares; costs about one pass
        over the weights and one small collective.

        Raises:
            RanksDivergedError: a tensor differs; the message names the first one.
        """
        if self.main is None:
            return
        tensors = {name: tensor for name, tensor in network.state_dict().items() if tensor.numel()}
        if not tensors:
            return
        mine = torch.stack([checksum(tensor) for tensor in tensors.values()])
        sums = [torch.empty_like(mine) for _ in range(self.world_size)]
        dist.all_gather(sums, mine, group=self.main)
        differs = (torch.stack(sums) != sums[0]).any(dim=2).cpu()  # (ranks, tensors)
        if bool(differs.any()):
            rank, index = (int(i) for i in differs.nonzero()[0])
            raise RanksDivergedError(
                f"rank {rank} and rank 0 hold different values of {list(tensors)[index]!r} "
                f"({int(differs.any(dim=0).sum())} of {len(tensors)} tensors differ)"
            )

    def check_same(self, what: str, value: bytes | str) -> None:
        """Compare a digest of what every rank was given; one small collective on the CPU side group.

        Args:
            what: what the value is, for the message, such as `task`.
            value: a text or bytes that must be the same on all ranks.

        Raises:
            RanksDivergedError: ranks hold another value than most (than rank 0, where no value has a majority); the
                message names them. It is raised on all ranks.
        """
        if self.side is None:
            return
        own = hashlib.sha256(value.encode() if isinstance(value, str) else value).digest()
        mine = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        all_of_them = [torch.empty_like(mine) for _ in range(self.world_size)]
        dist.all_gather(all_of_them, mine, group=self.side)
        digests = [bytes(digest.tolist()) for digest in all_of_them]
        _log.debug("compared over the ranks what=%s digest=%s", what, own.hex()[:_SHOWN_DIGITS])
        if len(set(digests)) > 1:
            raise RanksDivergedError(_told_apart(what, digests))

    def close(self) -> None:
        """Leave the groups; every DistributedDataParallel over them must have been dropped before."""
        if self.main is not None:
            gc.collect()  # a wrapper that only a reference cycle keeps alive would hang in its destructor
            dist.destroy_process_group()


def open_ranks(
    rank: int,
    world_size: int,
    store: "Store",
    device: torch.device | str | None = None,
    timeout_s: float = 600.0,
) -> Ranks:
    """Join the ranks of one worker group; returns when all of them have come.

    Args:
        rank: this process's place.
        world_size: number of ranks; 1 opens no process group at all.
        store: where the ranks find each other, made by the caller (a TCPStore on a free port, a FileStore).
        device: where this rank computes; None: the GPU with this rank's number modulo the GPUs, or else the CPU.
        timeout_s: how long a collective waits for a peer before it raises; seconds.

    Raises:
        RuntimeError: this process is already a member of a group.
    """
    own_device = _indexed(device) if device else default_device(rank)
    if world_size == 1:
        return Ranks.alone(own_device)
    if dist.is_initialized():
        raise RuntimeError("this process already belongs to a group of ranks; close it before opening another")
    on_gpu = own_device.type == "cuda"
    if on_gpu:
        torch.cuda.set_device(own_device)
    timeout = timedelta(seconds=timeout_s)
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        store=store,
        rank=rank,
        world_size=world_size,
        timeout=timeout,
        device_id=own_device if on_gpu else None,
    )
    side = dist.new_group(backend="gloo", timeout=timeout)
    ranks = Ranks(rank=rank, world_size=world_size, device=own_device, main=dist.group.WORLD, side=side)
    machine = memory_owner()
    return replace(ranks, on_this_machine=ranks.gather_objects(machine).count(machine))


def default_device(rank: int) -> torch.device:
    """Return the GPU for a rank, round robin, or the CPU of a machine without one."""
    return torch.device(device_of_rank(rank, torch.cuda.device_count() if torch.cuda.is_available() else 0))


def _told_apart(what: str, digests: Sequence[bytes]) -> str:
    """Say which ranks hold another value than most of them, or than rank 0 on a tie."""
    counts = Counter(digests)
    usual = max(digests, key=lambda digest: counts[digest])  # of equals the first, which is rank 0's
    odd = [rank for rank, digest in enumerate(digests) if digest != usual]
    shown = ", ".join(f"rank {rank}: {digest.hex()[:_SHOWN_DIGITS]}" for rank, digest in enumerate(digests))
    ranks = f"rank {odd[0]}" if len(odd) == 1 else f"ranks {', '.join(map(str, odd[:-1]))} and {odd[-1]}"
    return f"{ranks} got another {what} than rank {digests.index(usual)}; digests: {shown}"


def _indexed(device: torch.device | str) -> torch.device:
    """Return a device with its number: "cuda" alone is the current GPU."""
    named = torch.device(device)
    if named.type == "cuda" and named.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return named


def forget_frames(error: BaseException) -> None:
    """Drop the local variables that an error's tracebacks keep alive, a DistributedDataParallel among them.

    Whoever keeps the error (to report it, say) would otherwise keep the wrapper, and `Ranks.close` would hang.
    """
    for link in causes(error):
        traceback.clear_frames(link.__traceback__)
