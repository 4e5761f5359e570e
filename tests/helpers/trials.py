"""Frozen trials for tests of samplers, pruners and schedulers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from studies.trial import JsonScalar, Trial, TrialState

__all__ = ["make_trial", "trials_with_curves"]

_START = datetime(2026, 1, 1, tzinfo=UTC)


def make_trial(
    number: int,
    configuration: Mapping[str, JsonScalar] | None = None,
    *,
    state: TrialState = TrialState.COMPLETE,
    value: float | None = None,
    reports: Sequence[float] = (),
    cause: str | None = None,
) -> Trial:
    return Trial(
        id=1000 + number,
        number=number,
        state=state,
        configuration=configuration or {"x": 0.5},
        reports=dict(enumerate(reports, start=1)),
        value=value,
        cause=cause,
        attempt=1,
        owner="another process" if state is TrialState.RUNNING else None,
        started_at=_START + timedelta(minutes=number),
        ended_at=_START + timedelta(minutes=number + 1) if state.is_ended else None,
    )


def trials_with_curves(*curves: Sequence[float], state: TrialState = TrialState.COMPLETE) -> list[Trial]:
    return [
        make_trial(number, state=state, reports=curve, value=curve[-1] if state is TrialState.COMPLETE else None)
        for number, curve in enumerate(curves)
    ]
