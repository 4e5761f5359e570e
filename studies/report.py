"""The report of a study: one HTML file that needs no network, no server and no other file."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from studies.figures.snapshot import NotDefined, StudyLike, StudySnapshot, snapshot_of
from studies.html_page import figure_card, html_page
from studies.trial import JsonScalar, TrialState
from studies.whole_file import written_beside

if TYPE_CHECKING:
    import optuna
    from plotly.graph_objects import Figure

    from search_spaces.graph import NetworkGraph
    from search_spaces.space import SearchSpace

__all__ = ["render_report", "write_report"]

_CELL_CAPTION = (
    "<figcaption><h3>Its cell</h3><p>Nodes are feature maps that add up what enters; "
    "dashed operations lie on no path and are not built.</p></figcaption>"
)


def write_report(
    study: "StudyLike | StudySnapshot | optuna.Study",
    path: Path | str,
    *,
    space: "SearchSpace | None" = None,
    graph: "Callable[[Mapping[str, JsonScalar]], NetworkGraph | None] | None" = None,
    metric: str | None = None,
) -> Path:
    """Write the report of a study, whatever its trials came to, and return where it is.

    The file is written beside its place and renamed, so that a reader never sees half a page.

    Args:
        study: a study of ours, a snapshot, or a plain Optuna study with one objective.
        path: the file; its folder is made.
        space: gives the parameters' ranges and roles; None: ranges are inferred from the trials.
        graph: configuration -> graph of its cell, to draw the best one; None, or a None from it: no drawing.
        metric: what the objective is called; None: as the study's specification says.

    Raises:
        ValueError: when an Optuna study has several objectives.
        OSError: when the file cannot be written.
    """
    snapshot = snapshot_of(study, metric=metric, distributions=space.distributions() if space is not None else None)
    roles = {} if space is None else {name: p.role for name, p in space.parameters.items()}
    target = Path(path).expanduser()
    page = render_report(snapshot, roles=roles, graph=graph)
    with written_beside(target) as beside:
        beside.write_text(page, encoding="utf-8")
    return target


def render_report(
    snapshot: StudySnapshot,
    *,
    roles: Mapping[str, str] | None = None,
    graph: "Callable[[Mapping[str, JsonScalar]], NetworkGraph | None] | None" = None,
    written_at: datetime | None = None,
) -> str:
    """Return the report as one HTML text.

    Args:
        snapshot: the study.
        roles: parameter name -> role, to group the best configuration by.
        graph: configuration -> graph of its cell.
        written_at: the time named at the foot of the page; None: now.
    """
    from studies.figures import sections
    from studies.figures.overview import overview_of

    overview = overview_of(snapshot)
    body = [sections.header(overview), sections.key_numbers(overview), sections.summary(overview)]
    if snapshot.best is not None:
        body.append(_best(snapshot, roles or {}, graph))
    section, figures = _figures(snapshot)
    body.append(section)
    body.append(_tables(snapshot))
    moment = (written_at or datetime.now(UTC)).astimezone(UTC)
    body.append(f"<footer>Written {moment:%Y-%m-%d %H:%M} UTC. This page works offline.</footer>")
    return html_page(f"{snapshot.name}: study report", "".join(body), figures)


def _best(
    snapshot: StudySnapshot,
    roles: Mapping[str, str],
    graph: "Callable[[Mapping[str, JsonScalar]], NetworkGraph | None] | None",
) -> str:
    from studies.figures import sections
    from studies.figures.network import network_svg

    best = snapshot.best
    assert best is not None, "asked only when a trial is complete"
    table = f'<div class="card">{sections.best_configuration(best, roles)}</div>'
    drawing = ""
    drawn = None if graph is None else graph(best.configuration)
    if drawn is not None:
        svg = network_svg(drawn, title=f"Cell of trial {best.number}")
        drawing = f'<figure class="card">{_CELL_CAPTION}<div class="scroll">{svg}</div></figure>'
    return f'<section><h2>Best configuration</h2><div class="figures">{drawing}{table}</div></section>'


def _figures(snapshot: StudySnapshot) -> "tuple[str, Mapping[str, Figure]]":
    """Return the section of all figures, and those that are defined."""
    from studies.figures.gallery import FIGURES

    cards, missing = [], []
    drawn: dict[str, Figure] = {}
    for name, kind in FIGURES.items():
        try:
            figure = kind.draw(snapshot)
        except NotDefined as nothing:
            missing.append(f"<li>{escape(kind.title)}: not defined ({escape(nothing.reason)}).</li>")
        else:
            cards.append(figure_card(name, kind.title, kind.explanation, figure, is_wide=kind.wide))
            drawn[name] = figure
    shown = f'<h2>Figures</h2><div class="figures">{"".join(cards)}</div>' if cards else ""
    hidden = f'<h2>Figures not shown</h2><ul class="card missing">{"".join(missing)}</ul>' if missing else ""
    return f"<section>{shown}{hidden}</section>", drawn


def _tables(snapshot: StudySnapshot) -> str:
    from studies.figures import sections
    from studies.figures.importance import leading_parameters

    parts = []
    if snapshot.complete:
        names = leading_parameters(snapshot, sections.MOST_PARAMETERS) or snapshot.parameters
        parts.append(f'<h2>Best trials</h2><div class="card">{sections.top_trials(snapshot, names)}</div>')
    if any(trial.state in (TrialState.FAILED, TrialState.INFEASIBLE) for trial in snapshot.trials):
        parts.append(f'<h2>Failures</h2><div class="card">{sections.failures(snapshot)}</div>')
    return f"<section>{''.join(parts)}</section>" if parts else ""
