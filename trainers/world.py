"""The ranks that somebody else has started, such as torchrun: told by environment variables, joined instead of made."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["World", "joined", "world_in"]

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """This process's place among ranks that run already.

    Attributes:
        rank: 0 to `world_size` - 1.
        world_size: at least 2.
        local_rank: place among those of this machine.
        local_world_size: how many of them are on this machine.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int


def world_in(environment: Mapping[str, str]) -> World | None:
    """Return the world that the environment tells of; None: this process is alone.

    Args:
        environment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and others set them. LOCAL_RANK and
            LOCAL_WORLD_SIZE are those of a machine with a single rank, where they are missing.

    Raises:
        ValueError: a variable is no number, or a rank does not belong to its world.
    """
    if not all(environment.get(name) for name in _NEEDED):
        return None
    rank, world_size = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    local_rank = _number(environment, "LOCAL_RANK", default="0")
    local_world_size = _number(environment, "LOCAL_WORLD_SIZE", default=str(local_rank + 1))
    if rank >= world_size or local_rank >= local_world_size:
        raise ValueError(
            f"RANK={rank} of WORLD_SIZE={world_size}, LOCAL_RANK={local_rank} of LOCAL_WORLD_SIZE={local_world_size}: "
            "ranks are counted from 0; start them by torchrun, or unset these variables"
        )
    if world_size == 1:
        return None
    return World(rank=rank, world_size=world_size, local_rank=local_rank, local_world_size=local_world_size)


@contextmanager
def joined(world: World, device: str | None) -> "Iterator[Ranks]":
    """Take the place in a world; all its ranks must come. After an error the groups are left to the process's end.

    Args:
        world: from `world_in`.
        device: see `trainers.devices.devices_of_ranks`.

    Raises:
        UnsupportedDeviceError: there is no such device for each rank.
    """
    import torch
    from torch.distributed.rendezvous import rendezvous

    from trainers.devices import devices_of_ranks
    from trainers.distributed import open_ranks

    own_device = devices_of_ranks(world.local_world_size, device, torch.cuda.device_count())[world.local_rank]
    store, rank, world_size = next(rendezvous("env://", world.rank, world.world_size))
    ranks = open_ranks(rank, world_size, store, own_device)
    yield ranks
    ranks.close()


def _number(environment: Mapping[str, str], name: str, default: str = "") -> int:
    text = environment.get(name) or default
    if not text.isdecimal():
        raise ValueError(f"the environment variable {name}={text!r} is no whole number; start the ranks by torchrun")
    return int(text)
