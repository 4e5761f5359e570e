"""Which device a rank computes on, and which GPUs this process has.

CUDA numbers the GPUs that it shows anew, from 0: with `CUDA_VISIBLE_DEVICES=2,3` the process has `cuda:0` and `cuda:1`,
and no `cuda:2`. Nothing here changes a setting. Torch is loaded only where it is asked.
"""

import re
import warnings
from dataclasses import dataclass

from trainers.errors import UnsupportedDeviceError

__all__ = ["Gpu", "GpusOfTorch", "device_of_rank", "devices_of_ranks", "gpus_of_torch", "visible_gpus"]

_NAMED = ("GPU-", "MIG-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU that torch can compute on.

    Attributes:
        name: as the driver calls it.
        memory_bytes: all of its memory.
        capability: major and minor number of what it can compute.
    """

    name: str
    memory_bytes: int
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusOfTorch:
    """What torch finds in this process.

    Attributes:
        gpus: in the order of their numbers, `cuda:0` first.
        build: version of CUDA or ROCm that torch was built for; None: torch was built for CPUs only.
        troubles: what torch said about a driver that it cannot use.
    """

    gpus: tuple[Gpu, ...]
    build: str | None
    troubles: tuple[str, ...]


def device_of_rank(local_rank: int, visible: int) -> str:
    """The device of a rank, round robin over the GPUs of its process, or `cpu` without one.

    Args:
        local_rank: place among the ranks of this machine, from 0.
        visible: how many GPUs this process sees; where it is shown a single one, as by Ray, that is `cuda:0`.
    """
    return f"cuda:{local_rank % visible}" if visible > 0 else "cpu"


def devices_of_ranks(count: int, wish: str | None, visible: int) -> tuple[str, ...]:
    """The devices of the ranks of one machine: a GPU for each of them, or the CPU for all.

    Args:
        count: ranks of this machine.
        wish: `cpu`, `cuda`, or `cuda:NUMBER` for a single rank; None: GPUs, or the CPU of a machine without one.
        visible: how many GPUs a process of this machine sees.

    Raises:
        UnsupportedDeviceError: there is no such device, or a rank would have none of its own.
    """
    if wish == "cpu" or (wish is None and visible == 0):
        return ("cpu",) * count
    name, colon, number = (wish or "cuda").partition(":")
    if name != "cuda" or bool(colon) != number.isdecimal():
        raise UnsupportedDeviceError(f"no device {wish!r}; give cpu, cuda, or cuda:NUMBER")
    if visible == 0:
        raise UnsupportedDeviceError(f"{wish}: torch sees no GPU here; give cpu")
    if colon and count > 1:
        raise UnsupportedDeviceError(f"{wish} is one GPU for {count} ranks; give cuda: a GPU for each")
    if colon and int(number) >= visible:
        raise UnsupportedDeviceError(f"no device {wish!r}; torch sees {_gpus(visible)} here, the first one is cuda:0")
    if count > visible:
        raise UnsupportedDeviceError(
            f"{count} ranks need a GPU each, and torch sees {_gpus(visible)} here; use fewer ranks, or the device cpu"
        )
    return (f"cuda:{number}",) if colon else tuple(f"cuda:{rank}" for rank in range(count))


def visible_gpus(setting: str | None, gpus: int) -> tuple[str, ...]:
    """Which GPUs of a machine a setting of CUDA_VISIBLE_DEVICES shows, in the order of their new numbers.

    A list ends before its first entry that is none: a negative number, one that the machine does not have, another
    word. An entry that is there twice hides all. This is how torch reads the setting.

    Args:
        setting: the variable's text, such as `2,3` or `GPU-8f6b,GPU-1c2d`; None: not set, so that all are shown.
        gpus: how many GPUs the machine has.

    Returns:
        The machine's numbers of the GPUs, or their names as they were given.
    """
    if setting is None:
        return tuple(map(str, range(gpus)))
    prefix = next((prefix for prefix in _NAMED if setting.startswith(prefix)), None)
    shown: list[str] = []
    for entry in setting.split(","):
        name = _number(entry, gpus) if prefix is None else entry.strip() if entry.startswith(prefix) else None
        if name in shown:
            return ()
        if name is None:
            break
        shown.append(name)
    return tuple(shown)


def gpus_of_torch() -> GpusOfTorch:
    """Ask torch for the GPUs of this process; loads torch, and keeps what it warns of for the answer."""
    import torch

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        gpus = tuple(_gpu(torch.cuda.get_device_properties(index)) for index in range(count))
    troubles = tuple(dict.fromkeys(str(warning.message) for warning in said))
    return GpusOfTorch(gpus=gpus, build=torch.version.cuda or torch.version.hip, troubles=troubles)


def _gpus(count: int) -> str:
    return "one GPU" if count == 1 else f"{count} GPUs"


def _gpu(properties: object) -> Gpu:
    name, memory = getattr(properties, "name", "unknown"), getattr(properties, "total_memory", 0)
    capability = (getattr(properties, "major", 0), getattr(properties, "minor", 0))
    return Gpu(name=name, memory_bytes=memory, capability=capability)


def _number(entry: str, gpus: int) -> str | None:
    """The number that an entry begins with, as C's strtoul reads it; None: it is of no GPU of the machine."""
    match = re.match(r"[+-]?\d+", entry.strip())
    number = int(match[0]) if match else -1
    return str(number) if 0 <= number < gpus else None
