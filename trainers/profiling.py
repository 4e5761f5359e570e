"""Looks at a few training steps with PyTorch's profiler: a trace for a browser, and the dearest operators."""

import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from trainers.artifact_files import write_file

__all__ = ["TABLE", "TRACE", "Operator", "StepProfile", "operator_table"]

logger = logging.getLogger(__name__)

LOOKED_AT = 3
"""Steps that are recorded: they show what varies from step to step, and a trace of more is slow to open."""
WARM_UP = 2
"""Steps before: one in which libraries set themselves up, and one with the profiler at work, which is slow at first."""
ROWS = 10
_SILENT = "99"
"""Above every level of the profiler's own log, which tells its beginning and end on standard error."""
TRACE, TABLE = "profile-trace.json", "profile-operators.txt"


class Operator(NamedTuple):
    """An operator: its time without what it calls, in microseconds, and how often it was called."""

    name: str
    own_us: float
    calls: int


class StepProfile:
    """Profiles the first epoch that a process trains; later epochs run as if it were not there.

    Args:
        folder: folder or URL where both files go: a trace that chrome://tracing and https://ui.perfetto.dev open, and
            the table of the dearest operators as text.
        device: where the steps run.
        steps: optimizer steps of the epoch; with few of them there is no warm-up.
    """

    def __init__(self, folder: str, device: torch.device, steps: int) -> None:
        self._folder, self._device = folder, device
        os.environ.setdefault("KINETO_LOG_LEVEL", _SILENT)  # torch's profiler reads it when it is first used
        warm_up = WARM_UP if steps >= WARM_UP + LOOKED_AT else 0
        self._recorded = min(LOOKED_AT, steps - warm_up)
        self._left = warm_up + self._recorded
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
        self._profiler = profile(
            activities=activities,
            schedule=schedule(wait=1, warmup=WARM_UP - 1, active=LOOKED_AT, repeat=1) if warm_up else None,
            acc_events=True,
        )
        self._is_running = False

    def begin(self) -> None:
        """Begin an epoch."""
        if self._left:
            self._profiler.start()
            self._is_running = True

    def step_done(self) -> None:
        """Take notice of a step; after the last one that is looked at, the files are written."""
        if not self._is_running:
            return
        self._left -= 1
        if self._left:
            self._profiler.step()
        else:
            self._stop()
            self._write()

    def close(self) -> None:
        """End the profiler where an error has cut the steps short; nothing is written."""
        if self._is_running:
            self._stop()

    def _stop(self) -> None:
        self._is_running = False
        self._profiler.stop()

    def _write(self) -> None:
        table = self._table()
        write_file(f"{self._folder}/{TABLE}", lambda file: file.write(table.encode()))
        with tempfile.TemporaryDirectory(prefix="automl-") as folder:
            trace = Path(folder, TRACE)
            self._profiler.export_chrome_trace(str(trace))
            write_file(f"{self._folder}/{TRACE}", lambda file: _copy(trace, file))
        logger.info("profile of %d steps in %s\n%s", self._recorded, self._folder, table.rstrip())

    def _table(self) -> str:
        on_gpu = self._device.type == "cuda"
        operators = [
            Operator(found.key, found.self_device_time_total if on_gpu else found.self_cpu_time_total, found.count)
            for found in self._profiler.key_averages()
            if not found.key.startswith("ProfilerStep")  # the steps themselves
        ]
        return operator_table(operators)


def operator_table(operators: Sequence[Operator]) -> str:
    """Return the dearest operators, a line each: their own time without what they call, its share, and their calls."""
    whole = sum(operator.own_us for operator in operators)
    lines = [f"{'own ms':>10}  {'share':>6}  {'calls':>7}  operator"]
    for operator in sorted(operators, key=lambda operator: -operator.own_us)[:ROWS]:
        share = 100.0 * operator.own_us / whole if whole else 0.0
        lines.append(f"{operator.own_us / 1000.0:10.3f}  {share:4.1f} %  {operator.calls:7d}  {operator.name}")
    return "\n".join(lines) + "\n"


def _copy(source: Path, target: BinaryIO) -> None:
    with source.open("rb") as file:
        shutil.copyfileobj(file, target)
