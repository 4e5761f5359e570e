"""Tune programs on a real Ray; what they leave in the study is compared with what the study's own search leaves."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
from ray import tune
from ray.tune.error import TuneError

from automl.errors import InvalidSpecError
from automl.integrations.ray_tune import StudyScheduler, StudySearcher, TuneStudy
from studies.storage import Storage
from studies.trial import Trial, TrialState
from tests.automl.conftest import Search
from tests.automl.integrations.conftest import Joined, Tuned
from tests.helpers.toy import loss_after
from tests.helpers.tune_trainings import (
    EndsItself,
    InterruptAtReport,
    StopAllAtReport,
    train_and_checkpoint,
    train_or_fail,
    train_toy,
)
from trainers.reporting import Report

pytestmark = pytest.mark.ray


def told(trial: Trial) -> tuple[Any, ...]:
    return trial.state, dict(trial.configuration), dict(trial.reports), trial.value, trial.attributes.get("best_epoch")


def states(study: TuneStudy) -> list[TrialState]:
    return [trial.state for trial in study.all_trials()]


def test_tune_program_leaves_the_same_study_as_a_search(
    joined: Joined, tuned: Tuned, toy_search: Search, tmp_path: Path
) -> None:
    settings = {"sampler": "tpe", "pruner": "asha", "epochs": 9, "seed": 3, "trials": 14}
    searched = toy_search(storage=f"sqlite:///{tmp_path}/searched.db", **settings).study.trials()
    with joined(**settings) as study:
        results = tuned(study, train_toy, num_samples=50)
        assert [told(trial) for trial in study.all_trials()] == [told(trial) for trial in searched]
        assert {TrialState.PRUNED, TrialState.COMPLETE} == set(states(study))
    assert len(results) == 14 and results.num_errors == 0


def test_two_programs_and_a_search_share_one_budget(storage: str, tuned: Tuned, toy_search: Search) -> None:
    toy_search(trials=2)
    with TuneStudy("toy", storage=storage, trials=6) as study:
        tuned(study, train_toy, num_samples=2, max_concurrent_trials=2)
        assert states(study) == [TrialState.COMPLETE] * 4
        tuned(study, train_toy, num_samples=100)
        assert states(study) == [TrialState.COMPLETE] * 6
        assert all(list(trial.reports) == [1, 2, 3, 4] for trial in study.all_trials())
    outcome = toy_search(trials=7)
    assert outcome.best is not None and len(outcome.study.trials()) == 7


def test_failed_trials_have_their_cause_and_a_lost_one_is_tried_again(
    storage: str, joined: Joined, tuned: Tuned
) -> None:
    moods = ["raise", "nan", "exit"]
    with joined(space={"mood": tune.choice(moods), "x": tune.uniform(0, 1)}, max_retries=1) as study:
        with Storage(storage) as database:
            distributions = study.settings.space.distributions()
            database.open_study("toy").enqueue([{"x": 0.5, "mood": mood} for mood in moods], distributions)
        tuned(study, train_or_fail, num_samples=4)
        raised, nan, lost = study.all_trials()
    assert (raised.state, raised.cause, raised.last_epoch) == (TrialState.FAILED, "user_error", 2)
    assert raised.attributes["error"] == "RuntimeError: the training said no"
    assert "train_or_fail" in str(raised.attributes["traceback"])
    assert (nan.state, nan.cause, nan.last_epoch) == (TrialState.FAILED, "non_finite", 1)
    assert (lost.state, lost.cause, lost.attempt, lost.losses) == (TrialState.FAILED, "lost", 2, 1)


def test_trial_that_tune_retries_is_one_trial_in_two_attempts(joined: Joined, tuned: Tuned, tmp_path: Path) -> None:
    with joined() as study:
        results = tuned(
            study,
            train_or_fail,
            num_samples=1,
            config={"mood": "once", "file": str(tmp_path / "file")},
            run={"failure_config": tune.FailureConfig(max_failures=1)},
        )
        (trial,) = study.all_trials()
    assert results.num_errors == 0
    assert (trial.state, trial.attempt, trial.losses, list(trial.reports)) == (TrialState.COMPLETE, 2, 0, [1, 2, 3, 4])


def test_criterion_of_stop_and_done_complete_a_trial(joined: Joined, tuned: Tuned) -> None:
    with joined(epochs=9) as study:
        tuned(study, train_toy, num_samples=1, run={"stop": {"training_iteration": 2}})
        tuned(study, EndsItself, num_samples=2)
        assert [list(trial.reports) for trial in study.all_trials()] == [[1, 2], [1, 2, 3], [1, 2, 3]]
        for trial in study.all_trials():
            epochs, x = trial.last_epoch, float(str(trial.configuration["x"]))
            assert (trial.state, trial.value) == (TrialState.COMPLETE, loss_after(epochs, x))


def test_program_that_is_cut_short_leaves_paused_trials_and_the_next_one_goes_on(joined: Joined, tuned: Tuned) -> None:
    with joined(trials=2) as study:
        tuned(study, train_toy, num_samples=2, run={"stop": StopAllAtReport(2)})
    with joined() as study:
        (cut,) = study.all_trials()[:1]
        assert (cut.state, cut.value, list(cut.reports)) == (TrialState.PAUSED, None, [1, 2])
        tuned(study, train_toy, num_samples=10)
        assert states(study) == [TrialState.COMPLETE] * 2
        assert (study.all_trials()[0].attempt, study.all_trials()[0].losses) == (2, 0)


def test_paused_trial_goes_on_from_tunes_checkpoint(joined: Joined, tuned: Tuned, tmp_path: Path) -> None:
    with joined(pruner="tests.helpers.pruners:PauseAtTwo", time_attr="epoch") as study:
        tuned(study, train_and_checkpoint, num_samples=1, config={"file": str(tmp_path / "trained")})
        (trial,) = study.all_trials()
    assert (trial.state, trial.attempt, list(trial.reports)) == (TrialState.COMPLETE, 2, [1, 2, 3, 4])
    assert (tmp_path / "trained").read_text().split() == ["1", "2", "3", "4"]


def test_interrupted_program_is_restored_by_tune(joined: Joined, tuned: Tuned, tmp_path: Path) -> None:
    config, name = {"file": str(tmp_path / "trained")}, "interrupted"
    with joined() as study:
        run = {"name": name, "callbacks": [InterruptAtReport(2)]}
        tuned(study, train_and_checkpoint, num_samples=2, config=config, run=run)
    study = joined()
    assert study.all_trials()[0].state is TrialState.PAUSED
    assert TrialState.COMPLETE not in states(study)
    study.close()
    tune.Tuner.restore(str(tmp_path / "tune" / name), train_and_checkpoint, param_space=config).fit()
    with joined() as study:
        assert states(study) == [TrialState.COMPLETE] * 2
        assert all(list(trial.reports) == [1, 2, 3, 4] for trial in study.all_trials())
    # The second epoch was reported, and its checkpoint perhaps not kept yet.
    assert (tmp_path / "trained").read_text().split().count("1") == 2


def test_restored_program_leaves_a_trial_that_others_have_ended(joined: Joined, tuned: Tuned, tmp_path: Path) -> None:
    config, name = {"file": str(tmp_path / "trained")}, "interrupted"
    with joined(trials=2) as study:
        run = {"name": name, "callbacks": [InterruptAtReport(1)]}
        tuned(study, train_and_checkpoint, num_samples=1, config=config, run=run)
    with joined() as study:
        assert study.asking.ask("others") == study.all_trials()[0].configuration
        study.telling.complete("others", Report(epoch=4, metrics={"loss": 0.25}))
    tune.Tuner.restore(str(tmp_path / "tune" / name), train_and_checkpoint, param_space=config).fit()
    assert (tmp_path / "trained").read_text().split().count("1") == 1
    with joined() as study:
        assert [(trial.value, trial.attempt) for trial in study.all_trials()] == [(0.25, 2)]


def test_wrong_metric_ends_the_program_at_its_first_report(storage: str, joined: Joined, tuned: Tuned) -> None:
    with joined() as study, pytest.raises(TuneError, match="a report has no 'loss', but los"):
        tuned(study, train_or_fail, config={"mood": "other metric"})
    with Storage(storage) as database:
        assert [trial.state for trial in database.open_study("toy").trials()] == [TrialState.PAUSED]


def test_searcher_and_scheduler_are_refused_alone_and_with_another_objective(joined: Joined, tuned: Tuned) -> None:
    with joined() as study:
        with pytest.raises(InvalidSpecError, match="without StudyScheduler"):
            tuned(study, train_toy, scheduler=None)
        with pytest.raises(InvalidSpecError, match="comes from another searcher"):
            tuned(study, train_toy, search_alg=None, config={"x": tune.uniform(0, 1)})
        with pytest.raises(InvalidSpecError, match="TuneConfig has 'accuracy', but the study 'loss'"):
            tuned(study, train_toy, metric="accuracy", mode="max")
        assert study.all_trials() == ()
    with pytest.raises(InvalidSpecError, match="call Tuner\\.fit inside"):
        tuned(study, train_toy)


def test_names_of_the_parts_are_public() -> None:
    assert issubclass(StudySearcher, tune.search.Searcher)
    assert issubclass(StudyScheduler, tune.schedulers.TrialScheduler)
