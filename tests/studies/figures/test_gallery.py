import json
import math
from typing import Any

import plotly.graph_objects as go
import plotly.io
import pytest

from studies.figures.gallery import FIGURES
from studies.figures.snapshot import NotDefined, StudySnapshot, snapshot_of
from studies.figures.style import note_of
from tests.studies.figures.examples import Direction, ordinary_study, snapshot, trial
from tests.studies.figures.odd_studies import ODD_STUDIES


def strict(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def reason(study: StudySnapshot, name: str) -> str:
    with pytest.raises(NotDefined) as caught:
        FIGURES[name].draw(study)
    return caught.value.reason


def draw(study: StudySnapshot, name: str) -> go.Figure:
    return FIGURES[name].draw(study)


@pytest.mark.parametrize("study", ODD_STUDIES.values(), ids=ODD_STUDIES.keys())
def test_every_figure_of_an_odd_study_is_drawn_as_strict_json_or_not_defined_in_words(
    study: StudySnapshot, capfd: pytest.CaptureFixture[str]
) -> None:
    for kind in FIGURES.values():
        try:
            figure = kind.draw(study)
        except NotDefined as nothing:
            assert nothing.reason.strip()
            continue
        drawn = strict(plotly.io.to_json(figure, validate=True, engine="json"))
        assert drawn["data"], kind.title
        assert drawn["layout"]["height"] > 0
    assert capfd.readouterr() == ("", "")  # Optuna says nothing behind our back


def test_every_figure_of_an_ordinary_study_is_defined() -> None:
    study = snapshot_of(ordinary_study(40))
    assert len([kind.draw(study) for kind in FIGURES.values()]) == len(FIGURES)


@pytest.mark.parametrize(
    ("study", "expected"),
    [
        ("empty", "0 complete trials"),
        ("one trial", "1 complete trial"),
        ("two equal", "value never changes"),
        ("constant value", "value never changes"),
        ("constant parameter", "every parameter is constant"),
        ("nearly all worst", "nearly all trials share the worst value"),
        ("all pruned", "0 complete trials"),
        ("all infinite", "0 complete trials"),
    ],
)
def test_importance_of_a_study_without_differences_is_not_defined(study: str, expected: str) -> None:
    assert reason(ODD_STUDIES[study], "importances") == expected


def test_importance_finds_the_parameter_that_matters_and_leaves_out_the_constant() -> None:
    study = snapshot(*[trial(i, value=(i / 60 - 0.4) ** 2, x=i / 60, y=i * 37 % 60, resize="R") for i in range(60)])
    figure = draw(study, "importances")
    shares = dict(zip(figure.data[0].y, figure.data[0].x, strict=True))
    assert set(shares) == {"x", "y"}
    assert shares["x"] > 0.8
    assert math.isclose(sum(shares.values()), 1.0)
    assert "constant: resize" in note_of(figure)


def test_history_best_line_follows_the_direction_and_ignores_unfinished_trials() -> None:
    values = [0.5, 0.3, 0.4, 0.2]
    expected: dict[Direction, list[float]] = {"minimize": [0.5, 0.3, 0.3, 0.2], "maximize": [0.5] * 4}
    for direction, best in expected.items():
        study = snapshot(*[trial(i, value=v, x=v) for i, v in enumerate(values)], direction=direction)
        assert list(draw(study, "history").data[1].y) == best


def test_history_leaves_out_infinite_values() -> None:
    figure = draw(ODD_STUDIES["infinite values"], "history")
    assert list(figure.data[0].x) == [2, 3, 4, 5, 6]
    assert list(figure.data[1].y)[2:] == [0.2] * 5


def test_trials_keep_their_numbers_when_others_are_missing() -> None:
    figure = draw(ODD_STUDIES["gaps in the numbers"], "history")
    assert list(figure.data[0].x) == [3, 9]
    assert list(figure.data[0].y) == [1.0, 2.0]


def test_parallel_coordinate_shows_none_for_a_trial_without_the_parameter() -> None:
    study = snapshot(
        trial(0, value=0.0, kernel=3, x=0.1), trial(1, value=2.0, x=0.5), trial(2, value=1.0, kernel=5, x=0.3)
    )
    lines = [trace for trace in draw(study, "parallel_coordinate").data if trace.mode == "lines"]
    shown = {tuple(value.lower() for _, value in line.customdata) for line in lines}
    assert shown == {("0", "3", "0.1"), ("2", "none", "0.5"), ("1", "5", "0.3")}


def test_slice_shows_each_trial_at_its_own_value_and_choices_without_quotes() -> None:
    study = snapshot(trial(0, value=0.0, op="skip"), trial(1, value=2.0, op="conv"), trial(2, value=1.0, op="skip"))
    trace = draw(study, "slice").data[0]
    assert set(zip(trace.x, trace.y, strict=True)) == {("skip", 0.0), ("conv", 2.0), ("skip", 1.0)}


def test_log_axes_have_powers_of_ten_and_real_values() -> None:
    study = ODD_STUDIES["log ranges"]
    for name in ("slice", "contour", "rank"):
        figure = draw(study, name)
        axes = list(figure.select_xaxes({"type": "log"}))
        assert axes
        assert {axis.exponentformat for axis in axes} == {"power"}
        assert {axis.dtick for axis in axes} == {1}
    rates = {trial.configuration["lr"] for trial in study.trials}
    assert set(draw(study, "slice").data[0].x) == rates


def test_learning_curves_of_pruned_trials_end_early_and_the_best_is_named() -> None:
    study = snapshot_of(ordinary_study(40))
    figure = draw(study, "intermediate_values")
    by_name = {trace.name for trace in figure.data}
    assert by_name == {"complete", "pruned", "best trial"}
    assert figure.data[-1].name == "best trial"
    assert sum(bool(trace.showlegend) for trace in figure.data) == 3
    assert max(len(trace.x) for trace in figure.data if trace.name == "pruned") < 8


def test_nan_steps_are_left_out_and_said() -> None:
    figure = draw(ODD_STUDIES["nan steps"], "intermediate_values")
    assert {tuple(trace.x) for trace in figure.data} == {(3,)}
    assert "not finite: 12 reports" in note_of(figure)


def test_large_study_is_thinned_and_said() -> None:
    study = snapshot_of(ordinary_study(300, epochs=3))
    assert "Drawn: 100 of 2" in note_of(draw(study, "intermediate_values"))
    assert len(draw(study, "parallel_coordinate").data) <= 201
    numbers = {
        int(text.split("<br>")[0].split()[1]) for t in draw(study, "rank").data if t.hovertext for text in t.hovertext
    }
    assert study.best is not None
    assert study.best.number in numbers


def test_rank_colours_the_best_trial_alike_in_both_directions() -> None:
    def color_of_best(direction: Direction, best: int) -> str:
        trials = [trial(i, value=float(i), x=i / 3, y=i % 3) for i in range(6)]
        figure = draw(snapshot(*trials, direction=direction), "rank")
        texts = [text.split("<br>")[0] for text in figure.data[0].hovertext]
        return str(figure.data[0].marker.color[texts.index(f"trial {best}")])

    assert color_of_best("maximize", 5) == color_of_best("minimize", 0)


def test_timeline_names_states_that_optuna_does_not_know() -> None:
    names = {trace.name for trace in draw(snapshot_of(ordinary_study(60)), "timeline").data}
    assert names == {"complete", "pruned", "failed", "infeasible"}


def test_endings_count_failures_by_cause() -> None:
    figure = draw(ODD_STUDIES["all failed"], "endings")
    assert list(figure.data[0].y) == ["failed: oom"]
    assert list(figure.data[0].x) == [5]
