"""The courses of all methods as figures in one HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

from benchmarks.quality.statistics import Interval

__all__ = ["write_plots"]

Lines = Mapping[str, Sequence[Interval]]
"""Method -> mean regret, with its interval, at the checkpoints."""


def write_plots(file: Path, found: Mapping[str, tuple[Sequence[float], Lines]]) -> None:
    """Write a figure for each task.

    Args:
        file: where to.
        found: title of a figure -> the checkpoints, and the lines.
    """
    parts: list[str] = []
    for title, (checkpoints, lines) in found.items():
        figure = go.Figure(layout={"title": title, "xaxis_title": "budget", "yaxis_title": "mean regret [95 %]"})
        for method, means in lines.items():
            figure.add_scatter(
                x=list(checkpoints),
                y=[one.mean for one in means],
                error_y={
                    "type": "data",
                    "array": [one.high - one.mean for one in means],
                    "arrayminus": [one.mean - one.low for one in means],
                },
                name=method,
            )
        parts.append(figure.to_html(full_html=False, include_plotlyjs=not parts))
    file.write_text(f"<!doctype html><meta charset=utf-8><title>Quality of searches</title>{''.join(parts)}")
