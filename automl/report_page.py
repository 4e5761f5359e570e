"""The report of a study together with what only its search space knows: ranges, roles, and the drawing of a network."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from automl.continuation import space_history
from search_spaces import catalog
from search_spaces.catalog import SpaceModule
from search_spaces.configuration import JsonScalar
from search_spaces.discovery import PluginImportError
from search_spaces.errors import UnknownSearchSpaceError
from search_spaces.graph import NetworkGraph
from studies.report import write_report
from studies.study import Study
from trainers.artifact_files import Location, is_url, write_file
from trainers.replaced_parameters import complete_configuration, searched_space

__all__ = ["write_report_page"]


def write_report_page(study: Study, location: Location) -> str:
    """Write a study's report page, with the best network drawn where its space is at hand and can draw.

    Args:
        study: the study.
        location: a file of this machine, or the URL of one.

    Returns:
        Where it is.

    Raises:
        OSError: the file cannot be written.
        ArtifactStoreError: the store of a URL does not take it.
    """
    if not is_url(location):
        return str(_write(study, Path(location)))
    with tempfile.TemporaryDirectory(prefix="automl-") as folder:
        page = _write(study, Path(folder, "report.html")).read_bytes()
    write_file(location, lambda file: file.write(page))
    return str(location)


def _write(study: Study, path: Path) -> Path:
    space = _space_of(study)
    if space is None:
        return write_report(study, path)
    constants = study.specification.get("set", {})
    searched = searched_space(space.SPACE, constants)
    history = space_history(study, searched)

    def graph(configuration: Mapping[str, JsonScalar]) -> NetworkGraph | None:
        """The drawing, where the present space still has this network: the best trial may be of an older version."""
        present = history.adopt(configuration)
        if present is None:
            return None
        return catalog.graph(space, complete_configuration(present, constants, space.SPACE))

    return write_report(study, path, space=searched, graph=graph)


def _space_of(study: Study) -> SpaceModule | None:
    """The study's space; None for a study of another program, or a person's own space that is not on this machine."""
    try:
        return catalog.load(study.specification.get("space", ""), has_networks=False)
    except (UnknownSearchSpaceError, PluginImportError):
        return None
