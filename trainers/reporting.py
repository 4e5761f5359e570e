"""What a training tells and what it is told: reports go up, one decision comes down.

These are plain values without torch, so that the driver, the database layer and the simulator can use them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

__all__ = ["CheckpointFile", "Decision", "JsonValue", "Report", "Reporter", "TrialResult"]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class Decision(Enum):
    """What a running trial does after a report."""

    CONTINUE = "continue"
    """Train the next epoch."""
    STOP = "stop"
    """End now; the trial is pruned at the epoch it has reported."""
    PAUSE = "pause"
    """End now, but keep the checkpoint: the trial goes on later, perhaps on another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """A checkpoint that is completely on disk.

    Attributes:
        path: POSIX path relative to the artifacts root; never absolute.
        epoch: number of epochs the checkpoint contains, at least 1.
        digest: SHA-256 of the file, hexadecimal.
        size_bytes: size of the file.
    """

    path: str
    epoch: int
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The state of a trial after an epoch.

    Attributes:
        epoch: number of finished epochs, counted from 1 over all attempts of the trial.
        metrics: name -> value of everything measured in this epoch, the objective among them.
        checkpoint: the checkpoint of this epoch, or None when none was written.
        line: how the log tells of the epoch; None: it does not.
    """

    epoch: int
    metrics: Mapping[str, float]
    checkpoint: CheckpointFile | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """How a training left its loop.

    Attributes:
        outcome: `completed` (all epochs, or early stopping), `stopped` or `paused` (it was told so).
        epoch: number of finished epochs.
        facts: what was really used and counted: `precision`, `parameters`, `skipped_steps`, ... (plain JSON).
    """

    outcome: Literal["completed", "stopped", "paused"]
    epoch: int
    facts: Mapping[str, JsonValue] = field(default_factory=dict)


Reporter: TypeAlias = Callable[[Report], Decision]
"""Takes a report to whoever decides and waits for the answer; called on rank 0 only."""
