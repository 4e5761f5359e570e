"""Whole searches in this process: a toy trainer, a real database."""

import hashlib
import json
import math
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from automl import api
from automl.artifacts import Artifacts
from automl.cli.outcome import print_outcome
from automl.errors import InvalidSpecError
from automl.events import EpochReported, Event, TrialStarted
from search_spaces.configuration import Configuration, JsonScalar
from studies.checkpoints import CheckpointLedger
from studies.errors import CheckpointStoreError
from studies.standing import Limits
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, TrialState
from tests.automl.conftest import Recorder, Search
from tests.helpers.moody_toy import SPACE as MOODY
from tests.helpers.toy import SPACE, ToyTrainer, loss_after
from trainers.config import TrainTask
from trainers.data.spec import DataSpec
from trainers.reporting import TrialResult


def enqueue(study: Study, *configurations: Mapping[str, JsonScalar]) -> None:
    usual: Mapping[str, JsonScalar] = {"x": 0.5, "mood": "fine", "epoch_s": 0.0}
    for configuration in configurations:
        study.enqueue([MOODY.validate({**usual, **configuration})], MOODY.distributions())


def moody_study(storage: str, *configurations: Mapping[str, JsonScalar]) -> Study:
    study = Storage(storage).create_study("toy", direction="minimize")
    enqueue(study, *configurations)
    return study


def test_search_budget_is_the_studys_over_all_runs(toy_search: Search) -> None:
    assert len(toy_search(trials=10).study.trials()) == 10
    again = toy_search(trials=10)
    assert len(again.study.trials()) == 10
    assert again.exit_code == 0
    assert "10 of 10 trials have ended" in again.reason
    assert len(toy_search(trials=15).study.trials()) == 15


def test_search_values_are_the_best_epochs_and_the_checkpoint_is_that_ones(toy_search: Search) -> None:
    outcome = toy_search(trials=5)
    assert outcome.best is not None
    for trial in outcome.study.trials():
        x = float(str(trial.configuration["x"]))
        assert trial.state is TrialState.COMPLETE
        assert dict(trial.reports) == {epoch: loss_after(epoch, x) for epoch in (1, 2, 3, 4)}
        assert trial.value == min(trial.reports.values())
    assert outcome.best.value == min(trial.value or math.inf for trial in outcome.study.trials())
    assert outcome.best.attributes["best_epoch"] == 4
    assert outcome.test == {"loss": 4.0}, "the toy's test metric is the epoch of the checkpoint that was evaluated"


def test_search_only_the_best_trials_best_checkpoint_is_left(toy_search: Search, tmp_path: Path) -> None:
    outcome = toy_search(trials=6)
    assert outcome.best is not None
    left = sorted(path for path in (tmp_path / "artifacts").rglob("epoch-*"))
    assert [path.name for path in left] == ["epoch-0004.json"]
    assert f"trial-{outcome.best.number:05d}" in str(left[0])


def test_search_resumed_equals_unbroken(toy_search: Search, tmp_path: Path) -> None:
    unbroken = toy_search(trials=12, sampler="evolution", pruner="median")
    other, files = f"sqlite:///{tmp_path}/other.db", str(tmp_path / "other files")
    toy_search(trials=5, sampler="evolution", pruner="median", storage=other, artifacts=files)
    resumed = api.resume("toy", storage=other, trials=12, artifacts=files)

    def history(study: Study) -> list[tuple[object, ...]]:
        return [(t.number, Configuration(t.configuration), t.state, t.value, dict(t.reports)) for t in study.trials()]

    assert history(resumed.study) == history(unbroken.study)


def test_search_same_seed_same_trials_and_another_seed_others(toy_search: Search, tmp_path: Path) -> None:
    def xs(name: str, seed: int) -> list[object]:
        outcome = toy_search(trials=4, seed=seed, storage=f"sqlite:///{tmp_path}/{name}/studies.db")
        return [trial.configuration["x"] for trial in outcome.study.trials()]

    assert xs("a", 3) == xs("b", 3) != xs("c", 4)


def test_search_strange_objectives_fail_their_trial_and_nothing_else(toy_search: Search, storage: str) -> None:
    moods = ("fine", "nan", "inf", "-inf", "none", "text", "silent", "raise_0")
    configurations: list[Mapping[str, JsonScalar]] = [{"mood": mood, "x": 0.3} for mood in moods]
    moody_study(storage, *configurations, {"x": 0.4})
    outcome = toy_search(space="tests.helpers.moody_toy", trials=9, epochs=2, max_failures=99)
    ends = [(trial.state, trial.cause) for trial in outcome.study.trials()]
    non_finite, user_error = (TrialState.FAILED, "non_finite"), (TrialState.FAILED, "user_error")
    complete = (TrialState.COMPLETE, None)
    assert ends == [complete, *[non_finite] * 3, *[user_error] * 4, complete]
    assert outcome.best is not None and outcome.best.number == 0
    assert "'0.3'" in str(outcome.study.trials()[5].attributes["error"])
    assert "ZeroDivisionError" in str(outcome.study.trials()[7].attributes["traceback"])
    json.dumps([dict(trial.attributes) for trial in outcome.study.trials()], allow_nan=False)


def test_search_everything_pruned_ends_with_3_and_a_report(toy_search: Search) -> None:
    outcome = toy_search(trials=5, pruner="tests.helpers.pruners:StopAtOnce")
    assert outcome.exit_code == 3
    assert outcome.best is None
    assert outcome.report is not None and Path(outcome.report).stat().st_size > 1000
    assert [(t.state, t.last_epoch) for t in outcome.study.trials()] == [(TrialState.PRUNED, 1)] * 5


def test_search_everything_failed_ends_with_3_and_a_report(toy_search: Search, storage: str) -> None:
    moody_study(storage, *[{"mood": "nan"}] * 5)
    outcome = toy_search(space="tests.helpers.moody_toy", trials=5)
    assert outcome.exit_code == 3
    assert outcome.report is not None and Path(outcome.report).stat().st_size > 1000


@pytest.mark.parametrize("mood", ["raise_0", "nan", "text"])
def test_search_failures_in_a_row_end_it_with_the_last_cause(toy_search: Search, storage: str, mood: str) -> None:
    study = moody_study(storage, *[{"mood": mood}] * 5)
    outcome = toy_search(space="tests.helpers.moody_toy", trials=5, max_failures=3)
    assert outcome.exit_code == 1
    assert "the last 3 trials failed (--max-failures 3), trial 2: " in outcome.reason
    assert outcome.report is not None
    states = [trial.state for trial in study.trials()]
    assert states == [TrialState.FAILED] * 3 + [TrialState.QUEUED] * 2


def test_search_paused_trials_go_on_from_their_checkpoint(toy_search: Search) -> None:
    outcome = toy_search(trials=3, pruner="tests.helpers.pruners:PauseAtTwo")
    for trial in outcome.study.trials():
        assert trial.state is TrialState.COMPLETE
        assert trial.attempt == 2
        assert list(trial.reports) == [1, 2, 3, 4]


def test_search_target_value_and_timeout_end_it_early_and_leave_nothing_running(toy_search: Search) -> None:
    outcome = toy_search(trials=50, target_value=1.0)
    assert "target value" in outcome.reason
    assert len(outcome.study.trials()) < 50
    late = toy_search(trials=60, timeout=0.001, target_value=-1.0)
    assert "timeout" in late.reason
    assert all(trial.state is not TrialState.RUNNING for trial in late.study.trials())


def test_search_other_direction_is_refused_and_changes_nothing(toy_search: Search) -> None:
    toy_search(trials=2)
    with pytest.raises(InvalidSpecError) as caught:
        toy_search(trials=4, direction="maximize")
    assert "'maximize'" in str(caught.value) and "'minimize'" in str(caught.value)
    assert len(toy_search(trials=2).study.trials()) == 2


def test_search_wrong_specification_creates_nothing(toy_search: Search, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError):
        toy_search(trials=0)
    assert not any(tmp_path.iterdir())


def test_search_study_of_plain_optuna_is_continued(toy_search: Search, storage: str) -> None:
    plain = optuna.create_study(study_name="toy", storage=storage, direction="minimize")
    plain.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    outcome = toy_search(trials=6)
    assert [trial.state for trial in outcome.study.trials()] == [TrialState.COMPLETE] * 6


def test_search_is_read_by_plain_optuna(toy_search: Search, storage: str) -> None:
    outcome = toy_search(trials=8, pruner="median", sampler="tpe")
    plain = optuna.load_study(study_name="toy", storage=storage)
    assert [trial.number for trial in plain.trials] == list(range(8))
    for theirs, ours in zip(plain.trials, outcome.study.trials(), strict=True):
        assert theirs.params == dict(ours.configuration)
        assert theirs.intermediate_values == dict(ours.reports)
        assert theirs.state.name == ours.state.name
    assert outcome.best is not None
    assert plain.best_trial.number == outcome.best.number


def test_search_resume_finds_the_study_by_name_alone(
    toy_search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_search(trials=2)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    outcome = api.resume("toy", trials=3)
    assert len(outcome.study.trials()) == 3
    assert not any(elsewhere.iterdir())


def paused_study(storage: str, root: Path) -> Study:
    """A study whose only trial was paused after three epochs, with a checkpoint of each below `root`."""
    study = Storage(storage).create_study("toy", direction="minimize")
    artifacts = Artifacts(root=str(root), study="toy")
    lease = study.create_trial(0, {"x": 0.4}, SPACE.distributions(), owner="an earlier process")
    for epoch in (1, 2, 3):
        file = root / artifacts.checkpoint_dir(0, 1) / f"epoch-{epoch:04d}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"epoch": epoch}))
        record = CheckpointRecord(
            path=str(file.relative_to(root)),
            epoch=epoch,
            attempt=1,
            digest=hashlib.sha256(file.read_bytes()).hexdigest(),
            size_bytes=file.stat().st_size,
        )
        study.report(lease, epoch, loss_after(epoch, 0.4), {}, record)
    study.pause(lease)
    return study


def test_search_goes_on_in_a_copied_folder_from_the_checkpoint(toy_search: Search, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    paused_study(f"sqlite:///{home}/studies.db", home / "artifacts")
    moved = tmp_path / "moved"
    shutil.copytree(home, moved)
    shutil.rmtree(home)
    recorder = Recorder()
    outcome = toy_search(trials=1, storage=f"sqlite:///{moved}/studies.db", observer=recorder)
    assert recorder.events[0] == TrialStarted(number=0, attempt=2, epoch=3, epochs=4)
    assert outcome.study.trials()[0].state is TrialState.COMPLETE
    assert outcome.report is not None and Path(outcome.report).is_relative_to(moved)


def test_search_damaged_checkpoint_gives_way_to_an_older_one(toy_search: Search, storage: str, tmp_path: Path) -> None:
    paused_study(storage, tmp_path / "artifacts")
    newest = next((tmp_path / "artifacts").rglob("epoch-0003.json"))
    newest.write_text("damaged")
    recorder = Recorder()
    (trial,) = toy_search(trials=1, observer=recorder).study.trials()
    assert recorder.events[0] == TrialStarted(number=0, attempt=2, epoch=2, epochs=4)
    assert [event.epoch for event in recorder.events if isinstance(event, EpochReported)] == [3, 4]
    assert trial.state is TrialState.COMPLETE
    assert dict(trial.reports) == {epoch: loss_after(epoch, 0.4) for epoch in (1, 2, 3, 4)}
    left = sorted(path.name for path in (tmp_path / "artifacts").rglob("epoch-*"))
    assert left == ["epoch-0004.json"]


class InterruptsAtThree(Recorder):
    """Sends Ctrl-C when the third epoch is known; the trial is paused after the fourth."""

    def notify(self, event: Event) -> None:
        super().notify(event)
        if isinstance(event, EpochReported) and event.epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_search_newest_checkpoint_cut_short_costs_one_epoch(toy_search: Search, tmp_path: Path, share: float) -> None:
    first, second = InterruptsAtThree(), Recorder()
    (paused,) = toy_search(trials=1, epochs=6, observer=first).study.trials()
    assert (paused.state, paused.last_epoch) == (TrialState.PAUSED, 4)
    older, newest = sorted((tmp_path / "artifacts").rglob("epoch-*"))
    assert [older.name, newest.name] == ["epoch-0003.json", "epoch-0004.json"]
    newest.write_bytes(newest.read_bytes()[: int(share * newest.stat().st_size)])
    (trial,) = toy_search(trials=1, epochs=6, observer=second).study.trials()
    assert second.events[0] == TrialStarted(number=0, attempt=2, epoch=3, epochs=6)
    assert [event.epoch for event in second.events if isinstance(event, EpochReported)] == [4, 5, 6]
    assert trial.state is TrialState.COMPLETE
    x = float(str(trial.configuration["x"]))
    assert list(trial.reports.items()) == [(epoch, loss_after(epoch, x)) for epoch in range(1, 7)]
    assert [path.name for path in (tmp_path / "artifacts").rglob("epoch-*")] == ["epoch-0006.json"]


def test_search_other_artifacts_folder_is_refused_and_the_checkpoints_stay_known(
    toy_search: Search, storage: str, tmp_path: Path
) -> None:
    root = tmp_path / "artifacts"
    study = paused_study(storage, root)
    with pytest.raises(InvalidSpecError, match="give --artifacts where they are"):
        toy_search(trials=1, artifacts=str(tmp_path / "unmounted"))
    assert len(study.checkpoints(study.trials()[0])) == 3
    recorder = Recorder()
    toy_search(trials=1, artifacts=str(root), observer=recorder)
    assert recorder.events[0] == TrialStarted(number=0, attempt=2, epoch=3, epochs=4)


def test_search_artifacts_folder_is_remembered_for_the_next_run(toy_search: Search, tmp_path: Path) -> None:
    first = toy_search(trials=1, artifacts=str(tmp_path / "elsewhere"))
    assert first.report is not None and Path(first.report).is_relative_to(tmp_path / "elsewhere")
    second = api.resume("toy", storage=first.study.storage_url, trials=2)
    assert second.report == first.report
    assert not (tmp_path / "artifacts").exists()
    assert str(tmp_path) not in json.dumps(second.study.specification)


def test_search_other_data_are_refused(toy_search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.helpers.toy import ToyTrainer

    toy_search(trials=1)
    monkeypatch.setattr(ToyTrainer, "fingerprint", lambda self, data: "changed")
    with pytest.raises(InvalidSpecError, match="other items or other splits"):
        toy_search(trials=2)


def test_search_finite_space_ends_by_itself(toy_search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    from search_spaces.parameters import Categorical
    from search_spaces.space import SearchSpace
    from tests.helpers import toy

    small = SearchSpace("toy", {"x": Categorical(choices=(0.1, 0.2, 0.3), role="architecture")}, task=SPACE.task)
    monkeypatch.setattr(toy, "SPACE", small)
    outcome = toy_search(trials=50)
    assert "search space exhausted: 3 of 3" in outcome.reason
    assert outcome.exit_code == 0


def test_search_trials_queued_by_plain_optuna_are_completed_or_rejected(toy_search: Search, storage: str) -> None:
    plain = optuna.create_study(study_name="toy", storage=storage, direction="minimize")
    plain.enqueue_trial({"x": 0.25})
    plain.enqueue_trial({"x": 7.0})
    plain.enqueue_trial({})
    trials = toy_search(trials=4).study.trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE, TrialState.FAILED] + [TrialState.COMPLETE] * 2
    assert trials[0].configuration == {"x": 0.25}
    assert trials[1].cause == "user_error" and "x=7.0" in str(trials[1].attributes["error"])


def test_search_stop_while_the_data_are_read_is_obeyed(
    toy_search: Search, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = toy_search(trials=2).study
    load = ToyTrainer.load

    def stop_and_load(trainer: ToyTrainer, data: DataSpec) -> str:
        Storage(storage).open_study("toy").stop()
        return load(trainer, data)

    monkeypatch.setattr(ToyTrainer, "load", stop_and_load)
    outcome = toy_search(trials=6)
    assert outcome.reason == "stopped by `automl stop`"
    assert len(study.trials()) == 2
    monkeypatch.undo()
    assert len(toy_search(trials=6).study.trials()) == 6


def test_search_trial_whose_checkpoints_cannot_be_reached_is_given_back(
    toy_search: Search, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = moody_study(storage, {})
    (queued,) = study.trials()
    lease = study.start_queued(queued.id, owner="nobody", ttl_s=0.0)
    study.pause(lease)

    def out_of_reach(ledger: CheckpointLedger, trial: object) -> None:
        raise CheckpointStoreError("the store does not answer")

    monkeypatch.setattr(CheckpointLedger, "latest", out_of_reach)
    with pytest.raises(CheckpointStoreError):
        toy_search(trials=1, space="tests.helpers.moody_toy")
    (trial,) = study.trials()
    assert (trial.state, trial.attempt, trial.losses, trial.owner) == (TrialState.PAUSED, 2, 0, None)


def test_search_does_not_wait_for_a_trial_of_plain_optuna(toy_search: Search, storage: str) -> None:
    study = toy_search(trials=2).study
    study.as_optuna().ask()
    outcome = toy_search(trials=4)
    assert outcome.reason == "all 4 trials ended, but for 2, which another program runs"
    assert [trial.state for trial in study.trials()].count(TrialState.COMPLETE) == 3
    assert "nothing left to do" in toy_search(trials=4).reason


def test_search_changes_only_the_limits_that_are_said(toy_search: Search, storage: str) -> None:
    study = toy_search(trials=2).study
    study.set_limits(Limits(trials=3), ["trials"])
    assert len(api.resume("toy", storage=storage, timeout=60).study.trials()) == 3
    assert study.limits == Limits(trials=3, timeout_s=60.0)


def test_search_facts_that_are_no_json_fail_their_trial_alone(
    toy_search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ToyTrainer.fit

    def strange_fit(trainer: ToyTrainer, task: TrainTask, *others: Any) -> TrialResult:
        result = fit(trainer, task, *others)
        number = int(task.checkpoint_dir.split("trial-")[1][:5])
        facts: Any = {"x": math.nan} if number == 0 else {"x": object()} if number == 1 else {}
        return replace(result, facts=facts)

    monkeypatch.setattr(ToyTrainer, "fit", strange_fit)
    monkeypatch.setattr(ToyTrainer, "evaluate", lambda *ignored: {"loss": math.nan})
    outcome = toy_search(trials=3)
    trials = outcome.study.trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE, TrialState.FAILED, TrialState.COMPLETE]
    assert (trials[0].attributes["x"], trials[1].cause) == ("nan", "user_error")
    assert outcome.exit_code == 0
    assert outcome.test is not None
    assert math.isnan(outcome.test["loss"])


def test_search_limit_is_stored_also_when_nothing_is_left(toy_search: Search) -> None:
    study = toy_search(trials=4).study
    assert "nothing left to do" in toy_search(trials=2).reason
    assert study.limits.trials == 2


def test_search_best_configurations_are_trained_again_at_the_end(
    toy_search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = toy_search(
        trials=14, sampler="surrogate_evolution", sampler_option={"repeat_from": 10, "repeat_best": 2}, pruner="none"
    )
    trials = outcome.study.trials()
    first, again = trials[:10], trials[10:]
    best = sorted(first, key=lambda trial: trial.value or math.inf)[:2]
    assert [trial.configuration for trial in again] == [trial.configuration for trial in [*best, *best]]
    assert len({Configuration(trial.configuration) for trial in first}) == 10
    print_outcome(outcome)
    assert "trained several times: the configuration of trial" in capsys.readouterr().out
