"""Why a Tune program starts nothing more: the study has had enough, or nothing good would come of going on."""

from automl.stopping import StoppingRule, failures_in_a_row
from automl.worker import Failure
from studies.study import Study, View

__all__ = ["ProgramEnd"]


class ProgramEnd:
    """The end of one program's search; the study may go on in others.

    Args:
        study: whose limits hold.
        began_at: when the program began, by the database's clock.
        max_failures: failed trials in a row that end it.
    """

    def __init__(self, study: Study, *, began_at: float, max_failures: int) -> None:
        self._study = study
        self._rule = StoppingRule(direction=study.direction, began_at=began_at)
        self._max_failures = max_failures
        self._has_failed_because: str | None = None

    def reason(self, view: View) -> str | None:
        """Why nothing is started any more, and what runs rests after its report; None: the search goes on."""
        if self._has_failed_because is not None:
            return self._has_failed_because
        stop = self._rule.stop(view.trials, view.standing)
        return None if stop is None else stop.reason

    def note_full_disk(self, failure: Failure) -> None:
        """Every trial would fail alike."""
        self._has_failed_because = f"the disk of {failure.host or 'a worker'} is full: {failure.message}"

    def note_failed_trial(self) -> None:
        """A trial has ended FAILED; too many of them in a row are enough."""
        in_a_row = failures_in_a_row(self._study.trials(), self._rule.began_at)
        if in_a_row >= self._max_failures:
            last = "the last trial" if in_a_row == 1 else f"the last {in_a_row} trials"
            self._has_failed_because = f"{last} failed (max_failures={self._max_failures})"
