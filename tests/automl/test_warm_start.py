"""A warm start: what is learnt from elsewhere, what is left out, and that it stays apart from the own trials."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from automl import results, warm_start
from automl.errors import InvalidSpecError
from automl.pruners.median import MedianPruner
from automl.results import Source
from automl.samplers.evolution import EvolutionSampler
from automl.warm_start import Fitted
from search_spaces.versions import SpaceHistory
from studies.errors import StudyNotFoundError
from studies.export import write_export
from studies.report import write_report
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.automl.conftest import Search
from tests.helpers.picky_toy import SPACE

HISTORY = SpaceHistory([], SPACE)
DISTRIBUTIONS = SPACE.distributions()


def other_study(storage: str, name: str = "other", *, direction: Any = "minimize") -> Study:
    """Two complete trials with y = 9, and one that failed."""
    study = Storage(storage).create_study(name, direction=direction)
    for number, (x, value) in enumerate([(0.25, 0.5), (0.75, 0.25)]):
        lease = study.create_trial(number, {"x": x, "y": 9}, DISTRIBUTIONS, owner="elsewhere")
        study.tell(lease, TrialState.COMPLETE, value=value)
    study.tell(
        study.create_trial(2, {"x": 0.5, "y": 9}, DISTRIBUTIONS, owner="elsewhere"), TrialState.FAILED, cause="x"
    )
    return study


def fitted(source: Source, **options: Any) -> Fitted:
    return warm_start.fit(source, HISTORY, "minimize", **options)


def values(found: Fitted) -> list[tuple[object, object, float]]:
    return [(r.configuration["x"], r.configuration["y"], r.value) for r in found.results]


def test_results_of_a_study_are_added_once(storage: str) -> None:
    found = fitted(results.from_study(other_study(storage)))
    study = Storage(storage).create_study("new", direction="minimize")
    assert warm_start.add(study, found) == 2
    assert warm_start.add(study, found) == 0
    assert [(t.state, t.is_imported, t.is_counted, t.value) for t in study.trials()] == [
        (TrialState.COMPLETE, True, False, 0.5),
        (TrialState.COMPLETE, True, False, 0.25),
    ]
    assert study.trials()[1].attributes == {"imported_from": "study other", "imported_as": "trial 1"}
    assert found.without_value == 1


def test_results_are_added_once_by_several_at_the_same_moment(storage: str) -> None:
    found = fitted(results.from_study(other_study(storage)))
    Storage(storage).create_study("new", direction="minimize")
    with ThreadPoolExecutor(6) as threads:
        opened = [Storage(storage).open_study("new") for _ in range(6)]
        added = list(threads.map(lambda study: warm_start.add(study, found, once=True), opened))
    assert sorted(added) == [0, 0, 0, 0, 0, 2]


def test_results_that_were_imported_are_not_passed_on(storage: str) -> None:
    middle = Storage(storage).create_study("middle", direction="minimize")
    warm_start.add(middle, fitted(results.from_study(other_study(storage))))
    assert results.from_study(middle).results == ()


def test_results_of_plain_optuna_fit_or_are_left_out_with_a_reason(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/optuna.db"
    foreign = optuna.create_study(study_name="foreign", storage=url)
    for x, y, value in ((0.25, 9, 1.0), (5.0, 9, 2.0), (0.9, 0, 3.0)):
        foreign.enqueue_trial({"x": x, "y": y})
        trial = foreign.ask({"x": optuna.distributions.FloatDistribution(0, 9), "y": DISTRIBUTIONS["y"]})
        foreign.tell(trial, value)
    found = fitted(results.from_study(Storage(url).open_study("foreign")))
    assert values(found) == [(0.25, 9, 1.0)]
    assert found.left_out == ("trial 1: x=5.0 is outside [0.0, 1.0]", "trial 2: x is too large for this y")


def test_missing_parameter_is_the_default_and_top_keeps_the_best(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps([{"x": 0.5, "loss": 3}, {"x": 0.4, "loss": 1}, {"x": 0.3, "loss": "?"}, {"x": 0.2}]))
    source = results.from_file(file, "loss", HISTORY)
    assert source.without_value == 2
    assert values(fitted(source)) == [(0.5, 5, 3.0), (0.4, 5, 1.0)]
    assert values(fitted(source, top=1)) == [(0.4, 5, 1.0)]


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_export_of_a_study_can_be_imported(storage: str, tmp_path: Path, suffix: str) -> None:
    file = write_export(other_study(storage), tmp_path / f"trials.{suffix}")
    source = results.from_file(file, "value", HISTORY)
    assert (source.name, source.without_value) == (f"file trials.{suffix}", 1)
    assert values(fitted(source)) == [(0.25, 9, 0.5), (0.75, 9, 0.25)]
    if suffix == "json":
        with pytest.raises(InvalidSpecError, match="they are to minimize, and this study is to maximize"):
            warm_start.fit(source, HISTORY, "maximize")


def test_table_of_optuna_can_be_imported(storage: str, tmp_path: Path) -> None:
    file = tmp_path / "optuna.csv"
    other_study(storage).as_optuna().trials_dataframe().to_csv(file, index=False)
    assert values(fitted(results.from_file(file, "value", HISTORY))) == [(0.25, 9, 0.5), (0.75, 9, 0.25)]


def test_file_without_the_column_or_without_a_fit_is_refused_with_reasons(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("x,z,value\n" + "0.5,1,3\n" * 5)
    with pytest.raises(InvalidSpecError, match=r"no column 'loss'.*columns: x, z, value"):
        results.from_file(file, "loss", HISTORY)
    with pytest.raises(
        InvalidSpecError, match=r"none of 5 results fits(.|\n)*line 2: no parameter 'z'(.|\n)*and 2 more"
    ):
        fitted(results.from_file(file, "value", HISTORY))


def test_search_learns_from_a_study_and_trains_its_whole_budget(toy_search: Search, storage: str) -> None:
    toy_search(study="teacher", trials=3)
    outcome = toy_search(trials=2, warm_start="teacher")
    trials = outcome.study.trials()
    assert [trial.is_imported for trial in trials] == [True] * 3 + [False] * 2
    assert outcome.best is not None and not outcome.best.is_imported
    assert outcome.study.counts()[TrialState.COMPLETE] == 2
    assert outcome.reason == "all 2 trials ended"
    summary = next(one for one in Storage(storage).studies() if one.name == "toy")
    assert (summary.imported, summary.best_value) == (3, outcome.best.value)
    toy_search(study="teacher", trials=4)
    more = toy_search(trials=3, warm_start="teacher")
    assert len(more.study.trials()) == 6, "a study takes one warm start from a source; `import` takes what is new"
    assert "warm_start" not in more.study.specification


@pytest.mark.parametrize("sampler", ["tpe", "evolution", "random"])
@pytest.mark.parametrize("pruner", ["asha", "median"])
def test_samplers_and_pruners_take_imported_trials(
    toy_search: Search, tmp_path: Path, sampler: str, pruner: str
) -> None:
    file = tmp_path / "results.csv"
    file.write_text("x,value\n" + "".join(f"{n / 20},{(n / 20 - 0.3) ** 2}\n" for n in range(20)))
    outcome = toy_search(trials=3, warm_start=str(file), sampler=sampler, pruner=pruner, epochs=3)
    own = [trial for trial in outcome.study.trials() if not trial.is_imported]
    assert len(own) == 3
    assert len(outcome.study.trials()) == 23
    if sampler == "tpe":
        assert all(abs(float(str(trial.configuration["x"])) - 0.3) < 0.3 for trial in own), "they learnt where it is"


def test_search_whose_results_cannot_be_used_leaves_no_study(toy_search: Search, storage: str, tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("z,value\n1,2\n")
    with pytest.raises(InvalidSpecError, match="no parameter 'z'"):
        toy_search(warm_start=str(file))
    with pytest.raises(InvalidSpecError, match="warm-start: there is no file"):
        toy_search(warm_start=str(tmp_path / "none.csv"))
    with pytest.raises(StudyNotFoundError, match="nobody"):
        toy_search(warm_start="nobody")
    assert Storage(storage).studies() == ()


def test_pruner_and_report_leave_imported_trials_aside(storage: str, tmp_path: Path) -> None:
    study = Storage(storage).create_study("new", direction="minimize")
    warm_start.add(study, fitted(results.from_study(other_study(storage))))
    lease = study.create_trial(2, {"x": 0.5, "y": 9}, DISTRIBUTIONS, owner="elsewhere")
    study.report(lease, 1, 9.0)
    study.tell(lease, TrialState.COMPLETE, value=9.0)
    assert study.best_trial() == study.trials()[2]
    page = write_report(study, tmp_path / "report.html", space=SPACE).read_text(encoding="utf-8")
    assert "Of 1 trial, 1 is complete" in page or "1 are complete" in page
    assert "learnt from 2 imported trials" in page
    assert "Trial 2 reached the lowest" in page
    judge = MedianPruner("minimize", 9, startup_trials=2, warmup_epochs=0)
    assert judge.decide(study.trials()[2], study.trials()).name == "CONTINUE"


def test_evolution_starts_from_the_best_of_the_results(storage: str, tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("x,y,value\n" + "".join(f"{n / 20},10,{(n / 20 - 0.3) ** 2}\n" for n in range(20)))
    study = Storage(storage).create_study("new", direction="minimize")
    warm_start.add(study, fitted(results.from_file(file, "value", HISTORY)))
    sampler = EvolutionSampler("minimize", population_size=3, tournament_size=1)
    for seed in range(20):
        proposed = sampler.suggest(SPACE, study.trials(), np.random.default_rng(seed))
        assert proposed["x"] in (0.25, 0.3, 0.35) or proposed["y"] == 10, "one parameter of a good one is another"
