"""Numbers, configurations, places and tables as text for a terminal or a pipe."""

import os
from collections.abc import Mapping, Sequence

from studies.ranking import Replicated
from studies.trial import TrialState
from trainers.artifact_files import is_url

__all__ = ["average_in_words", "configuration_lines", "counts_in_words", "number", "short_place", "table"]


def number(value: object) -> str:
    """A value in few characters: four significant digits for a float, text as it is, `-` for None."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.4g}"


def configuration_lines(configuration: Mapping[str, object]) -> Sequence[str]:
    """One line per parameter, values below each other."""
    width = max(map(len, configuration), default=0)
    return [f"{name:<{width}}  {number(value)}" for name, value in configuration.items()]


def counts_in_words(counts: Mapping[TrialState, int]) -> str:
    """How many trials are in which state: `20 complete, 9 pruned, 1 failed`."""
    parts = [f"{counts[state]} {state.value}" for state in TrialState if counts.get(state, 0)]
    return ", ".join(parts) or "no trials yet"


def average_in_words(found: Replicated) -> str:
    """Which configuration is the best on average, of those that were trained several times."""
    values = sorted(trial.value for trial in found.trials if trial.value is not None)
    return (
        f"trained several times: the configuration of trial {found.trials[0].number} is the best on average, "
        f"{number(found.mean)} over {len(values)} trainings ({number(values[0])} to {number(values[-1])})"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Sequence[str]:
    """Lines of a table with aligned columns."""
    cells = [list(head), *([number(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def short_place(location: str) -> str:
    """A path as it is read most easily from the working folder; a URL as it is."""
    if is_url(location):
        return location
    relative = os.path.relpath(location)
    return location if relative.startswith("..") else relative
