"""`automl enqueue`, `retry` and `import` as they are typed, and what becomes of them in a search."""

import json
import shlex
from pathlib import Path

import pytest

from studies.standing import Limits
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.automl.cli.conftest import TOY, Shell
from tests.helpers.commands import Ended
from tests.helpers.searches import ForkedSearch

MOODY = "tests.helpers.moody_toy"
FINE = ("mood=fine", "epoch_s=0")


def study_in(shell: Shell, name: str) -> Study:
    return Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").open_study(name)


def done(ended: Ended) -> list[str]:
    assert ended.code == 0, ended
    return ended.out.splitlines()


def begun(shell: Shell, *wishes: tuple[str, ...]) -> Study:
    """A study named moody whose first trial and then these wishes have been tried."""
    storage = Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db")
    fields = {"space": MOODY, "metric": "loss", "executor": "inline", "epochs": 2, "sampler": "random"}
    storage.create_study("moody", direction="minimize", specification={**fields, "pruner": "none", "max_failures": 9})
    for wish in wishes:
        done(shell("enqueue", "moody", *wish))
    done(shell("resume", "moody", "--trials", str(len(wishes)), "--quiet"))
    return study_in(shell, "moody")


def test_enqueued_configuration_runs_as_often_as_it_was_asked_for(shell: Shell) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    queued, start = done(shell("enqueue", "moody", "x=0.5", *FINE, "--count", "2"))
    assert queued == "queued trials 1 to 2 of study 'moody'"
    assert start == "start with: automl resume moody --trials 3"
    done(shell(*shlex.split(start.partition(": automl ")[2])))
    assert [(t.state, t.attempt, t.configuration["x"]) for t in study.trials()] == [
        (TrialState.COMPLETE, 1, 0.25),
        (TrialState.COMPLETE, 1, 0.5),
        (TrialState.COMPLETE, 1, 0.5),
    ]


def test_enqueue_says_when_the_budget_has_no_place(shell: Shell) -> None:
    begun(shell, ("x=0.25", *FINE))
    ended = shell("enqueue", "moody", "x=0.5")
    assert ended.code == 0, ended
    assert ended.err == "no place for 1 queued trial within the study's limit of 1\n"
    outcome = done(shell("resume", "moody"))
    assert outcome[-1] == "no place for 1 queued trial; start with: automl resume moody --trials 2"


def test_enqueue_beyond_a_limit_that_was_lowered_names_one_that_is_enough(shell: Shell) -> None:
    study = begun(shell, ("x=0.25", *FINE), ("x=0.75", *FINE))
    study.set_limits(Limits(trials=1))
    ended = shell("enqueue", "moody", "x=0.5")
    assert ended.err == "no place for 1 queued trial within the study's limit of 1\n"
    assert ended.out.splitlines()[-1] == "start with: automl resume moody --trials 3"
    assert (
        done(shell("resume", "moody"))[-1] == "no place for 1 queued trial; start with: automl resume moody --trials 3"
    )


def test_enqueue_twice_is_tried_twice_by_two_processes_once_each(shell: Shell) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    done(shell("enqueue", "moody", "x=0.5", "mood=fine", "epoch_s=0.3", "--count", "2"))
    resume = ("resume", "moody", "--trials", "3", "--quiet")
    with (
        ForkedSearch(*resume, folder=shell.folder, environment=shell.environment) as one,
        ForkedSearch(*resume, folder=shell.folder, environment=shell.environment) as other,
    ):
        assert [one.ended().code, other.ended().code] == [0, 0]
    trials = study.trials()[1:]
    assert [(t.state, t.attempt, t.configuration["x"]) for t in trials] == [(TrialState.COMPLETE, 1, 0.5)] * 2


def test_enqueue_takes_a_file_and_refuses_it_whole(shell: Shell) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    file = shell.folder / "wishes.json"
    file.write_text(json.dumps([{"x": 0.5}, {"x": "0.5"}, {"y": 1}]))
    ended = shell("enqueue", "moody", "mood=fin", "--file", file)
    assert ended.code == 2, ended
    for hint in (
        "3 mistakes",
        "did you mean 'fine'?",
        "item 2: x='0.5' is no finite number",
        "item 3: no parameter 'y'",
    ):
        assert hint in ended.err, ended
    assert len(study.trials()) == 1
    file.write_text(json.dumps([{"x": 0.5}, {"x": 0.75}]))
    assert done(shell("enqueue", "moody", "--file", file))[0] == "queued trials 1 to 2 of study 'moody'"


@pytest.mark.parametrize("arguments", [(), ("x",), ("--count", "0", "x=0.5")])
def test_enqueue_without_a_wish_is_refused(shell: Shell, arguments: tuple[str, ...]) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    assert shell("enqueue", "moody", *arguments).code == 2
    assert len(study.trials()) == 1


def test_retry_of_3_failed_among_8_runs_exactly_3_more(shell: Shell) -> None:
    failing = [(f"x=0.{n}", "mood=silent", "epoch_s=0") for n in (1, 2, 3)]
    study = begun(shell, *failing, *[("x=0.5", *FINE)] * 5)
    assert study.counts()[TrialState.FAILED] == 3
    before = study.trials()
    said = done(shell("retry", "moody", "--failed", "--quiet"))
    assert said[0] == "queued 3 trials: 8 (as 0), 9 (as 1), 10 (as 2)"
    trials = study.trials()
    assert trials[:8] == before
    assert [t.configuration["x"] for t in trials[8:]] == [0.1, 0.2, 0.3]
    assert [(t.state, t.attempt) for t in trials[8:]] == [(TrialState.FAILED, 1)] * 3
    shown = done(shell("show", "moody", "0"))
    assert shown[-1] == "  retried as  trial 8"
    assert "  retry_of  0" in done(shell("show", "moody", "8"))
    assert json.loads(shell("show", "moody", "1", "--json").out)["retried_as"] == 9


def test_retry_again_has_nothing_to_do_and_can_leave_the_search_for_later(shell: Shell) -> None:
    study = begun(shell, ("x=0.1", "mood=silent", "epoch_s=0"), ("x=0.5", *FINE))
    said = done(shell("retry", "moody", "--trial", "0", "--queue-only"))
    assert said == ["queued 1 trial: 2 (as 0)", "start with: automl resume moody"]
    assert study.trials()[2].state is TrialState.QUEUED
    assert study.limits.trials == 3
    assert done(shell("retry", "moody", "--failed")) == ["trial 0 was tried again as trial 2", "nothing to retry"]
    assert len(study.trials()) == 3


def test_retry_of_what_has_not_failed_is_refused(shell: Shell) -> None:
    study = begun(shell, ("x=0.5", *FINE))
    for arguments, hint in (
        (("--trial", "0"), "trial 0 is complete"),
        (("--trial", "5"), "there is no trial 5"),
        ((), "--failed for all"),
    ):
        ended = shell("retry", "moody", *arguments)
        assert ended.code == 2, ended
        assert hint in ended.err
    assert len(study.trials()) == 1


def test_import_says_what_came_and_what_did_not(shell: Shell) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    file = shell.folder / "results.csv"
    file.write_text("param_x,param_mood,param_epoch_s,loss\n0.5,fine,0,0.5\n7,fine,0,0.4\n0.1,fine,0,\n")
    said = done(shell("import", "moody", "--from-file", file, "--value", "loss"))
    assert said == [
        "study 'moody' has 1 more imported trial from file results.csv",
        "left out: 1 trial without a finite objective",
        "left out: 1 result outside of the search space",
        "  line 3: x=7 is outside [0.0, 1.0]",
    ]
    assert [trial.is_imported for trial in study.trials()] == [False, True]
    again = done(shell("import", "moody", "--from-file", file, "--value", "loss"))
    assert again[:2] == ["study 'moody' has 0 more imported trials from file results.csv", "there already: 1"]
    progress, *_ = done(shell("status", "moody"))
    assert progress == "study 'moody': 1 of 1 trials ended; 1 complete, 1 imported"
    assert done(shell("show", "moody"))[2].split()[:2] == ["1", "imported"]
    assert done(shell("best", "moody"))[0].startswith("trial 0: ")


def test_import_from_a_study_of_another_database(shell: Shell, tmp_path: Path) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    other = f"sqlite:///{tmp_path}/other.db"
    done(shell.search_toy("--study", "other", "--storage", other, "--trials", 3, "--artifacts", tmp_path / "artifacts"))
    ended = shell("import", "moody", "--from", "other", "--from-storage", other)
    assert ended.code == 2, "the other space has no mood, and this one no defaults"
    assert "mood is missing" in ended.err
    done(shell.search_toy("--study", "same", "--trials", 1))
    assert done(shell("import", "same", "--from", "other", "--from-storage", other, "--top", 2))[0].startswith(
        "study 'same' has 2 more imported trials"
    )
    assert len(study.trials()) == 1


def test_import_that_cannot_be_is_refused(shell: Shell) -> None:
    study = begun(shell, ("x=0.25", *FINE))
    Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").create_study("up", direction="maximize")
    for arguments, hint in (
        (("--from", "up"), "they are to maximize, and this study is to minimize"),
        (("--from", "moody"), "cannot learn from itself"),
        (("--from", "nobody"), "'nobody'"),
        (("--from-file", "none.csv"), "No such file"),
        (("--from", "up", "--value", "loss"), "--value belongs to --from-file"),
        (("--from-file", "x.csv", "--from-storage", "sqlite:///x.db"), "--from-storage belongs to --from"),
        ((), "either --from STUDY or --from-file FILE"),
    ):
        ended = shell("import", "moody", *arguments)
        assert ended.code == 2, ended
        assert hint in ended.err, ended
        assert "Traceback" not in ended.err
    assert len(study.trials()) == 1


def test_search_with_a_warm_start_says_what_it_learns_from(shell: Shell) -> None:
    done(shell.search_toy("--trials", 2, "--study", "teacher"))
    ended = shell("search", "--space", "tests.helpers.toy", *TOY, "--trials", 1, "--warm-start", "teacher")
    assert ended.code == 0, ended
    assert "learns from 2 imported trials (study teacher)" in ended.err
    assert "2 imported" in shell("status").out
    assert "ended=1/1" in ended.err
