"""Which checkpoint a trial goes on from, and which files are no longer needed.

The database holds paths relative to a root, so that a study and its files can be moved together.
"""

import logging
import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from studies.checkpoint_files import CheckpointFiles
from studies.errors import CheckpointStoreError
from studies.ranking import best_of
from studies.trial import CheckpointRecord, Lease, Trial, TrialState

if TYPE_CHECKING:
    from studies.study import Study

__all__ = ["CheckpointLedger", "best_epoch", "removable"]

_log = logging.getLogger(__name__)


def best_epoch(trial: Trial, direction: str) -> int | None:
    """The first epoch with the best finite objective; None when there is none.

    Args:
        trial: its reports are looked at, over all attempts.
        direction: `maximize` or `minimize`.
    """
    finite = {epoch: value for epoch, value in trial.reports.items() if math.isfinite(value)}
    sign = -1.0 if direction == "maximize" else 1.0
    return min(finite, key=lambda epoch: (sign * finite[epoch], epoch), default=None)


def removable(
    records: Sequence[CheckpointRecord],
    *,
    attempt: int,
    state: TrialState,
    best_epoch: int | None,
    is_among_best: bool,
) -> tuple[CheckpointRecord, ...]:
    """Choose the checkpoints of one trial whose files may go.

    A trial that may go on keeps its last and its best checkpoint, and the one before the last: should the last file be
    damaged, it loses one epoch. The last one is the newest attempt's, also when an older attempt came further: its
    files were missing or damaged, or the newest attempt would have gone on from them. For the same reason the one
    before the last is of an earlier epoch, whichever attempt wrote it.
    Until the present attempt has written its first checkpoint everything stays, because the file that it went on from
    is not known here. An ended trial keeps its best checkpoint, and only while it is among the study's best trials; a
    trial that was pruned, failed or beaten keeps none.

    Args:
        records: the trial's checkpoints, in any order.
        attempt: how many times the trial was started.
        state: where the trial stands.
        best_epoch: the epoch with the best objective; None: not known, then the last checkpoint is the best.
        is_among_best: whether the trial is one of those whose weights the study keeps.

    Returns:
        The rest of `records`, in their order.
    """
    ordered = sorted(records, key=lambda record: (record.attempt, record.epoch))
    last = ordered[-1:]
    best = [record for record in ordered if record.epoch == best_epoch][-1:] or last
    if state.is_ended:
        kept = best if is_among_best else []
    elif last and last[0].attempt == attempt:
        kept = [record for record in ordered if record.epoch < last[0].epoch][-1:] + last + best
    else:
        kept = ordered
    return tuple(record for record in records if record not in kept)


class CheckpointLedger:
    """The checkpoints of a study's trials and their files below a root.

    Args:
        study: holds the ledger.
        root: the folder, or the URL of a store, below which all paths of the ledger lie; may be another one each time.
        needed: is given all trials, and tells the keys of those whose weights `trim` keeps beside those of the best.
    """

    def __init__(
        self,
        study: "Study",
        root: str | Path,
        needed: Callable[[Sequence[Trial]], Collection[int]] = lambda trials: (),
    ) -> None:
        self._study = study
        self._needed = needed
        self._files = CheckpointFiles(str(root))

    def path(self, record: CheckpointRecord) -> str:
        """Where a checkpoint's file lies: a path of this machine, or a URL."""
        return self._files.location(record.path)

    def missing_folders(self) -> Sequence[str]:
        """The folders, relative to the root, of unfinished trials' checkpoints, when not one of them exists.

        Then they were moved, or are not mounted on this machine: the trials would all start anew.

        Raises:
            CheckpointStoreError: the root cannot be looked at.
        """
        holders = self._study.trials_with_checkpoints()
        unfinished = self._study.trials([TrialState.PAUSED, TrialState.RUNNING])
        records = [record for t in unfinished if t.id in holders for record in self._study.checkpoints(t)]
        folders = sorted({PurePosixPath(record.path).parts[0] for record in records})
        return [] if any(self._files.exists(folder) for folder in folders) else folders

    def latest(self, trial: Trial | Lease) -> CheckpointRecord | None:
        """Find the newest checkpoint whose file is whole: the last one of the newest attempt that has one.

        Returns:
            None when there is none: then the trial starts anew. A checkpoint that is missing or damaged is named in the
            log, and an older one is taken; the ledger stays as it is.

        Raises:
            CheckpointStoreError: the files cannot be reached.
        """
        records = self._study.checkpoints(trial)
        for record in records:
            if self._is_whole(trial, record):
                return record
        if records:
            _log.warning("trial %d has no whole checkpoint below %s and starts anew", trial.number, self._files.root)
        return None

    def best(self, trial: Trial) -> CheckpointRecord | None:
        """Find the checkpoint of the trial's best epoch; None when it is gone or damaged, which the log then names.

        Raises:
            CheckpointStoreError: the files cannot be reached.
        """
        epoch = best_epoch(trial, self._study.direction)
        records = [record for record in self._study.checkpoints(trial) if record.epoch == epoch]
        return next((record for record in records if self._is_whole(trial, record)), None)

    def remove(self, trial: Trial | Lease, records: Sequence[CheckpointRecord]) -> None:
        """Delete files and then their rows, and the folders that are empty then; what is gone already is no error.

        In this order a crash leaves a row without a file, which `latest` passes over, and never a file that nobody
        knows. The root itself stays. A file that cannot be removed is named in the log and keeps its row, so that the
        next `trim` tries again.
        """
        gone = [record for record in records if self._is_removed(record)]
        if not gone:
            return
        self._study.forget_checkpoints(trial, gone)
        for record in gone:
            remains = self._files.remove_empty_folders(record.path)
            if remains is not None:
                _log.debug("a folder stays: %s", remains)

    def trim(self, trial: Trial, *, keep_best: int = 1) -> None:
        """Remove the checkpoints that `removable` names, after a report or the end of a trial.

        The end of a trial may beat others, or make others be needed no longer: then theirs go, too. Checkpoints that
        are newer than what is known of the trial stay: one of them may be its best.

        Args:
            trial: as it stands now, or stood a while ago.
            keep_best: the weights of how many of the study's best trials are kept.
        """
        if not trial.state.is_ended:
            self._trim_one(trial, is_among_best=False)  # only complete trials are
            return
        # One snapshot decides who is the best and who was beaten: a trial of another process that ends meanwhile, and
        # beats them all, is in neither. Who is beaten once never becomes the best again.
        trials = self._study.trials()
        kept = {best.id for best in best_of(trials, self._study.direction, keep_best)} | set(self._needed(trials))
        self._trim_one(trial, is_among_best=trial.id in kept)
        if trial.id in kept:
            holders = self._study.trials_with_checkpoints() - kept
            for beaten in trials:
                if beaten.state.is_ended and beaten.id in holders:
                    self._trim_one(beaten, is_among_best=False)

    def _trim_one(self, trial: Trial, *, is_among_best: bool) -> None:
        known = (trial.attempt, trial.last_epoch)
        records = removable(
            [record for record in self._study.checkpoints(trial) if (record.attempt, record.epoch) <= known],
            attempt=trial.attempt,
            state=trial.state,
            best_epoch=best_epoch(trial, self._study.direction),
            is_among_best=is_among_best,
        )
        self.remove(trial, records)

    def _is_removed(self, record: CheckpointRecord) -> bool:
        try:
            self._files.remove(record.path)
        except CheckpointStoreError as error:
            _log.warning("a checkpoint that is no longer needed stays: %s", error)
            return False
        return True

    def _is_whole(self, trial: Trial | Lease, record: CheckpointRecord) -> bool:
        fault = self._files.fault(record)
        if fault is not None:
            _log.warning("checkpoint %s of trial %d %s", record.path, trial.number, fault)
        return fault is None
