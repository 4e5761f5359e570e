"""Which parameters made the difference, and which trials and studies cannot tell."""

import math
import warnings
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import plotly.graph_objects as go
from optuna.exceptions import ExperimentalWarning

from studies.figures.frozen import label, optuna_study
from studies.figures.snapshot import NotDefined, StudySnapshot, value_of
from studies.figures.style import ACCENT, add_note, dress
from studies.figures.words import counted, listed

__all__ = ["draw_importances", "importances", "leading_parameters"]

_FEWEST_TRIALS = 5
_TRUSTED_TRIALS = 50  # PED-ANOVA wants at least 5 trials in its best tenth (its authors' note)


@lru_cache(maxsize=1)  # several figures of one report ask
def importances(snapshot: StudySnapshot) -> Mapping[str, float]:
    """Return each varied parameter's share of the difference between the best tenth and all trials.

    Returns:
        parameter name -> share; the shares sum to 1, largest first.

    Raises:
        NotDefined: when nothing can be said, instead of equal shares.

    Source:
        PED-ANOVA, Watanabe et al. 2023, arXiv 2304.10255, as implemented by Optuna.
    """
    _check_defined(snapshot)
    from optuna.importance import get_param_importances  # here, because it loads scikit-learn, which takes seconds

    labels = {label(name): name for name in snapshot.varied}
    study = optuna_study(snapshot, {trial.number for trial in snapshot.complete}, parameters=snapshot.varied)
    with warnings.catch_warnings():
        # Only the raw shares tell "no difference" from "equal difference", and asking for them is experimental.
        warnings.simplefilter("ignore", ExperimentalWarning)
        # A parameter that all trials but one have, or lack, is counted as it is; the note calls few trials rough.
        warnings.filterwarnings("ignore", message="Some regimes for parameter", category=UserWarning)
        raw = get_param_importances(study, params=list(labels), normalize=False)
    total = sum(raw.values())
    if not total > 0.0:
        raise NotDefined("no parameter differs between the best trials and the others")
    ordered = sorted(raw.items(), key=lambda item: -item[1])
    return MappingProxyType({labels[name]: share / total for name, share in ordered})


def leading_parameters(snapshot: StudySnapshot, most: int) -> tuple[str, ...]:
    """Return the most important varied parameters; those tried first when importance is not defined."""
    if len(snapshot.varied) <= most:
        return snapshot.varied
    try:
        return tuple(importances(snapshot))[:most]
    except NotDefined:
        return snapshot.varied[:most]


def draw_importances(snapshot: StudySnapshot) -> go.Figure:
    """Draw the shares as bars.

    Raises:
        NotDefined: see `importances`.
    """
    shares = importances(snapshot)
    names = list(shares)[::-1]
    figure = go.Figure(
        go.Bar(
            x=[shares[name] for name in names],
            y=[label(name) for name in names],
            orientation="h",
            marker={"color": ACCENT},
            text=[f"{shares[name]:.2f}" if shares[name] >= 0.01 else "under 0.01" for name in names],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
        )
    )
    dress(figure, height=90 + 30 * len(names))
    figure.update_xaxes(title_text="share of the difference", rangemode="tozero")
    figure.update_yaxes(type="category")
    return add_note(figure, _caution(snapshot), _constants(snapshot))


def _check_defined(snapshot: StudySnapshot) -> None:
    complete = snapshot.complete
    if len(complete) < 2:
        raise NotDefined(counted(len(complete), "complete trial"))
    if len({value_of(trial) for trial in complete}) == 1:
        raise NotDefined("value never changes")
    if not snapshot.varied:
        raise NotDefined("every parameter is constant")
    best_tenth = snapshot.ranking[: math.ceil(len(complete) / 10)]
    if value_of(best_tenth[-1]) == value_of(snapshot.ranking[-1]):
        raise NotDefined("nearly all trials share the worst value")
    if len(complete) < _FEWEST_TRIALS:
        raise NotDefined(f"{counted(len(complete), 'complete trial')}, at least {_FEWEST_TRIALS} are needed")


def _caution(snapshot: StudySnapshot) -> str:
    if len(snapshot.complete) >= _TRUSTED_TRIALS:
        return ""
    return f"A rough estimate: it rests on {counted(len(snapshot.complete), 'complete trial')}."


def _constants(snapshot: StudySnapshot) -> str:
    if not snapshot.constant:
        return ""
    return f"Left out, because constant: {listed(snapshot.constant)}."
