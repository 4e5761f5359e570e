"""What a simulation tells, and how it is told: as lines or JSON, and on a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from automl.simulation.courses import Course

__all__ = ["Answer", "tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found.

    Attributes:
        title: what was simulated.
        metric: what the objective is called.
        lines: all of it for people.
        facts: all of it as plain values.
        courses: who searched -> the ways of the searches, to be drawn.
        has_result: whether any training was complete.
    """

    title: str
    metric: str
    lines: Sequence[str]
    facts: Mapping[str, Any]
    courses: "Mapping[str, Sequence[Course]]"
    has_result: bool


def tell(answer: Answer, plot: Path | None, as_json: bool) -> None:
    """Print what was found, and draw it where a page is wanted.

    Raises:
        InvalidSpecError: the page cannot be written.
    """
    from automl.errors import InvalidSpecError
    from automl.simulation.pages import write_simulation_page
    from search_spaces.strict_json import strict_json

    typer.echo(strict_json(answer.facts, indent=2) if as_json else "\n".join(answer.lines))
    if plot is None:
        return
    try:
        write_simulation_page(plot, answer.title, answer.lines, answer.courses, answer.metric)
    except OSError as error:
        raise InvalidSpecError([f"plot: cannot write {plot}: {error.strerror}"], "the command line") from error
    typer.echo(f"the page is {plot}", err=True)
