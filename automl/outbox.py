"""What became of trials while the database could take nothing: kept until a run of their study delivers it.

Each result is a file of its own, so that processes that keep and deliver at the same time never touch another's.
"""

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from automl.env import state_folder
from studies.errors import LeaseLostError
from studies.json_text import from_json, metrics_from_json, metrics_to_json, to_json
from studies.study import Study, View
from studies.trial import CheckpointRecord, Lease, TrialState
from studies.whole_file import written_beside

__all__ = ["KeptReport", "KeptResult", "Outbox"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReport:
    """What `Study.report` was to store.

    Attributes:
        epoch: finished epochs, counted from 1.
        value: the objective; finite.
        metrics: everything that was measured.
        checkpoint: the checkpoint of this epoch; None without one.
    """

    epoch: int
    value: float
    metrics: Mapping[str, float]
    checkpoint: CheckpointRecord | None

    def store(self, study: Study, lease: Lease) -> View:
        """Report the epoch; a second time changes nothing. See `Study.report`."""
        return study.report(lease, epoch=self.epoch, value=self.value, metrics=self.metrics, checkpoint=self.checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """What `Study.tell`, or `Study.pause` and perhaps a report before it, was to store.

    Attributes:
        lease: the right to write, as it was then.
        state: COMPLETE, PRUNED, FAILED or PAUSED.
        value: the objective of a COMPLETE trial.
        cause: why a FAILED trial failed.
        attributes: facts about the trial, plain JSON; a PAUSED trial goes on by them.
        report: the last epoch of a PAUSED trial, which is stored first; None when the study has it.
        is_lost: whether a PAUSED trial rests because its process or machine was lost, which is counted.
    """

    lease: Lease
    state: TrialState
    value: float | None = None
    cause: str | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)
    report: KeptReport | None = None
    is_lost: bool = False

    def __str__(self) -> str:
        """What becomes of the trial, in words, such as `paused after epoch 3`."""
        return self.state.value if self.report is None else f"{self.state.value} after epoch {self.report.epoch}"

    def store(self, study: Study, *, is_repeated: bool = False) -> None:
        """Store all of it.

        Args:
            study: the trial's.
            is_repeated: whether an earlier call that ended in a StorageError may have stored the same end.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
        """
        if self.report is not None:
            self.report.store(study, self.lease)
        if self.state is TrialState.PAUSED:
            if self.attributes:
                study.note(self.lease, self.attributes)
            study.pause(self.lease, is_lost=self.is_lost)
            return
        study.tell(
            self.lease,
            self.state,
            value=self.value,
            cause=self.cause,
            attributes=self.attributes,
            is_repeated=is_repeated,
        )


class Outbox:
    """The kept results of one study.

    Args:
        study: name of the study.
        storage: URL of its database, without a password.
    """

    def __init__(self, study: str, storage: str) -> None:
        key = hashlib.sha256(to_json([storage, study], "the study's address").encode()).hexdigest()[:16]
        self.folder = state_folder() / "outbox" / key

    def keep(self, result: KeptResult) -> Path:
        """Write a result down, safe from a crash; where it lies.

        Raises:
            OSError: it cannot be written.
        """
        path = self.folder / f"trial-{result.lease.number:05d}-attempt-{result.lease.attempt}.json"
        with written_beside(path) as beside, beside.open("w", encoding="utf-8") as file:
            beside.chmod(0o600)  # the text of an error may hold anything
            file.write(_written(result))
            file.flush()
            os.fsync(file.fileno())
        return path

    def deliver(self, study: Study) -> Sequence[int]:
        """Store what was kept and remove it; the log names each result, also one that another process made needless.

        Returns:
            The numbers of the trials whose results are stored now.

        Raises:
            StorageError: the database still cannot take it; what is left stays.
        """
        delivered = []
        for path in sorted(self.folder.glob("trial-*.json")):
            try:
                result = _read(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # another process was first
            except (KeyError, ValueError, TypeError) as error:
                _log.warning("%s holds no result that can be read, and stays: %s", path, error)
                continue
            if (reason := _reason_to_refuse(study, result)) is None:
                _log.warning("trial=%d %s, as it was kept in %s", result.lease.number, result, path)
                delivered.append(result.lease.number)
            else:
                _log.warning("trial=%d the result kept in %s is not needed: %s", result.lease.number, path, reason)
            path.unlink(missing_ok=True)
        return delivered


def _reason_to_refuse(study: Study, result: KeptResult) -> str | None:
    """Store a result; why that cannot be, or None when it is stored."""
    trials = study.trials()
    trial = trials[result.lease.number] if result.lease.number < len(trials) else None
    if trial is None or trial.id != result.lease.trial_id:
        return "the study has no such trial any more"
    try:
        result.store(study, is_repeated=True)
    except LeaseLostError as error:
        return error.reason
    return None


def _written(result: KeptResult) -> str:
    content: dict[str, Any] = {
        "trial_id": result.lease.trial_id,
        "number": result.lease.number,
        "attempt": result.lease.attempt,
        "owner": result.lease.owner,
        "state": result.state.value,
        "value": result.value,
        "cause": result.cause,
        "attributes": dict(result.attributes),
        "report": None if result.report is None else _written_report(result.report),
        "is_lost": result.is_lost,
    }
    return to_json(content, "the result") + "\n"


def _read(text: str) -> KeptResult:
    content = from_json(text)
    return KeptResult(
        lease=Lease(
            trial_id=content["trial_id"],
            number=content["number"],
            attempt=content["attempt"],
            owner=content["owner"],
        ),
        state=TrialState(content["state"]),
        value=content["value"],
        cause=content["cause"],
        attributes=content["attributes"],
        report=_read_report(content.get("report")),  # older programs kept neither this
        is_lost=content.get("is_lost", False),  # nor that
    )


def _written_report(report: KeptReport) -> dict[str, Any]:
    # The metrics may hold NaN and infinities, which `metrics_to_json` knows to write.
    return {
        "epoch": report.epoch,
        "value": report.value,
        "metrics": metrics_to_json(report.metrics),
        "checkpoint": None if report.checkpoint is None else asdict(report.checkpoint),
    }


def _read_report(content: Any) -> KeptReport | None:
    if content is None:
        return None
    checkpoint = content["checkpoint"]
    return KeptReport(
        epoch=content["epoch"],
        value=content["value"],
        metrics=metrics_from_json(content["metrics"]),
        checkpoint=None if checkpoint is None else CheckpointRecord(**checkpoint),
    )
