"""What the trials of a study teach, as arrays that are kept up to date from one look to the next."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from automl.objective import is_infeasible, loss_of, observed_value, to_loss
from automl.samplers.surrogate.dimensions import Dimensions, Rows
from search_spaces.errors import InvalidConfigurationError, SpaceRuleError
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from trainers.config import Direction

__all__ = ["Lesson", "Records"]


_ROOM = 64
"""Trials that the arrays hold before they grow."""


class Lesson(IntEnum):
    """What a trial is to a model."""

    NOTHING = 0
    """It failed for a reason of its own, was queued, or is of another space."""
    RESULT = 1
    """Its loss is known."""
    BAD = 2
    """It cannot be trained, or its loss was no number: as bad as the worst."""
    PENDING = 3
    """It is being trained."""


class Records:
    """The trials of one study in one space.

    Only trials that have changed since the last look are read anew; what is known depends on the last look alone.

    Args:
        space: what is searched.
        direction: whether larger or smaller objectives are better.

    Attributes:
        dimensions: the columns of the rows.
        rows: a row for each trial.
        losses: a loss for each trial; infinite where there is none.
        lessons: a `Lesson` for each trial.
        epochs: the last epoch that each trial has reported; 0: none.
    """

    def __init__(self, space: SearchSpace, direction: Direction) -> None:
        self.space = space
        self.dimensions = Dimensions(space)
        self._direction: Direction = direction
        self._trials: list[Trial] = []
        self._names: list[bytes] = []
        self._keys: list[str | None] = []
        self._known_rows: set[bytes] = set()
        self._known_keys: set[str | None] = set()
        self._rows: Rows = np.empty((_ROOM, len(self.dimensions)))
        self._losses: NDArray[np.float64] = np.empty(_ROOM)
        self._lessons: NDArray[np.int8] = np.empty(_ROOM, dtype=np.int8)
        self._epochs: NDArray[np.int64] = np.empty(_ROOM, dtype=np.int64)

    @property
    def rows(self) -> Rows:
        """A row for each trial."""
        return self._rows[: len(self._trials)]

    @property
    def losses(self) -> NDArray[np.float64]:
        """A loss for each trial."""
        return self._losses[: len(self._trials)]

    @property
    def lessons(self) -> NDArray[np.int8]:
        """A `Lesson` for each trial."""
        return self._lessons[: len(self._trials)]

    @property
    def epochs(self) -> NDArray[np.int64]:
        """The last epoch that each trial has reported; 0: none."""
        return self._epochs[: len(self._trials)]

    def loss_at(self, at: int, epoch: int) -> float:
        """What a trial reported after an epoch; infinite: nothing, or no number."""
        value = self._trials[at].reports.get(epoch)
        return float("inf") if value is None else to_loss(value, self._direction)

    def look(self, trials: Sequence[Trial]) -> None:
        """Read the trials that are not those of the last look."""
        count = min(len(trials), len(self._trials))
        changed = [at for at in range(count) if trials[at] is not self._trials[at]]
        same = all(trials[at].configuration == self._trials[at].configuration for at in changed)
        if len(trials) < len(self._trials) or not same:
            self._trials, self._names, self._keys, changed, count = [], [], [], [], 0
            self._known_rows, self._known_keys = set(), set()
        for at in changed:
            self._trials[at] = trials[at]
            self._learn(at)
        for at in range(count, len(trials)):
            self._add(trials[at])

    def is_known(self, row: Rows) -> bool:
        """Whether a trial has this row."""
        return row.tobytes() in self._known_rows

    def is_known_by_key(self, key: str | None) -> bool:
        """Whether a trial describes the same network and training; see `SearchSpace.key`."""
        return key is not None and key in self._known_keys

    def _add(self, trial: Trial) -> None:
        at = len(self._trials)
        if at == len(self._rows):
            self._make_room(2 * at)
        self._trials.append(trial)
        row, key = self._read(trial)
        self._rows[at] = row
        self._names.append(row.tobytes())
        self._keys.append(key)
        if trial.state is not TrialState.QUEUED:
            self._known_rows.add(self._names[at])
            self._known_keys.add(key)
        self._learn(at)

    def _read(self, trial: Trial) -> tuple[Rows, str | None]:
        """The row and the key of a trial; a row without a number: it is of another space."""
        try:
            valid = self.space.validate(trial.configuration)
            key = self.space.key(valid)
        except InvalidConfigurationError:
            return np.full(len(self.dimensions), np.nan), None
        except SpaceRuleError:
            key = None
        return self.dimensions.row(valid), key

    def _learn(self, at: int) -> None:
        trial = self._trials[at]
        loss = loss_of(trial, self._direction)
        self._losses[at] = loss
        self._epochs[at] = trial.last_epoch
        if trial.state is not TrialState.QUEUED:
            self._known_rows.add(self._names[at])
            self._known_keys.add(self._keys[at])
        self._lessons[at] = Lesson.NOTHING if np.isnan(self._rows[at]).all() else _lesson(trial, loss)

    def _make_room(self, count: int) -> None:
        """Enlarge the arrays; what they hold stays."""
        self._rows = np.resize(self._rows, (count, len(self.dimensions)))
        self._losses = np.resize(self._losses, count)
        self._lessons = np.resize(self._lessons, count)
        self._epochs = np.resize(self._epochs, count)


def _lesson(trial: Trial, loss: float) -> Lesson:
    if observed_value(trial) is not None:
        return Lesson.RESULT if np.isfinite(loss) else Lesson.BAD
    if is_infeasible(trial) or (trial.state is TrialState.FAILED and trial.cause == "non_finite"):
        return Lesson.BAD
    return Lesson.PENDING if trial.state in (TrialState.RUNNING, TrialState.PAUSED) else Lesson.NOTHING
