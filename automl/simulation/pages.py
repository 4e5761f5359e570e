"""The page of a simulation: what was found so far along time and along trainings, and the tables in words."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from automl.simulation.comparison import Axis, means_at
from automl.simulation.courses import Course
from studies.html_page import figure_card, html_page
from studies.whole_file import written_beside

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from studies.figures.bands import Band

__all__ = ["write_simulation_page"]

_PLACES = 120
_TITLES: Mapping[Axis, tuple[str, str]] = {
    "seconds": ("The best value along time", "simulated time in seconds"),
    "trials": ("The best value along trainings", "trainings that have ended or come to rest"),
}
_SO_FAR = "The best value that was reported so far"
_OF_SEVERAL = "the mean of the searches, and the interval in which it lies by 95 %"


def write_simulation_page(
    path: Path, title: str, lines: Sequence[str], courses: Mapping[str, Sequence[Course]], metric: str
) -> None:
    """Write one HTML page that works offline; what was there is replaced at once.

    Args:
        path: the file; its folder is made.
        title: what was simulated.
        lines: what the command says, for below the figures.
        courses: who searched -> the ways of the searches.
        metric: what the objective is called.

    Raises:
        OSError: the file cannot be written.
    """
    from studies.figures.bands import draw_bands

    is_of_several = any(len(some) > 1 for some in courses.values())
    explanation = f"{_SO_FAR}: {_OF_SEVERAL}." if is_of_several else f"{_SO_FAR}."
    cards: list[str] = []
    figures: dict[str, Figure] = {}
    for axis, (heading, x_title) in _TITLES.items():
        end = max(_end(course, axis) for some in courses.values() for course in some)
        bands = [_band(name, some, axis, end) for name, some in courses.items()]
        figures[axis] = draw_bands(bands, x_title=x_title, y_title=metric)
        cards.append(figure_card(axis, heading, explanation, figures[axis]))
    body = (
        f'<header><p class="eyebrow">Simulation</p><h1>{escape(title)}</h1></header>'
        f'<section><h2>Figures</h2><div class="figures">{"".join(cards)}</div></section>'
        f'<section><h2>Numbers</h2><div class="card scroll"><pre>{escape(chr(10).join(lines))}</pre></div></section>'
    )
    with written_beside(path.expanduser()) as beside:
        beside.write_text(html_page(f"{title}: simulation", body, figures), encoding="utf-8")


def _end(course: Course, axis: Axis) -> float:
    return float(course.count) if axis == "trials" else course.seconds


def _band(name: str, courses: Sequence[Course], axis: Axis, end: float) -> "Band":
    """The mean from the place on at which each of the searches has found something."""
    from studies.figures.bands import Band

    if axis == "trials":
        places = np.unique(np.round(np.linspace(1.0, max(1.0, end), _PLACES)))
    else:
        places = np.linspace(0.0, end, _PLACES)
    x = [float(place) for place in places]
    found = [(at, mean) for at, mean in zip(x, means_at(courses, axis, x), strict=True) if mean is not None]
    return Band(
        name=name,
        x=[at for at, _ in found],
        middle=[mean.mean for _, mean in found],
        low=[mean.low for _, mean in found],
        high=[mean.high for _, mean in found],
    )
