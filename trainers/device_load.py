"""How busy a device is with a training, and how much of its memory is taken; asking never waits for the device."""

import logging
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal

import psutil
import torch

from trainers.memory_limits import memory_limit_bytes

__all__ = ["CpuLoad", "DeviceLoad", "GpuLoad", "load_of"]

logger = logging.getLogger(__name__)

_SAMPLE_S = 1.0
"""NVML counts the busy share of its last sample period, 1/6 s to 1 s; asking more often tells nothing new."""
_STATUS = Path("/proc/self/status")
_FORGET_PEAK = (Path("/proc/self/clear_refs"), "5")
"""What makes Linux count a process's peak of memory anew, see proc_pid_clear_refs(5)."""


class DeviceLoad(ABC):
    """The load of one rank's device; made before the network is, for each training anew.

    Attributes:
        name: `cpu` or `gpu`, as in a line of the log.
        memory_limit_bytes: what this process may take at most.
        sharers: how many ranks share the device's memory in equal parts, this one included.
    """

    name: Literal["cpu", "gpu"]
    memory_limit_bytes: int
    sharers: int = 1

    @abstractmethod
    def begin(self) -> None:
        """Begin to look at an epoch."""

    @abstractmethod
    def look(self) -> None:
        """Take notice of the present load; called after each step."""

    @abstractmethod
    def utilisation(self) -> float | None:
        """Return how busy the device was since `begin`, in percent; None where nobody can tell."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Return the memory that is taken now."""

    @abstractmethod
    def peak_memory_bytes(self) -> int:
        """Return the most memory that was taken since this object was made."""

    @abstractmethod
    def available_bytes(self) -> int:
        """Return how much more memory this process can get at most."""


class CpuLoad(DeviceLoad):
    """The CPUs as this process uses them, without the processes that load its data.

    100 % are all threads that torch computes with. Memory is what the process has resident, Python and torch included.

    Args:
        sharers: how many ranks of the training are on this machine; each may take an equal part of its memory.
    """

    name = "cpu"

    def __init__(self, sharers: int = 1) -> None:
        self.sharers = sharers
        self._process = psutil.Process()
        limits = (psutil.virtual_memory().total, memory_limit_bytes())
        self.memory_limit_bytes = min(limit for limit in limits if limit is not None) // sharers
        self._counts_peaks = _forget_peak()
        self._most = 0
        self.begin()

    def begin(self) -> None:
        """Remember the clocks."""
        self._began, self._computed = time.perf_counter(), time.process_time()

    def look(self) -> None:
        """Do nothing: the clocks tell all."""

    def utilisation(self) -> float:
        """Return the processor time of all threads as a share of what torch's threads could have had."""
        elapsed = max(time.perf_counter() - self._began, 1e-9)
        return 100.0 * (time.process_time() - self._computed) / (elapsed * torch.get_num_threads())

    def memory_bytes(self) -> int:
        """Return the resident memory."""
        resident: int = self._process.memory_info().rss
        self._most = max(self._most, resident)
        return resident

    def peak_memory_bytes(self) -> int:
        """Return the most resident memory; where the system does not count it anew, the most that was seen."""
        now = self.memory_bytes()
        return max(now, _peak_of_status()) if self._counts_peaks else self._most

    def available_bytes(self) -> int:
        """Return what the process does not have yet of all that it may have; what others hold may become free."""
        return self.memory_limit_bytes - self.memory_bytes()


class GpuLoad(DeviceLoad):
    """One GPU; its memory is what torch has allocated there for this process, and its limit the whole of it."""

    name = "gpu"

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.memory_limit_bytes = torch.cuda.get_device_properties(device).total_memory
        self._is_told = True
        self._samples: list[float] = []
        self._last_sample = 0.0
        torch.cuda.reset_peak_memory_stats(device)

    def begin(self) -> None:
        """Forget the samples."""
        self._samples = []
        self._last_sample = time.perf_counter()

    def look(self) -> None:
        """Ask the driver, once a second."""
        if self._is_told and time.perf_counter() - self._last_sample >= _SAMPLE_S:
            self._sample()

    def utilisation(self) -> float | None:
        """Return the mean of the samples; a short epoch has one, of its end."""
        if self._is_told and not self._samples:
            self._sample()
        return sum(self._samples) / len(self._samples) if self._samples else None

    def memory_bytes(self) -> int:
        """Return the peak: at the end of an epoch nothing is allocated but the network."""
        return self.peak_memory_bytes()

    def peak_memory_bytes(self) -> int:
        """Return the most that torch had allocated."""
        return torch.cuda.max_memory_allocated(self._device)

    def available_bytes(self) -> int:
        """Return what is free on the device, and what torch keeps of it without using it."""
        free, _ = torch.cuda.mem_get_info(self._device)
        kept = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return int(free + kept)

    def _sample(self) -> None:
        self._last_sample = time.perf_counter()
        try:
            self._samples.append(float(torch.cuda.utilization(self._device)))
        except Exception as error:  # the bindings are optional, and have errors of their own where a GPU tells nothing
            self._is_told = False
            logger.debug("utilisation of %s is not measured reason=%s", self._device, error)


def load_of(device: torch.device, ranks_here: int = 1) -> DeviceLoad:
    """Begin to look at the load of a rank's device, on a machine with so many ranks of the training."""
    return GpuLoad(device) if device.type == "cuda" else CpuLoad(ranks_here)


def _forget_peak() -> bool:
    file, word = _FORGET_PEAK
    try:
        file.write_text(word)
    except OSError:
        return False  # not on this system, or not in this container
    return True


def _peak_of_status() -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 2**10  # the kernel writes kB
    return 0
