"""All trials of a study in memory: reads what changed, and nothing else.

An ended trial never changes, and is read once. Of the others one statement reads where they stand, and only those whose
revision differs are read again; what this process has written itself is not read back.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row, Select

from studies.picture import Picture
from studies.standing import Standing
from studies.study_rows import StudyRow
from studies.trial import JsonScalar, Lease, Trial, TrialState
from studies.trial_reading import heads_among, heads_query, read_trials, trial_of
from studies.trial_rows import OPTUNA_STATES

__all__ = ["Snapshot"]


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """What was last seen of a trial that may still change.

    Attributes:
        mark: differs when something was written to the trial; None: a trial of plain Optuna, which has no such mark.
        expires_in_s: what was left of its lease; None without one.
    """

    number: int
    mark: tuple[int, str, int] | None
    expires_in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """What this process has written to a trial that it brought to life; valid while the trial has this revision."""

    configuration: Mapping[str, JsonScalar]
    attributes: Mapping[str, object]
    optuna_state: str = "RUNNING"
    revision: int = 0
    reports: Mapping[int, float] = field(default_factory=dict)
    value: float | None = None


class Snapshot:
    """The trials of one study, as they were when `refresh` last looked; safe for threads."""

    def __init__(self, study: StudyRow) -> None:
        self._study = study
        self._lock = threading.Lock()
        self._trials: list[Trial] = []  # in order of their numbers
        self._copy: tuple[Trial, ...] | None = ()
        self._unfinished: dict[int, _Unfinished] = {}
        self._own: dict[int, _Own] = {}
        self._last_id: int | None = None
        self._ended_places = 0

    def refresh(self, connection: Connection) -> Standing | None:
        """Read new trials, and what changed of the unfinished ones, in the caller's transaction.

        Returns:
            How the study stands; None when it was deleted.
        """
        return self.look(connection).standing

    def look(self, connection: Connection) -> Picture:
        """Like `refresh`; all that is to be seen then."""
        rows = connection.execute(*self.question()).all()
        with self._lock:
            return self._picture(self._answer(connection, rows))

    def question(self) -> tuple[Select[Any], dict[str, Any]]:
        """The statement that asks what is new, and its values."""
        with self._lock:
            return heads_query(self._study, self._last_id, self._unfinished)

    def look_after_report(
        self, connection: Connection, rows: Sequence[Row[Any]] | None, lease: Lease, epoch: int, value: float
    ) -> Picture:
        """Take over a report that this process has just stored, and look; the report is in the picture.

        Another thread's look that is older may be taken in at any time before or after, but not within.

        Args:
            connection: holds the transaction of the report, or has committed it.
            rows: the answer to `question` that came with the report, perhaps from just before it; None: ask now.
            lease: the trial's.
            epoch: of the report.
            value: the objective.
        """
        if rows is None:
            rows = connection.execute(*self.question()).all()
        with self._lock:
            if (own := self._own.get(lease.trial_id)) is not None:
                reports = dict(sorted({**own.reports, epoch: value}.items()))
                self._own[lease.trial_id] = replace(own, revision=own.revision + 1, reports=reports)
            standing = self._answer(connection, rows)
            if lease.trial_id in self._unfinished:
                self._put_report(lease.number, epoch, value)
            return self._picture(standing)

    def trials(self) -> tuple[Trial, ...]:
        """All trials, in order of their numbers."""
        with self._lock:
            return self._in_order()

    @property
    def next_number(self) -> int:
        """The number of the trial that is created next."""
        with self._lock:
            return len(self._trials)

    @property
    def claimed(self) -> int:
        """How many trials hold a place in the budget."""
        with self._lock:
            return self._claimed()

    def first_lease(self, number: int, owner: str) -> Lease | None:
        """The lease of a trial that this owner works on in its first attempt; None when it does not."""
        with self._lock:
            if number >= len(self._trials):
                return None
            trial = self._trial(number)
        if (trial.state, trial.owner, trial.attempt) != (TrialState.RUNNING, owner, 1):
            return None
        return Lease(trial_id=trial.id, number=number, attempt=1, owner=owner)

    def note_birth(
        self, lease: Lease, configuration: Mapping[str, JsonScalar], attributes: Mapping[str, object]
    ) -> None:
        """Take over what this process has just stored in a new trial, so that it need not be read back."""
        with self._lock:
            self._own[lease.trial_id] = _Own(configuration=configuration, attributes=attributes)

    def note_facts(self, lease: Lease, attributes: Mapping[str, object]) -> None:
        """Take over facts that this process has just stored on a running trial; the rest of it is read from now on."""
        with self._lock:
            self._own.pop(lease.trial_id, None)
            if lease.trial_id in self._unfinished:
                trial = self._trial(lease.number)
                self._put(replace(trial, attributes={**trial.attributes, **attributes}))

    def note_end(self, lease: Lease, state: TrialState, value: float | None, attributes: Mapping[str, object]) -> None:
        """Take over the end of a trial that this process has just stored."""
        with self._lock:
            if (own := self._own.get(lease.trial_id)) is not None:
                facts = {**own.attributes, **attributes}
                self._own[lease.trial_id] = replace(
                    own,
                    revision=own.revision + 1,
                    optuna_state=OPTUNA_STATES[state],
                    value=value,
                    attributes=facts,
                )

    def forget(self, trial_id: int) -> None:
        """Take over nothing more of a trial: it is read from now on."""
        with self._lock:
            self._own.pop(trial_id, None)

    # With the lock

    def _picture(self, standing: Standing | None) -> Picture:
        return Picture(
            trials=self._in_order(),
            unfinished=tuple((self._trial(one.number), one.expires_in_s) for one in self._unfinished.values()),
            claimed=self._claimed(),
            standing=standing,
        )

    def _answer(self, connection: Connection, rows: Sequence[Row[Any]]) -> Standing | None:
        """Take the answer to `question`, and read what else it makes necessary."""
        # A study's trials are inserted under a lock on its row, so that no smaller key appears later.
        heads, standing = heads_among(connection, self._study, self._last_id, self._unfinished, rows)
        changed: list[Trial] = []
        unread: list[Row[Any]] = []
        for row in filter(self._is_changed, heads):
            if (trial := self._written_here(row)) is not None:
                changed.append(trial)
            else:
                unread.append(row)
        known = {key: self._trial(seen.number) for key, seen in self._unfinished.items() if seen.mark is not None}
        self._take(changed + read_trials(connection, self._study.id, unread, known))
        self._look_at(heads)
        return standing

    def _put_report(self, number: int, epoch: int, value: float) -> None:
        trial = self._trial(number)
        if trial.reports.get(epoch) != value:
            self._put(replace(trial, reports=dict(sorted({**trial.reports, epoch: value}.items()))))

    def _written_here(self, row: Row[Any]) -> Trial | None:
        """The trial when this process alone has written to it, and nothing that is not known."""
        own = self._own.get(row.trial_id)
        if own is None or row.revision is None:
            return None
        # An answer that came with a report is from before it. Plain Optuna raises no revision, but changes the state.
        is_known = own.revision - 1 <= row.revision <= own.revision
        if not is_known or (row.attempt, row.state) != (1, own.optuna_state):
            return None
        return trial_of(row, own.configuration, own.value, own.reports, own.attributes)

    def _is_changed(self, row: Row[Any]) -> bool:
        seen = self._unfinished.get(row.trial_id)
        return (seen is None and row.trial_id > (self._last_id or 0)) or (
            seen is not None and (seen.mark is None or seen.mark != _mark(row))
        )

    def _take(self, changed: Iterable[Trial]) -> None:
        for trial in changed:
            self._put(trial)
            if trial.state.is_ended:
                self._unfinished.pop(trial.id, None)
                self._own.pop(trial.id, None)
                self._ended_places += trial.is_counted

    def _look_at(self, heads: Iterable[Row[Any]]) -> None:
        for row in heads:
            self._last_id = max(self._last_id or 0, row.trial_id)
            if not self._trial(row.number).state.is_ended:
                self._unfinished[row.trial_id] = _Unfinished(row.number, _mark(row), row.expires_in_s)

    def _claimed(self) -> int:
        unfinished = (self._trial(seen.number) for seen in self._unfinished.values())
        return self._ended_places + sum(trial.is_counted for trial in unfinished)

    def _in_order(self) -> tuple[Trial, ...]:
        if self._copy is None:
            self._copy = tuple(self._trials)
        return self._copy

    def _trial(self, number: int) -> Trial:
        return self._trials[self._position(number)]

    def _put(self, trial: Trial) -> None:
        self._copy = None
        position = self._position(trial.number)
        if position < len(self._trials) and self._trials[position].number == trial.number:
            self._trials[position] = trial
        else:
            self._trials.insert(position, trial)

    def _position(self, number: int) -> int:
        return bisect_left(self._trials, number, key=lambda trial: trial.number)


def _mark(row: Row[Any]) -> tuple[int, str, int] | None:
    return None if row.revision is None else (row.revision, row.state, row.attempt)
