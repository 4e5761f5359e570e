"""How the study went: when its trials ran, how they ended, and how fast they learned."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import plotly.graph_objects as go

from studies.figures.frozen import label
from studies.figures.overview import ending_of, utc
from studies.figures.snapshot import NotDefined, StudySnapshot
from studies.figures.style import ACCENT, BEST, STATE_COLORS, add_note, dress
from studies.figures.words import counted
from studies.trial import Trial, TrialState

__all__ = ["draw_endings", "draw_learning_bands", "draw_timeline"]


def draw_timeline(snapshot: StudySnapshot) -> go.Figure:
    """Draw each trial as a bar from its start to its end; one that is running reaches to the last event."""
    started = [trial for trial in snapshot.trials if trial.started_at is not None]
    if not started:
        raise NotDefined("no trial has started")
    now = _last_event(started)
    figure = go.Figure()
    for state in TrialState:
        trials = [trial for trial in started if trial.state is state]
        if trials:
            figure.add_trace(_bars(trials, state, now))
    dress(figure, height=min(640, max(300, 140 + 8 * len(started))))
    figure.update_layout(barmode="overlay", showlegend=True)
    figure.update_xaxes(type="date", title_text="time, UTC")
    figure.update_yaxes(title_text="trial", range=[started[-1].number + 0.7, started[0].number - 0.7])
    missing = len(snapshot.trials) - len(started)
    return add_note(figure, f"Left out: {counted(missing, 'trial')} that never started." if missing else "")


def draw_endings(snapshot: StudySnapshot) -> go.Figure:
    """Draw how many trials ended in which way; the failed ones by their cause."""
    ended = [trial for trial in snapshot.trials if trial.state.is_ended]
    if not ended:
        raise NotDefined("no trial has ended")
    counts = Counter((trial.state, ending_of(trial)) for trial in ended)
    ordered = sorted(counts.items(), key=lambda item: item[1])
    figure = go.Figure(
        go.Bar(
            x=[count for _, count in ordered],
            y=[label(ending) for (_, ending), _ in ordered],
            orientation="h",
            marker={"color": [STATE_COLORS[state] for (state, _), _ in ordered]},
            text=[f"{count:,}" for _, count in ordered],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x}<extra></extra>",
        )
    )
    dress(figure, height=100 + 36 * len(ordered))
    figure.update_xaxes(title_text="trials", rangemode="tozero")
    figure.update_yaxes(type="category")
    return figure


def draw_learning_bands(snapshot: StudySnapshot) -> go.Figure:
    """Draw, epoch by epoch, the middle of all trials that reached the epoch, and the best trial."""
    by_epoch: dict[int, list[float]] = {}
    for trial in snapshot.trials:
        for epoch, value in trial.reports.items():
            if math.isfinite(value):
                by_epoch.setdefault(epoch, []).append(value)
    if len(by_epoch) < 2:
        raise NotDefined("no trial reported at two epochs" if by_epoch else "no trial reported a finite value")
    epochs = sorted(by_epoch)
    low, quarter, middle, three_quarters, high = np.array(
        [np.quantile(by_epoch[epoch], [0.1, 0.25, 0.5, 0.75, 0.9]) for epoch in epochs]
    ).T
    reached = [len(by_epoch[epoch]) for epoch in epochs]
    figure = go.Figure()
    figure.add_traces(_band(epochs, low, high, "middle 80 %", "rgba(63,131,201,0.16)"))
    figure.add_traces(_band(epochs, quarter, three_quarters, "middle 50 %", "rgba(63,131,201,0.28)"))
    figure.add_trace(_line(epochs, middle, "median", ACCENT, reached))
    if snapshot.best is not None and snapshot.best.reports:
        reports = {epoch: value for epoch, value in snapshot.best.reports.items() if math.isfinite(value)}
        figure.add_trace(_line(list(reports), list(reports.values()), f"trial {snapshot.best.number}, the best", BEST))
    dress(figure)
    figure.update_xaxes(title_text="epoch")
    figure.update_yaxes(title_text=label(snapshot.metric))
    return figure


def _last_event(trials: Sequence[Trial]) -> datetime:
    return max(utc(moment) for trial in trials for moment in (trial.started_at, trial.ended_at) if moment)


def _bars(trials: Sequence[Trial], state: TrialState, now: datetime) -> go.Bar:
    starts = [utc(trial.started_at) for trial in trials if trial.started_at is not None]
    ends = [now if trial.ended_at is None else utc(trial.ended_at) for trial in trials]
    seconds = [max(0.0, (end - start).total_seconds()) for start, end in zip(starts, ends, strict=True)]
    return go.Bar(
        name=state.value,
        x=[round(1000 * duration) for duration in seconds],
        y=[trial.number for trial in trials],
        base=[start.isoformat(timespec="milliseconds").removesuffix("+00:00") for start in starts],
        customdata=[
            f"{duration:.3g} s, {counted(trial.last_epoch, 'epoch')}"
            for duration, trial in zip(seconds, trials, strict=True)
        ],
        orientation="h",
        width=0.85,
        marker={"color": STATE_COLORS[state], "line": {"width": 0}},
        hovertemplate=f"trial %{{y}}, {state.value}: %{{customdata}}<extra></extra>",
    )


def _band(epochs: Sequence[int], low: np.ndarray, high: np.ndarray, name: str, color: str) -> list[go.Scatter]:
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "legendgroup": name}
    return [
        go.Scatter(x=epochs, y=low, showlegend=False, **edge),
        go.Scatter(x=epochs, y=high, name=name, fill="tonexty", fillcolor=color, **edge),
    ]


def _line(
    epochs: Sequence[int],
    values: Sequence[float] | np.ndarray,
    name: str,
    color: str,
    reached: Sequence[int] = (),
) -> go.Scatter:
    counts = ", of %{customdata} trials" if reached else ""
    return go.Scatter(
        x=epochs,
        y=values,
        name=name,
        mode="lines+markers",
        line={"color": color, "width": 2.5},
        marker={"size": 5},
        customdata=list(reached) or None,
        hovertemplate=f"epoch %{{x}}: %{{y:.6g}}{counts}<extra>{name}</extra>",
    )
