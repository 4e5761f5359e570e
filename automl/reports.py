"""What a trainer says, as it can be kept: a person's own trainer may report anything."""

from collections.abc import Mapping
from typing import TypeGuard

from automl.objective import is_finite
from automl.outbox import KeptReport
from automl.worker import Failure
from search_spaces.strict_json import strict_json
from studies.json_text import from_json
from studies.trial import CheckpointRecord, Lease
from trainers.reporting import Report, TrialResult

__all__ = ["facts_about", "kept_report", "numbers_in", "plain", "problem_with_report", "problem_with_result"]


def problem_with_report(report: Report, metric: str) -> Failure | None:
    """Why a report cannot be taken: its epoch is no count, or the objective is missing, no number, or not finite."""
    epoch, value = report.epoch, report.metrics.get(metric)
    if not _is_number(epoch) or epoch != int(epoch) or epoch < 1:
        return _user_error(f"a report of epoch {epoch!r}; epochs are counted from 1")
    if not _is_number(value):
        what = f"has no metric {metric!r}" if value is None else f"says {metric}={value!r}, which is no number"
        return _user_error(f"the report of epoch {epoch} {what}")
    if not is_finite(float(value)):
        return Failure(cause="non_finite", error="ReportError", message=f"{metric} is {value} after epoch {epoch}")
    return None


def problem_with_result(result: object, reported: int) -> Failure | None:
    """Why the end of a training cannot be taken: it is no result, has unfit facts, or completed without a report.

    Args:
        result: what the trainer returned.
        reported: epochs that the trial has reported.
    """
    if not isinstance(result, TrialResult):
        return _user_error(f"the trainer returned {result!r}, not a TrialResult")
    if result.outcome == "completed" and reported == 0:
        return _user_error("the training ended without a report")
    try:
        strict_json(dict(result.facts))
    except (TypeError, ValueError) as error:
        return _user_error(f"the facts of the result are not plain JSON: {error}")
    return None


def numbers_in(metrics: Mapping[str, object]) -> Mapping[str, float]:
    """The metrics that are numbers; others cannot be stored or drawn."""
    return {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}


def kept_report(report: Report, metric: str, lease: Lease) -> KeptReport:
    """A report without a problem as a study stores it.

    Args:
        report: what a training told.
        metric: the objective.
        lease: of its trial.
    """
    return KeptReport(
        epoch=int(report.epoch),
        value=float(report.metrics[metric]),
        metrics=numbers_in(report.metrics),
        checkpoint=_ledger_row(report, lease),
    )


def _ledger_row(report: Report, lease: Lease) -> CheckpointRecord | None:
    """The row of the ledger for the checkpoint of a report; None when it has none."""
    file = report.checkpoint
    if file is None:
        return None
    return CheckpointRecord(
        path=file.path, epoch=file.epoch, attempt=lease.attempt, digest=file.digest, size_bytes=file.size_bytes
    )


def facts_about(end: TrialResult | Failure) -> dict[str, object]:
    """What is stored on a trial at its end: what was really used and counted, or what went wrong and where."""
    if isinstance(end, TrialResult):
        return plain(dict(end.facts))
    return {
        "error": f"{end.error}: {end.message}",
        "traceback": end.traceback,
        "failed_rank": end.rank,
        "failed_host": end.host,
    }


def plain(facts: Mapping[str, object]) -> dict[str, object]:
    """Facts as they are stored: NaN and infinities, which JSON lacks, are text."""
    stored: dict[str, object] = from_json(strict_json(dict(facts)))
    return stored


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _user_error(message: str) -> Failure:
    return Failure(cause="user_error", error="ReportError", message=message)
