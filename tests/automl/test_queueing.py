"""Wishes of people: what is checked before anything is queued, and how often a failed trial is tried again."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from automl import queueing
from automl.configuration_text import Row, read_table, row_of_words
from automl.errors import InvalidSpecError
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Float
from studies.standing import Limits
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.helpers.moody_toy import SPACE as MOODY
from tests.helpers.picky_toy import SPACE as PICKY

FINE: dict[str, JsonScalar] = {"x": 0.5, "mood": "fine", "epoch_s": 0.0}


def made(storage: str, space: str = "tests.helpers.moody_toy", *, trials: int | None = 8) -> Study:
    return Storage(storage).create_study(
        "wishes", direction="minimize", specification={"space": space}, limits=Limits(trials=trials)
    )


def row(**values: Any) -> Row:
    return Row(place="", parameters=values, facts={}, is_text=False)


def fail(study: Study, **changes: JsonScalar) -> int:
    number = len(study.trials())
    lease = study.create_trial(number, {**FINE, **changes}, MOODY.distributions(), owner="elsewhere")
    study.tell(lease, TrialState.FAILED, cause="oom")
    return number


def test_enqueue_keeps_what_is_fixed_and_leaves_the_rest_open(storage: str) -> None:
    study = made(storage)
    assert queueing.enqueue(study, [row(x=1), row(**FINE)], count=2) == (0, 1, 2, 3)
    trials = study.trials()
    assert [trial.state for trial in trials] == [TrialState.QUEUED] * 4
    assert [trial.configuration for trial in trials] == [{"x": 1.0}, {"x": 1.0}, FINE, FINE]


def test_enqueue_lists_every_mistake_of_every_configuration_and_queues_nothing(storage: str, tmp_path: Path) -> None:
    study = made(storage)
    file = tmp_path / "wishes.csv"
    file.write_text("x,mood\n0.5,fine\n7,fine\nhalf,fin\n")
    rows = [row_of_words(["y=1"]), *read_table(file).rows]
    with pytest.raises(InvalidSpecError) as error:
        queueing.enqueue(study, rows)
    assert len(error.value.problems) == 4
    for hint in ("no parameter 'y'", "line 3: x=7", "line 4: x='half' is no finite number", "did you mean 'fine'?"):
        assert any(hint in problem for problem in error.value.problems), error.value
    assert study.trials() == ()


def test_enqueue_refuses_a_whole_configuration_that_cannot_be_trained_and_takes_a_part_of_it(storage: str) -> None:
    study = made(storage, "tests.helpers.picky_toy")
    with pytest.raises(InvalidSpecError, match="cannot be trained: x is too large for this y"):
        queueing.enqueue(study, [row(x=0.9, y=0)])
    queueing.enqueue(study, [row(x=0.9)])
    assert [trial.configuration for trial in study.trials()] == [{"x": 0.9}]
    assert PICKY.refusal({"x": 0.9, "y": 9}) is None


def test_enqueue_for_a_study_of_plain_optuna_says_what_to_do(storage: str) -> None:
    study = Storage(storage).create_study("foreign", direction="minimize")
    with pytest.raises(InvalidSpecError, match="automl search --space"):
        queueing.enqueue(study, [row(x=0.5)])


def test_words_that_are_no_wish_are_all_named() -> None:
    with pytest.raises(InvalidSpecError, match=r"'x' is not NAME=VALUE\n.*'=3' is not NAME=VALUE\n.*y is given twice"):
        row_of_words(["x", "=3", "y=1", "y=2"])
    assert row_of_words(["a=b=c", "d="]).parameters == {"a": "b=c", "d": ""}


@pytest.mark.parametrize(
    "name, content, hint",
    [
        ("a.csv", b"x,x\n1,2\n", "'x' is there twice"),
        ("a.csv", b"x,y\n1\n", "line 2 has 1 cells, and the header 2"),
        ("a.csv", b"", "the file is empty"),
        ("a.csv", "x\n1".encode("utf-16"), "not UTF-8"),
        ("a.json", b"{", "not valid JSON"),
        ("a.json", b"[1]", "list of objects"),
        ("a.txt", b"x\n1\n", "'.txt'"),
    ],
)
def test_broken_file_is_refused_with_its_name(tmp_path: Path, name: str, content: bytes, hint: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InvalidSpecError, match=hint) as error:
        read_table(file)
    assert str(file) in str(error.value)


def test_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError, match="No such file"):
        read_table(tmp_path / "none.csv")


def test_retry_queues_each_failed_trial_once_and_makes_room(storage: str) -> None:
    study = made(storage, trials=3)
    for x in (0.25, 0.5, 0.75):
        fail(study, x=x)
    before = study.trials()
    result = queueing.retry(study)
    assert (result.queued, result.known, result.left_out) == ({0: 3, 1: 4, 2: 5}, {}, {})
    assert study.trials()[:3] == before
    assert [trial.configuration["x"] for trial in study.trials()[3:]] == [0.25, 0.5, 0.75]
    assert [trial.attributes for trial in study.trials()[3:]] == [{"retry_of": n} for n in range(3)]
    assert study.limits.trials == 6
    again = queueing.retry(study)
    assert (again.queued, again.known) == ({}, {0: 3, 1: 4, 2: 5})
    assert len(study.trials()) == 6


def test_retry_that_failed_is_tried_again_itself(storage: str) -> None:
    study = made(storage)
    fail(study)
    queueing.retry(study)
    study.tell(study.start_queued(study.trials()[1].id, owner="elsewhere"), TrialState.FAILED, cause="lost")
    assert queueing.retry(study).queued == {1: 2}
    assert study.limits.trials == 8, "there is room"


def test_retry_of_given_trials_refuses_those_that_have_not_failed(storage: str) -> None:
    study = made(storage)
    fail(study)
    queueing.enqueue(study, [row(x=0.5)])
    with pytest.raises(InvalidSpecError, match=r"there is no trial 7(.|\n)*trial 1 is queued"):
        queueing.retry(study, [0, 1, 7])
    assert len(study.trials()) == 2
    assert queueing.retry(study, [0, 0]).queued == {0: 2}


def test_retry_by_several_at_once_retries_nothing_twice(storage: str) -> None:
    study = made(storage)
    for _ in range(5):
        fail(study)
    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(lambda _: queueing.retry(Storage(storage).open_study("wishes")), range(6)))
    assert sorted(number for result in results for number in result.queued) == list(range(5))
    assert len(study.trials()) == 10
    assert study.limits.trials == 10


def test_retry_names_what_the_present_space_no_longer_allows(storage: str) -> None:
    study = made(storage)
    lease = study.create_trial(0, {"x": 5.0}, {"x": Float(low=0.0, high=9.0).distribution()}, owner="elsewhere")
    study.tell(lease, TrialState.FAILED, cause="oom")
    fail(study)
    result = queueing.retry(study)
    assert result.queued == {1: 2}
    assert "x=5.0 is outside [0.0, 1.0]" in result.left_out[0]
    with pytest.raises(InvalidSpecError, match=r"trial 0: x=5\.0"):
        queueing.retry(study, [0])
