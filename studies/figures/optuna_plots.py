"""Optuna's own plots of one objective, fed with what they can draw and dressed in the house's look.

Each function takes a snapshot and returns a plotly figure, or raises `NotDefined` before Optuna would draw an
empty frame. Large studies are thinned, and the figure's note says so.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go
from optuna import visualization
from plotly.colors import sample_colorscale

from studies.figures.frozen import label, optuna_study
from studies.figures.importance import leading_parameters
from studies.figures.selection import left_out, representative
from studies.figures.snapshot import NotDefined, StudySnapshot, value_of
from studies.figures.style import ACCENT, BEST, MUTED, SCALE, STATE_COLORS, add_note, dress
from studies.figures.words import counted, listed
from studies.trial import Trial, TrialState

__all__ = [
    "draw_contour",
    "draw_edf",
    "draw_history",
    "draw_intermediate_values",
    "draw_parallel_coordinate",
    "draw_rank",
    "draw_slice",
]

_MOST_CURVES = 100
_MOST_LINES = 200
_MOST_POINTS = 1000
_MOST_RANKED = 400
_MOST_ON_SURFACE = 100  # a contour holds a grid of this size squared for each pair of parameters
_MOST_AXES = 10
_MOST_PAIRED = 4
_MOST_SLICED = 5


def draw_history(snapshot: StudySnapshot) -> go.Figure:
    """Draw each complete trial's value and the best value so far, over the trial numbers."""
    _require_complete(snapshot)
    figure = visualization.plot_optimization_history(optuna_study(snapshot, parameters=()), target_name=snapshot.metric)
    values, best = figure.data[0], figure.data[1]
    best_y = [value if math.isfinite(value) else None for value in best.y]
    figure.data = (values, best)
    values.update(marker={"color": ACCENT, "size": 7, "opacity": 0.75}, name="complete trial")
    values.update(hovertemplate="trial %{x}: %{y:.6g}<extra></extra>")
    best.update(y=best_y, name="best so far", line={"color": BEST, "width": 2.5, "shape": "hv"})
    best.update(hovertemplate="best after trial %{x}: %{y:.6g}<extra></extra>")
    dress(figure)
    figure.update_xaxes(title_text="trial", rangemode="tozero")
    return figure


def draw_intermediate_values(snapshot: StudySnapshot) -> go.Figure:
    """Draw the learning curve of each trial that reported."""
    reporting = [
        trial
        for trial in snapshot.trials
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)
        and any(math.isfinite(value) for value in trial.reports.values())
    ]
    if not reporting:
        raise NotDefined("no trial reported a finite value")
    chosen = representative(snapshot, reporting, _MOST_CURVES)
    by_number = {trial.number: trial for trial in chosen}
    figure = visualization.plot_intermediate_values(optuna_study(snapshot, by_number, parameters=()))
    best = snapshot.best
    for trace, trial in zip(figure.data, chosen, strict=True):
        _dress_curve(trace, trial, is_best=best is not None and best.number == trial.number)
    figure.data = tuple(sorted(figure.data, key=lambda trace: float(trace.line.width)))
    for first in {trace.name: trace for trace in reversed(figure.data)}.values():
        first.update(showlegend=True)
    dress(figure, height=420)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(title_text="epoch")
    figure.update_yaxes(title_text=snapshot.metric)
    return add_note(figure, left_out(len(chosen), len(reporting)), _not_finite(reporting))


def draw_parallel_coordinate(snapshot: StudySnapshot) -> go.Figure:
    """Draw each complete trial as one line through its parameters; `none` where it has no value."""
    _require_varied(snapshot)
    names = leading_parameters(snapshot, _MOST_AXES)
    chosen = representative(snapshot, snapshot.complete, _MOST_LINES)
    figure = visualization.plot_parallel_coordinate(
        optuna_study(snapshot, _numbers(chosen), parameters=names),
        params=[label(name) for name in names],
        target_name=snapshot.metric,
    )
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    for trace in lines:
        goodness = trace.y[0] if snapshot.direction == "maximize" else 1.0 - trace.y[0]
        trace.update(line={"color": sample_colorscale(SCALE, goodness)[0], "width": 1.4}, opacity=0.7)
    lines.sort(key=lambda trace: trace.y[0], reverse=snapshot.direction == "minimize")
    figure.data = (*lines, *(trace for trace in figure.data if trace.mode == "markers"))
    figure.data[-1].marker.update(colorscale=SCALE, colorbar={"thickness": 10, "outlinewidth": 0})
    figure.update_annotations(font={"color": MUTED})
    dress(figure, height=460)
    return add_note(
        figure, _selected(snapshot, names), left_out(len(chosen), len(snapshot.complete)), _constants(snapshot)
    )


def draw_slice(snapshot: StudySnapshot) -> go.Figure:
    """Draw the objective over each of the most important parameters."""
    _require_varied(snapshot)
    names = leading_parameters(snapshot, _MOST_SLICED)
    chosen = representative(snapshot, snapshot.complete, _MOST_POINTS)
    figure = visualization.plot_slice(
        optuna_study(snapshot, _numbers(chosen), parameters=names),
        params=[label(name) for name in names],
        target_name=snapshot.metric,
    )
    unquoted = {repr(text): text for text in _labels(snapshot, names)}
    for trace in figure.data:
        trace.update(x=[unquoted.get(x, x) if isinstance(x, str) else x for x in trace.x])
        trace.marker.update(colorscale=SCALE, opacity=0.8, size=6)
        trace.marker.colorbar.update(thickness=10, outlinewidth=0, xpad=12)
    figure.for_each_xaxis(lambda axis: _unquote(axis, unquoted))
    dress(figure)
    _powers_of_ten(figure)
    return add_note(
        figure,
        _selected(snapshot, names),
        left_out(len(chosen), len(snapshot.complete)),
        _constants(snapshot),
    )


def draw_contour(snapshot: StudySnapshot) -> go.Figure:
    """Draw the objective over each pair of the most important parameters, as a surface."""
    names = _require_pair(snapshot)
    chosen = representative(snapshot, snapshot.complete, _MOST_ON_SURFACE)
    names = _still_varied(names, chosen)
    figure = visualization.plot_contour(
        optuna_study(snapshot, _numbers(chosen), parameters=names),
        params=[label(name) for name in names],
        target_name=snapshot.metric,
    )
    # An empty surface on the diagonal makes a browser complain; an empty point keeps the axis of that place.
    figure.data = tuple(t for t in figure.data if not (isinstance(t, go.Contour) and t.z is None))
    for trace in figure.data:
        if trace.x is None:
            trace.update(x=[None], y=[None], showlegend=False)
        elif isinstance(trace, go.Contour):
            trace.update(z=np.asarray(trace.z, dtype=np.float32), colorscale=SCALE, line={"width": 0.4})
            trace.colorbar.update(thickness=10, outlinewidth=0)
        else:
            trace.update(marker={"color": "#ffffff", "size": 4, "line": {"color": "#20242c", "width": 0.8}})
    dress(figure, height=_grid_height(len(names)))
    _powers_of_ten(figure)
    return add_note(figure, _selected(snapshot, names), left_out(len(chosen), len(snapshot.complete)))


def draw_rank(snapshot: StudySnapshot) -> go.Figure:
    """Draw the rank of each complete trial over each pair of the most important parameters."""
    names = _require_pair(snapshot)
    chosen = representative(snapshot, snapshot.complete, _MOST_RANKED)
    figure = visualization.plot_rank(
        optuna_study(snapshot, _numbers(chosen), parameters=names),
        params=[label(name) for name in names],
        target_name=snapshot.metric,
    )
    colors = _rank_colors(snapshot, chosen)
    for trace in figure.data:
        if trace.hovertext is not None:
            texts = [text.split("<br>") for text in trace.hovertext]
            numbers = [int(lines[0].removeprefix("Trial #")) for lines in texts]
            trace.update(hovertext=[f"trial {n}<br>{lines[-1]}" for n, lines in zip(numbers, texts, strict=True)])
            trace.marker.update(color=[colors[n] for n in numbers], size=7, line={"width": 0})
        else:
            trace.marker.update(colorscale=SCALE, reversescale=snapshot.direction == "minimize")
            trace.marker.colorbar.update(outlinewidth=0)
    dress(figure, height=_grid_height(len(names)))
    _powers_of_ten(figure)
    return add_note(figure, _selected(snapshot, names), left_out(len(chosen), len(snapshot.complete)))


def draw_edf(snapshot: StudySnapshot) -> go.Figure:
    """Draw which share of the complete trials is at or below each value."""
    _require_complete(snapshot)
    figure = visualization.plot_edf(
        optuna_study(snapshot, _numbers(snapshot.complete), parameters=()), target_name=snapshot.metric
    )
    figure.update_traces(line={"color": ACCENT, "width": 2.5, "shape": "hv"}, showlegend=False)
    figure.update_traces(hovertemplate="%{y:.0%} of the trials: at most %{x:.6g}<extra></extra>")
    dress(figure)
    figure.update_yaxes(title_text="share of the trials", tickformat=".0%", range=[0, 1.03])
    return figure


def _require_complete(snapshot: StudySnapshot) -> None:
    if not snapshot.complete:
        raise NotDefined("no trial is complete")


def _require_varied(snapshot: StudySnapshot) -> tuple[str, ...]:
    _require_complete(snapshot)
    if not snapshot.parameters:
        raise NotDefined("the trials have no parameters")
    if not snapshot.varied:
        raise NotDefined(
            "1 complete trial"
            if len(snapshot.complete) == 1
            else "every parameter is constant over the complete trials"
        )
    return snapshot.varied


def _require_pair(snapshot: StudySnapshot) -> tuple[str, ...]:
    if len(_require_varied(snapshot)) < 2:
        raise NotDefined(f"only one parameter varies: {listed(snapshot.varied)}")
    return leading_parameters(snapshot, _MOST_PAIRED)


def _still_varied(names: Sequence[str], chosen: Sequence[Trial]) -> tuple[str, ...]:
    values = {name: {str(trial.configuration.get(name)) for trial in chosen} for name in names}
    varied = tuple(name for name in names if len(values[name]) > 1)
    if len(varied) < 2:
        raise NotDefined("the trials that can be drawn differ in one parameter only")
    return varied


def _numbers(trials: Sequence[Trial]) -> Collection[int]:
    return {trial.number for trial in trials}


def _dress_curve(trace: go.Scatter, trial: Trial, *, is_best: bool) -> None:
    kind = "best trial" if is_best else trial.state.value
    trace.update(
        name=kind,
        legendgroup=kind,
        showlegend=False,
        mode="lines" if len(trial.reports) > 1 else "markers",
        line={"color": BEST if is_best else STATE_COLORS[trial.state], "width": 3 if is_best else 1.2},
        marker={"color": BEST if is_best else STATE_COLORS[trial.state], "size": 5},
        opacity=1.0 if is_best else 0.65,
        hovertemplate=f"trial {trial.number}, epoch %{{x}}: %{{y:.6g}}<extra></extra>",
    )


def _rank_colors(snapshot: StudySnapshot, chosen: Sequence[Trial]) -> dict[int, str]:
    """Return trial number -> colour of its rank among the chosen; equal values share the mean of their ranks."""
    places: dict[float, list[int]] = {}
    numbers = _numbers(chosen)
    ranked = [trial for trial in reversed(snapshot.ranking) if trial.number in numbers]
    for place, trial in enumerate(ranked):
        places.setdefault(value_of(trial), []).append(place)
    last = max(1, len(ranked) - 1)
    shares = [sum(places[value_of(trial)]) / len(places[value_of(trial)]) / last for trial in ranked]
    return dict(zip((trial.number for trial in ranked), sample_colorscale(SCALE, shares), strict=True))


def _labels(snapshot: StudySnapshot, names: Sequence[str]) -> set[str]:
    return {
        label(trial.configuration[name]) for trial in snapshot.trials for name in names if name in trial.configuration
    }


def _unquote(axis: go.layout.XAxis, unquoted: dict[str, str]) -> None:
    if axis.categoryarray is not None:
        axis.update(categoryarray=[unquoted.get(text, text) for text in axis.categoryarray])


def _powers_of_ten(figure: go.Figure) -> None:
    """Label log axes 10^-3, 10^-2, ...; those within two powers of ten keep plotly's finer ticks."""
    for letter, axes in (("x", figure.select_xaxes({"type": "log"})), ("y", figure.select_yaxes({"type": "log"}))):
        for axis in axes:
            reference = axis.plotly_name.replace("axis", "")
            traces = [trace for trace in figure.data if (trace[f"{letter}axis"] or letter) == reference]
            positions = [value for trace in traces for value in trace[letter] or () if value is not None]
            decades = math.log10(max(positions) / min(positions)) if positions else 0.0
            axis.update(exponentformat="power", dtick=1 if decades > 2 else None)


def _grid_height(count: int) -> int:
    return 460 if count == 2 else 130 + 150 * count


def _not_finite(trials: Sequence[Trial]) -> str:
    missing = sum(not math.isfinite(value) for trial in trials for value in trial.reports.values())
    return f"Left out, because not finite: {counted(missing, 'report')}." if missing else ""


def _selected(snapshot: StudySnapshot, names: Sequence[str]) -> str:
    others = len(snapshot.varied) - len(names)
    return f"Shown: the {len(names)} leading parameters of {len(snapshot.varied)}." if others else ""


def _constants(snapshot: StudySnapshot) -> str:
    if not snapshot.constant:
        return ""
    return f"Left out, because constant: {listed(snapshot.constant)}."
