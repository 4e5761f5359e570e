"""The plug point of whoever wants to watch a search: a view, a log, a notebook."""

from typing import TYPE_CHECKING

from automl.events import Event

if TYPE_CHECKING:
    from automl.spec import SearchSpec
    from studies.study import Study

__all__ = ["Observer"]


class Observer:
    """Is told what happens in a search; the base class keeps silent.

    The life of a search: `prepare` for each slow step before it, `begin` once, `notify` for each event, `end` once.
    """

    def prepare(self, step: str) -> None:
        """A step begins that may take seconds, such as `starting Ray`."""

    def begin(self, spec: "SearchSpec", study: "Study", slots: int) -> None:
        """The study is open and the executor ready."""

    def notify(self, event: Event) -> None:
        """Something has changed."""

    def end(self) -> None:
        """The loop is over, whatever the reason."""
