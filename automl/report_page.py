"""The report of a study together with what only its search space knows: ranges, roles, and the drawing of a network."""

from pathlib import Path

from search_spaces import catalog
from search_spaces.catalog import SpaceModule
from search_spaces.discovery import PluginImportError
from search_spaces.errors import UnknownSearchSpaceError
from studies.report import write_report
from studies.study import Study

__all__ = ["write_report_page"]


def write_report_page(study: Study, path: Path) -> Path:
    """Write a study's report page, with the best network drawn where its space is at hand and can draw."""
    space = _space_of(study)
    if space is None:
        return write_report(study, path)
    return write_report(study, path, space=space.SPACE, graph=getattr(space, "graph", None))


def _space_of(study: Study) -> SpaceModule | None:
    """The study's space; None for a study of another program, or a person's own space that is not on this machine."""
    try:
        return catalog.load(study.specification.get("space", ""))
    except (UnknownSearchSpaceError, PluginImportError):
        return None
