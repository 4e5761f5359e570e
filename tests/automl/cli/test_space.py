"""A person edits the space of a study and goes on: what is shown, what is refused, and what the old trials are for."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from search_spaces.configuration import JsonScalar
from search_spaces.space import SearchSpace
from studies.standing import Limits
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.automl.cli.conftest import Shell

SPACE = """
from search_spaces import Categorical, Float, Integer, SearchSpace

SPACE = SearchSpace(
    "cells",
    {{{parameters}}},
    task="tests.helpers.toy:ToyTrainer",
    defaults={defaults},
    description="A formula instead of a training.",
)


def build_model(configuration, input_shape, num_classes):
    raise AssertionError("the toy trainer builds no network")
"""
X = '"x": Float(low=0.0, high=1.0, role="architecture")'
OLD = f'{X}, "operation": Categorical(choices=("conv3", "skip"), role="architecture")'
NEW = f'{X}, "operation": Categorical(choices=("conv3", "avg"), role="architecture")'


def write_space(shell: Shell, parameters: str, defaults: str = "None", more: str = "") -> None:
    (shell.folder / "cells.py").write_text(SPACE.format(parameters=parameters, defaults=defaults) + more)
    shutil.rmtree(shell.folder / "__pycache__", ignore_errors=True)  # it knows a file by its second and its size


def study_of(shell: Shell) -> Study:
    return Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db").open_study("cells-digits")


def searched(shell: Shell, parameters: str = OLD, trials: int = 3) -> Study:
    write_space(shell, parameters)
    ended = shell.search_toy("--trials", trials, space="cells")
    assert ended.code == 0, ended
    study = study_of(shell)
    assert len(study.space_versions()) == 1
    return study


def content(study: Study) -> tuple[object, ...]:
    return study.trials(), study.space_versions(), study.specification, study.attributes


@pytest.mark.parametrize("sampler, trials", [("random", 8), ("tpe", 16), ("evolution", 16)])
def test_changed_choices_are_shown_and_every_sampler_goes_on(shell: Shell, sampler: str, trials: int) -> None:
    searched(shell)
    write_space(shell, NEW)
    ended = shell("resume", "cells-digits", "--trials", trials, "--sampler", sampler)
    assert ended.code == 0, ended
    assert "space has changed: operation: choice 'avg' is new" in ended.err
    assert "space has changed: operation: choice 'skip' was removed, trials with it are left out" in ended.err
    found = study_of(shell).trials()
    assert [trial.state for trial in found] == [TrialState.COMPLETE] * trials
    assert {trial.configuration["operation"] for trial in found[3:]} == {"conv3", "avg"}
    assert len(study_of(shell).space_versions()) == 2
    again = shell("resume", "cells-digits", "--trials", trials + 1)
    assert again.code == 0 and "has changed" not in again.err
    for verb in ("report", "show", "best", "status"):
        assert shell(verb, "cells-digits").code == 0


@pytest.mark.parametrize(
    "old, new, hints",
    [
        pytest.param(
            f'{X}, "n": Integer(low=0, high=3, role="architecture")',
            f'{X}, "n": Float(low=0, high=3, role="architecture")',
            ["n: integer 0..3 -> float 0.0..3.0 is another kind of parameter; give it another name"],
            id="kind",
        ),
        pytest.param(
            OLD,
            f'{OLD}, "dropout": Float(low=0.0, high=0.5, role="architecture")',
            ["dropout is new", "give the space defaults that hold this value of dropout"],
            id="new without a default",
        ),
        pytest.param(
            f'{OLD}, "n": Integer(low=0, high=3, role="architecture")',
            '"x": Integer(low=0, high=1, role="architecture"), "n": Categorical(choices=(0, 3), role="architecture")',
            ["3 mistakes", "x: float 0.0..1.0 -> integer 0..1", "n: integer 0..3 -> choices 0|3"],
            id="all at once",
        ),
    ],
)
def test_what_cannot_be_mapped_is_refused_before_anything_starts(
    shell: Shell, old: str, new: str, hints: list[str]
) -> None:
    before = content(searched(shell, old))
    write_space(shell, new)
    for arguments in (("resume", "cells-digits", "--trials", 9), ("space", "diff", "cells-digits")):
        ended = shell(*arguments)
        assert ended.code == 2, ended
        assert all(hint in ended.err for hint in [*hints, "give the changed space a new study"]), ended
        assert "Traceback" not in ended.err and "started" not in ended.err
    assert shell.search_toy("--trials", 9, space="cells").code == 2
    assert content(study_of(shell)) == before


def test_wider_range_and_new_parameter_with_a_default_are_taken(shell: Shell) -> None:
    searched(shell)
    write_space(
        shell,
        '"x": Float(low=-1.0, high=2.0, role="architecture"), "depth": Integer(low=1, high=3, role="architecture")',
        defaults='{"x": 0.5, "depth": 2}',
        more="\n\ndef graph(configuration):\n    assert configuration['depth'] in (1, 2, 3)\n",
    )
    ended = shell("resume", "cells-digits", "--trials", 6)
    assert ended.code == 0, ended
    for change in (
        "x: range 0.0..1.0 -> -1.0..2.0 (wider)",
        "depth is new, old trials count as depth=2 (the default)",
        "operation was removed",
        "version=2; 3 of 3 trials fit it",
    ):
        assert change in ended.err, ended
    trials = study_of(shell).trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 6
    assert all(trial.configuration.keys() == {"x", "depth"} for trial in trials[3:])
    assert shell("report", "cells-digits").code == 0


def test_unfinished_trials_go_on_as_they_were_and_queued_ones_must_fit(shell: Shell) -> None:
    study = searched(shell)
    own: dict[str, JsonScalar] = {"x": 0.25, "operation": "skip"}
    distributions = SearchSpace.from_json(study.space_versions()[0]).distributions()
    study.set_limits(Limits(trials=4))
    study.pause(study.create_trial(3, own, distributions, owner="gone"))
    study.enqueue([{"x": 0.75, "operation": "skip"}], distributions)
    write_space(shell, NEW)
    assert "1 unfinished trials go on" in shell("space", "diff", "cells-digits").out
    ended = shell("resume", "cells-digits", "--trials", 6)
    assert ended.code == 0, ended
    assert "trials=1 go on with the configuration they were started with" in ended.err
    trials = study_of(shell).trials()
    assert (trials[3].state, dict(trials[3].configuration)) == (TrialState.COMPLETE, own)
    assert (trials[4].state, trials[4].cause) == (TrialState.FAILED, "user_error")
    assert "operation='skip' is not allowed" in str(trials[4].attributes["error"])
    assert trials[5].state is TrialState.COMPLETE


def test_diff_says_what_has_changed_and_writes_nothing(shell: Shell) -> None:
    before = content(searched(shell))
    same = shell("space", "diff", "cells-digits")
    assert (same.code, same.out) == (0, "space 'cells' is as version 1 of study 'cells-digits'; 3 of 3 trials fit it\n")
    write_space(shell, NEW)
    fitting = sum(trial.configuration["operation"] == "conv3" for trial in study_of(shell).trials())
    changed = shell("space", "diff", "cells-digits")
    assert changed.code == 0, changed
    assert changed.out.splitlines() == [
        "space 'cells' differs from version 1 of study 'cells-digits':",
        "  operation: choice 'avg' is new",
        "  operation: choice 'skip' was removed, trials with it are left out",
        f"the study can go on with it as version 2; {fitting} of 3 trials fit it",
    ]
    facts = json.loads(shell("space", "diff", "cells-digits", "--json").out)
    assert (facts["version"], len(facts["changes"]), facts["problems"]) == (1, 2, [])
    assert (facts["trials"], facts["usable_trials"]) == (3, fitting)
    assert content(study_of(shell)) == before


def test_diff_with_another_space_names_every_problem(shell: Shell) -> None:
    searched(shell)
    ended = shell("space", "diff", "cells-digits", "--space", "nas_small", "--json")
    assert ended.code == 2, ended
    facts = json.loads(ended.out)
    assert facts["usable_trials"] == 0
    assert any(problem.startswith("task: ") for problem in facts["problems"])
    assert all(problem in ended.err for problem in facts["problems"])


def test_diff_of_what_is_not_there_is_refused_in_words(shell: Shell) -> None:
    searched(shell)
    assert "'nobody'" in shell("space", "diff", "nobody").err
    assert shell("space", "diff", "nobody").code == 2
    unknown = shell("space", "diff", "cells-digits", "--space", "nas_smal")
    assert (unknown.code, unknown.out) == (2, "") and "did you mean 'nas_small'" in unknown.err
    (shell.folder / "cells.py").unlink()
    lost = shell("space", "diff", "cells-digits")
    assert lost.code == 2 and "study 'cells-digits'" in lost.err and "Traceback" not in lost.err


def test_study_without_a_stored_version_stores_the_present_one(shell: Shell) -> None:
    """As one that an older release of this program has made."""
    searched(shell)
    forget_versions(shell.folder / "automl-runs" / "studies.db")
    write_space(shell, NEW)
    ended = shell("space", "diff", "cells-digits")
    assert ended.code == 0 and "has stored no version of its space yet" in ended.out
    resumed = shell("resume", "cells-digits", "--trials", 5)
    assert resumed.code == 0 and "has changed" not in resumed.err
    (version,) = study_of(shell).space_versions()
    assert version["parameters"]["operation"]["choices"] == ["conv3", "avg"]


def forget_versions(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM automl_spaces")
    connection.close()
