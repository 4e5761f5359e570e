"""Several means along one axis, each with the band in which it may lie."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from studies.figures.frozen import label
from studies.figures.style import ACCENT, BEST, MUTED, dress

__all__ = ["Band", "draw_bands"]

_COLORS = (ACCENT, BEST, "#3aa373", "#9b72cf", "#d0505e", MUTED)
_DASHES = ("solid", "dash", "dot")
_HOVER = "%{x:.6g}: %{y:.6g} [%{customdata[0]:.6g}, %{customdata[1]:.6g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A mean along an axis.

    Attributes:
        name: what it is the mean of.
        x: places on the axis, ascending.
        middle: the mean at each.
        low: the lower end of its interval.
        high: the upper end.
    """

    name: str
    x: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def draw_bands(bands: Sequence[Band], *, x_title: str, y_title: str) -> go.Figure:
    """Draw each mean as a line that is held until the next place, with its interval behind it."""
    figure = go.Figure()
    for place, band in enumerate(bands):
        color, dash = _COLORS[place % len(_COLORS)], _DASHES[place // len(_COLORS) % len(_DASHES)]
        figure.add_traces(_traces(band, color, dash))
    dress(figure)
    figure.update_xaxes(title_text=label(x_title), rangemode="tozero")
    figure.update_yaxes(title_text=label(y_title))
    return figure


def _traces(band: Band, color: str, dash: str) -> list[go.Scatter]:
    name = label(band.name)
    edge = {"mode": "lines", "hoverinfo": "skip", "legendgroup": name, "showlegend": False}
    return [
        go.Scatter(x=band.x, y=band.low, line={"width": 0, "shape": "hv"}, **edge),
        go.Scatter(
            x=band.x, y=band.high, fill="tonexty", fillcolor=_pale(color), line={"width": 0, "shape": "hv"}, **edge
        ),
        go.Scatter(
            x=band.x,
            y=band.middle,
            name=name,
            legendgroup=name,
            mode="lines",
            line={"color": color, "width": 2.5, "dash": dash, "shape": "hv"},
            customdata=list(zip(band.low, band.high, strict=True)),
            hovertemplate=f"{_HOVER}<extra>{name}</extra>",
        ),
    ]


def _pale(color: str) -> str:
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
