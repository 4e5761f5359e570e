"""A study whose space was changed: its versions, and that Optuna's tools and the report still read all of it."""

import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import pytest
from optuna import visualization

from search_spaces import Categorical, Float, Integer, JsonScalar, SearchSpace
from studies.report import write_report
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState

OTHER_OBJECTIVES = {"plot_pareto_front", "plot_hypervolume_history"}
NEEDS_A_SAMPLER = {"plot_terminator_improvement"}
PLOTS = sorted(name for name in visualization.__all__ if name.startswith("plot_"))

VERSIONS = (
    SearchSpace(
        "cell",
        {
            "operation": Categorical(choices=("conv3", "skip")),
            "width": Categorical(choices=(16, 32)),
            "rate": Float(low=0.0, high=0.1),
            "depth": Integer(low=1, high=4),
            "gone": Float(low=0.0, high=1.0),
        },
    ),
    SearchSpace(
        "cell",
        {
            "operation": Categorical(choices=("conv3", "avg")),
            "width": Categorical(choices=(32, 64, 128)),
            "rate": Float(low=0.001, high=0.5, log=True),
            "depth": Integer(low=2, high=9, log=True),
            "dropout": Float(low=0.0, high=0.5, step=0.1),
        },
        defaults={"operation": "conv3", "width": 32, "rate": 0.01, "depth": 2, "dropout": 0.1},
    ),
)
CONFIGURATIONS: tuple[list[dict[str, JsonScalar]], ...] = (
    [
        {"operation": "conv3", "width": 16, "rate": 0.0, "depth": 1, "gone": 0.5},
        {"operation": "skip", "width": 32, "rate": 0.1, "depth": 4, "gone": 0.1},
        {"operation": "conv3", "width": 32, "rate": 0.05, "depth": 2, "gone": 0.9},
    ],
    [
        {"operation": "avg", "width": 128, "rate": 0.001, "depth": 9, "dropout": 0.0},
        {"operation": "conv3", "width": 64, "rate": 0.4, "depth": 3, "dropout": 0.5},
        {"operation": "avg", "width": 32, "rate": 0.02, "depth": 2, "dropout": 0.1},
    ],
)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/studies.db"


def changed_study(url: str) -> Study:
    study = Storage(url).create_study("changed", direction="minimize", specification={"metric": "loss"})
    for space, configurations in zip(VERSIONS, CONFIGURATIONS, strict=True):
        study.add_space_version(space.to_json())
        for configuration in configurations:
            number = len(study.trials())
            lease = study.create_trial(number, configuration, space.distributions(), owner="here")
            for epoch in (1, 2):
                study.report(lease, epoch, 1.0 / (number + 2))
            study.tell(lease, TrialState.COMPLETE, value=1.0 / (number + 2))
    return study


def test_study_keeps_its_versions_and_every_configuration(url: str) -> None:
    changed_study(url)
    study = Storage(url).open_study("changed")
    assert study.space_versions() == tuple(space.to_json() for space in VERSIONS)
    assert [dict(trial.configuration) for trial in study.trials()] == [c for some in CONFIGURATIONS for c in some]


def test_optuna_reads_the_configurations_and_draws_every_plot(url: str) -> None:
    study = changed_study(url)
    plain = study.as_optuna()
    assert [trial.params for trial in plain.trials] == [c for some in CONFIGURATIONS for c in some]
    frame: Any = plain.trials_dataframe()
    assert list(frame["params_operation"]) == ["conv3", "skip", "conv3", "avg", "conv3", "avg"]
    for name in PLOTS:
        if name in OTHER_OBJECTIVES | NEEDS_A_SAMPLER:
            continue
        with warnings.catch_warnings():
            # Optuna says that some plots are experimental, and that six trials are few for an importance.
            warnings.simplefilter("ignore")
            figure = getattr(visualization, name)(plain)
        assert figure.data or name == "plot_timeline", name


def test_report_of_a_changed_study_has_all_figures(url: str, tmp_path: Path) -> None:
    page = write_report(changed_study(url), tmp_path / "report.html", space=VERSIONS[-1]).read_text()
    for title in ("Which parameters mattered", "Configurations at a glance", "One parameter at a time", "Ranks of the"):
        assert f"<h3>{title}" in page
    assert ": not defined (" not in page


def test_version_is_stored_once_by_many_processes(url: str) -> None:
    Storage(url).create_study("shared", direction="minimize")
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert set(pool.map(add_version, [url] * 8)) == {1}
    assert len(Storage(url).open_study("shared").space_versions()) == 1


def add_version(url: str) -> int:
    return Storage(url).open_study("shared").add_space_version(VERSIONS[0].to_json())


def test_optuna_itself_refuses_to_go_on_with_changed_choices(url: str) -> None:
    """What we promise is that it reads the study; should it ever go on, the documentation can say so."""
    plain = changed_study(url).as_optuna()
    with pytest.raises(ValueError, match="dynamic value space"):
        plain.ask(VERSIONS[-1].distributions())
