"""How all figures look: colours that hold on a light and on a dark page, no frame, no title, no template.

Text and grid colours are left to the page, which knows whether it is light or dark.
"""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from studies.trial import TrialState

__all__ = ["ACCENT", "BEST", "FONT", "MUTED", "SCALE", "STATE_COLORS", "add_note", "dress", "note_of"]

ACCENT = "#3f83c9"
BEST = "#dd7a22"
MUTED = "#8d97a6"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"

SCALE = [[0.0, "#5d58a6"], [0.25, "#3f7aa6"], [0.5, "#27978a"], [0.75, "#6fc069"], [1.0, "#e3c43a"]]
"""Colour scale of the objective, from bad to good."""

STATE_COLORS: Mapping[TrialState, str] = {
    TrialState.COMPLETE: ACCENT,
    TrialState.PRUNED: "#a9b2bf",
    TrialState.FAILED: "#d0505e",
    TrialState.INFEASIBLE: "#9b72cf",
    TrialState.RUNNING: "#3aa373",
    TrialState.PAUSED: "#c9a227",
    TrialState.QUEUED: "#c3cad4",
}

# Set for all axes at once: plotly takes seconds to set them one by one in a grid of 16.
_AXIS = {"automargin": True, "title": {"standoff": 10}, "ticks": ""}
_TEMPLATE = go.layout.Template(
    layout={
        "margin": {"l": 60, "r": 20, "t": 24, "b": 52},
        "font": {"family": FONT, "size": 12},
        "colorway": [ACCENT, BEST, "#3aa373", "#9b72cf", "#d0505e", MUTED],
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "hoverlabel": {"font": {"family": FONT, "size": 12}},
        "bargap": 0.25,
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    }
)


def dress(figure: go.Figure, *, height: int = 380) -> go.Figure:
    """Give a figure the house's look, in place, and return it.

    Args:
        figure: any plotly figure.
        height: in CSS pixels; the width follows the page.
    """
    figure.update_layout(
        template=_TEMPLATE,
        title=None,
        width=None,
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure


def add_note(figure: go.Figure, *sentences: str) -> go.Figure:
    """Attach sentences on what the figure leaves out; empty ones are skipped."""
    text = " ".join(sentence for sentence in sentences if sentence)
    if text:
        figure.update_layout(meta={"note": text})
    return figure


def note_of(figure: go.Figure) -> str:
    """Return what `add_note` attached, or an empty text."""
    meta: Any = figure.layout.meta
    return str(meta.get("note", "")) if isinstance(meta, Mapping) else ""
