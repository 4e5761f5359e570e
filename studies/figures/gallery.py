"""All figures of a study, in the order in which they tell its story."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import plotly.graph_objects as go

from studies.figures import course, importance, optuna_plots
from studies.figures.snapshot import StudySnapshot

__all__ = ["FIGURES", "FigureKind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureKind:
    """One kind of figure.

    Attributes:
        title: what stands above it.
        explanation: one sentence on what it shows and how to read it.
        draw: snapshot -> plotly figure; raises `NotDefined` when the study has nothing to show.
        wide: whether it needs the width of a desk; a phone then scrolls it sideways.
    """

    title: str
    explanation: str
    draw: Callable[[StudySnapshot], go.Figure]
    wide: bool = False


FIGURES: Mapping[str, FigureKind] = MappingProxyType(
    {
        "history": FigureKind(
            title="Progress of the search",
            explanation="Each dot is a complete trial; the line is the best value found so far.",
            draw=optuna_plots.draw_history,
        ),
        "intermediate_values": FigureKind(
            title="Learning curves",
            explanation="The objective of each trial after every epoch; a line that ends early was pruned.",
            draw=optuna_plots.draw_intermediate_values,
        ),
        "learning_bands": FigureKind(
            title="The best trial among the others",
            explanation="Bands hold the middle of all trials that reached an epoch; the line is the best.",
            draw=course.draw_learning_bands,
        ),
        "importances": FigureKind(
            title="Which parameters mattered",
            explanation="How far each parameter sets the best tenth of the trials apart; shares sum to 1.",
            draw=importance.draw_importances,
        ),
        "parallel_coordinate": FigureKind(
            title="Configurations at a glance",
            explanation="Each line is a complete trial on its way through the parameters, coloured by value.",
            draw=optuna_plots.draw_parallel_coordinate,
            wide=True,
        ),
        "slice": FigureKind(
            title="One parameter at a time",
            explanation="The value of each complete trial over one parameter; lighter dots came later.",
            draw=optuna_plots.draw_slice,
            wide=True,
        ),
        "contour": FigureKind(
            title="Two parameters at a time",
            explanation="Between the trials the value is interpolated; yellow is good, dark is bad.",
            draw=optuna_plots.draw_contour,
            wide=True,
        ),
        "rank": FigureKind(
            title="Ranks of the trials",
            explanation="Each dot is a trial; its colour is its rank, so that outliers hide nothing.",
            draw=optuna_plots.draw_rank,
            wide=True,
        ),
        "edf": FigureKind(
            title="Distribution of the values",
            explanation="Which share of the complete trials is at or below a value.",
            draw=optuna_plots.draw_edf,
        ),
        "timeline": FigureKind(
            title="When the trials ran",
            explanation="Each bar is a trial from start to end; gaps are time in which nothing was trained.",
            draw=course.draw_timeline,
        ),
        "endings": FigureKind(
            title="How the trials ended",
            explanation="The number of trials by how they ended; failed ones by their cause.",
            draw=course.draw_endings,
        ),
    }
)
