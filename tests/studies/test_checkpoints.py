import hashlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.checkpoints import CheckpointLedger, best_epoch, removable
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, Lease, TrialState
from tests.contracts.study_contract import ELSEWHERE, begin
from tests.studies.figures.examples import trial


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        yield storage.create_study("study", direction="maximize")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def report(study: Study, root: Path, lease: Lease, epoch: int, value: float) -> Path:
    file = root / f"{lease.number}" / f"{lease.attempt}-{epoch}.pt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(f"weights {lease} {epoch}".encode())
    record = CheckpointRecord(
        path=str(file.relative_to(root)),
        epoch=epoch,
        attempt=lease.attempt,
        digest=hashlib.sha256(file.read_bytes()).hexdigest(),
        size_bytes=file.stat().st_size,
    )
    study.report(lease, epoch, value, {}, record)
    return file


def records(*epochs: int, attempt: int = 1) -> tuple[CheckpointRecord, ...]:
    return tuple(
        CheckpointRecord(path=f"{attempt}-{epoch}.pt", epoch=epoch, attempt=attempt, digest="", size_bytes=1)
        for epoch in epochs
    )


CASES = [
    pytest.param(TrialState.RUNNING, 1, False, {2}, id="running keeps the last two and best"),
    pytest.param(TrialState.RUNNING, 3, False, {1, 2}, id="the one before the last may be best"),
    pytest.param(TrialState.PAUSED, 4, False, {1, 2}, id="paused keeps the last two, of which the last is best"),
    pytest.param(TrialState.RUNNING, None, False, {1, 2}, id="without a report the last is best"),
    pytest.param(TrialState.COMPLETE, 2, True, {1, 3, 4}, id="winner keeps best"),
    pytest.param(TrialState.COMPLETE, 9, True, {1, 2, 3}, id="winner without its best keeps last"),
    pytest.param(TrialState.COMPLETE, 2, False, {1, 2, 3, 4}, id="beaten keeps none"),
    pytest.param(TrialState.PRUNED, 2, False, {1, 2, 3, 4}, id="pruned keeps none"),
    pytest.param(TrialState.FAILED, 2, False, {1, 2, 3, 4}, id="failed keeps none"),
]


@pytest.mark.parametrize(("state", "best", "is_among_best", "gone"), CASES)
def test_removable(state: TrialState, best: int | None, is_among_best: bool, gone: set[int]) -> None:
    chosen = removable(records(3, 1, 4, 2), attempt=1, state=state, best_epoch=best, is_among_best=is_among_best)
    assert {record.epoch for record in chosen} == gone


def test_removable_keeps_the_later_attempt_of_one_epoch() -> None:
    both = records(1, 2, 3) + records(2, attempt=2)
    chosen = removable(both, attempt=2, state=TrialState.COMPLETE, best_epoch=2, is_among_best=True)
    assert chosen == records(1, 2, 3)


def test_removable_takes_the_newest_attempts_checkpoint_for_the_last_one_and_spares_what_it_went_on_from() -> None:
    older, newer = records(3, 4, 7, 8), records(5, attempt=2)
    chosen = removable(older + newer, attempt=2, state=TrialState.RUNNING, best_epoch=5, is_among_best=False)
    assert chosen == records(3, 7, 8)


def test_removable_is_nothing_until_the_present_attempt_has_a_checkpoint() -> None:
    for state in (TrialState.RUNNING, TrialState.PAUSED):
        assert removable(records(1, 2, 3, 4), attempt=2, state=state, best_epoch=1, is_among_best=False) == ()


@given(
    attempt=st.integers(3, 4),
    epochs=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), unique=True),
    state=st.sampled_from(TrialState),
    best=st.none() | st.integers(1, 9),
    is_among_best=st.booleans(),
)
def test_trial_that_may_go_on_never_loses_its_last_checkpoint_nor_the_one_before(
    attempt: int, epochs: list[tuple[int, int]], state: TrialState, best: int | None, is_among_best: bool
) -> None:
    given_records = [records(epoch, attempt=attempt)[0] for epoch, attempt in epochs]
    chosen = removable(given_records, attempt=attempt, state=state, best_epoch=best, is_among_best=is_among_best)
    kept = [record for record in given_records if record not in chosen]
    newest = max(given_records, key=lambda record: (record.attempt, record.epoch), default=None)
    if state.is_ended:
        assert len(kept) <= 1
    elif newest is None or newest.attempt != attempt:
        assert kept == given_records
    else:
        assert len(kept) <= 3
        assert newest in kept
        earlier = [record for record in given_records if record.epoch < newest.epoch]
        assert not earlier or max(earlier, key=lambda record: (record.attempt, record.epoch)) in kept


def test_latest_is_the_newest_whole_file(study: Study, root: Path, caplog: pytest.LogCaptureFixture) -> None:
    lease = begin(study)
    first, second, third = (report(study, root, lease, epoch, 0.1 * epoch) for epoch in (1, 2, 3))
    ledger = CheckpointLedger(study, root)
    newest = ledger.latest(lease)
    assert newest is not None
    assert ledger.path(newest) == str(third)
    third.write_bytes(third.read_bytes()[:-1] + b"?")
    second.unlink()
    with caplog.at_level(logging.WARNING):
        oldest = ledger.latest(study.trials()[0])
    assert oldest is not None
    assert ledger.path(oldest) == str(first)
    assert "1-3.pt of trial 0 is damaged" in caplog.text
    assert "1-2.pt of trial 0 is missing" in caplog.text
    first.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert ledger.latest(lease) is None
    assert "has 0 bytes instead of" in caplog.text
    assert "starts anew" in caplog.text


def test_newest_cut_to_half_gives_way_to_the_older_one_and_that_to_none(
    study: Study, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lease, ledger = begin(study), CheckpointLedger(study, root)
    older, newest = (report(study, root, lease, epoch, 0.5) for epoch in (1, 2))
    content = newest.read_bytes()
    for size in (len(content) // 2, 0):
        newest.write_bytes(content[:size])
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            taken = ledger.latest(lease)
        assert taken is not None and ledger.path(taken) == str(older)
        assert f"1-2.pt of trial 0 has {size} bytes instead of {len(content)}" in caplog.text
    older.unlink()
    with caplog.at_level(logging.WARNING):
        assert ledger.latest(lease) is None
    assert "trial 0 has no whole checkpoint" in caplog.text


def test_latest_of_a_trial_without_checkpoints_is_silent(
    study: Study, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert CheckpointLedger(study, root).latest(begin(study)) is None
    assert caplog.records == []


def test_latest_is_the_newest_attempts_checkpoint_also_when_an_older_one_came_further(study: Study, root: Path) -> None:
    old, ledger = begin(study), CheckpointLedger(study, root)
    for epoch in (1, 2, 3):
        report(study, root, old, epoch, 0.5)
    study.pause(old)
    new = study.claim(old.trial_id, owner=ELSEWHERE)
    again = report(study, root, new, 2, 0.5)
    latest = ledger.latest(new)
    assert latest is not None
    assert ledger.path(latest) == str(again)


def test_trim_keeps_what_a_new_attempt_goes_on_from_when_later_files_are_lost(study: Study, root: Path) -> None:
    old, ledger = begin(study), CheckpointLedger(study, root)
    files = {epoch: report(study, root, old, epoch, 1.0 / epoch) for epoch in (1, 2, 3, 4)}
    study.pause(old)
    files[4].write_bytes(b"damaged")
    new = study.claim(old.trial_id, owner=ELSEWHERE)
    source = ledger.latest(new)
    assert source is not None
    assert source.epoch == 3
    ledger.trim(study.trials()[0])
    assert ledger.latest(new) == source
    again = report(study, root, new, 4, 0.1)
    ledger.trim(study.trials()[0])
    assert {path for path in root.rglob("*.pt")} == {files[1], files[3], again}
    assert [(record.attempt, record.epoch) for record in study.checkpoints(new)] == [(2, 4), (1, 3), (1, 1)]
    again.write_bytes(b"damaged")
    assert ledger.latest(new) == source


def test_trim_keeps_the_files_of_a_trial_that_started_anew(study: Study, root: Path) -> None:
    old, ledger = begin(study), CheckpointLedger(study, root)
    for epoch in (1, 2, 3):
        report(study, root, old, epoch, 0.9).unlink()
    study.pause(old)
    new = study.claim(old.trial_id, owner=ELSEWHERE)
    file = report(study, root, new, 1, 0.1)
    ledger.trim(study.trials()[0])
    assert file.exists()
    assert [(record.attempt, record.epoch) for record in study.checkpoints(new)] == [(2, 1)]


def test_wrong_root_changes_nothing_in_the_ledger(study: Study, root: Path, tmp_path: Path) -> None:
    lease = begin(study)
    for epoch in (1, 2):
        report(study, root, lease, epoch, 0.5)
    study.pause(lease)
    before, wrong = study.checkpoints(lease), CheckpointLedger(study, tmp_path / "wrong")
    again = study.claim(lease.trial_id, owner=ELSEWHERE)
    assert wrong.latest(study.trials()[0]) is None
    wrong.trim(study.trials()[0])
    study.pause(again)
    wrong.trim(study.trials()[0])
    assert study.checkpoints(lease) == before
    assert CheckpointLedger(study, root).latest(study.trials()[0]) == before[0]


def test_folders_are_missing_when_unfinished_trials_have_checkpoints_and_no_folder(study: Study, root: Path) -> None:
    ledger, not_mounted = CheckpointLedger(study, root), CheckpointLedger(study, root / "not mounted")
    lease = begin(study)
    assert not not_mounted.missing_folders()
    report(study, root, lease, 1, 0.5)
    assert not_mounted.missing_folders() == ["0"]
    assert not ledger.missing_folders()
    study.pause(lease)
    assert not_mounted.missing_folders() == ["0"]
    shutil.rmtree(root / "0")
    assert ledger.missing_folders() == ["0"]
    (root / "0").mkdir()
    assert not ledger.missing_folders()
    study.tell(study.claim(lease.trial_id, owner=ELSEWHERE), TrialState.COMPLETE, value=0.5)
    begin(study)
    assert not not_mounted.missing_folders()


def test_files_may_move_with_their_root(study: Study, root: Path, tmp_path: Path) -> None:
    lease = begin(study)
    report(study, root, lease, 1, 0.5)
    shutil.move(root, tmp_path / "elsewhere")
    assert CheckpointLedger(study, tmp_path / "elsewhere").latest(lease) is not None


def test_trim_keeps_the_last_two_and_best_while_the_trial_runs(study: Study, root: Path) -> None:
    lease, ledger = begin(study), CheckpointLedger(study, root)
    for epoch, value in ((1, 0.1), (2, 0.9), (3, 0.3), (4, 0.4), (5, 0.2)):
        report(study, root, lease, epoch, value)
        ledger.trim(study.trials()[0])
    assert {path.name for path in (root / "0").iterdir()} == {"1-2.pt", "1-4.pt", "1-5.pt"}
    assert [record.epoch for record in study.checkpoints(lease)] == [5, 4, 2]


def test_trim_that_comes_late_spares_what_is_newer_than_what_it_knows(study: Study, root: Path) -> None:
    lease = begin(study)
    values = {1: 0.1, 2: 0.3, 3: 0.9, 4: 0.4, 5: 0.5}
    files = {epoch: report(study, root, lease, epoch, values[epoch]) for epoch in (1, 2)}
    known = study.trials()[0]
    files |= {epoch: report(study, root, lease, epoch, values[epoch]) for epoch in (3, 4, 5)}
    ledger = CheckpointLedger(study, root)
    ledger.trim(known)
    assert all(file.exists() for file in files.values())
    ledger.trim(study.trials()[0])
    assert {epoch for epoch, file in files.items() if file.exists()} == {3, 4, 5}


def test_trim_leaves_the_weights_of_the_winner_alone(study: Study, root: Path) -> None:
    ledger = CheckpointLedger(study, root)
    for number, value in enumerate((0.5, 0.25, 0.75)):
        lease = begin(study)
        report(study, root, lease, 1, value)
        study.tell(lease, TrialState.COMPLETE, value=value)
        ledger.trim(study.trials()[number])
    pruned = begin(study)
    report(study, root, pruned, 1, 0.99)
    study.tell(pruned, TrialState.PRUNED)
    ledger.trim(study.trials()[3])
    assert [path.parent.name for path in root.rglob("*.pt")] == ["2"]
    winner = study.trials()[2]
    best = ledger.best(winner)
    assert best is not None
    assert best.epoch == 1
    assert study.trials_with_checkpoints() == {winner.id}
    Path(ledger.path(best)).unlink()
    assert ledger.best(winner) is None


def test_trim_keeps_the_weights_that_are_needed_until_they_are_not(study: Study, root: Path) -> None:
    needed: set[int] = set()
    ledger = CheckpointLedger(study, root, lambda trials: {trial.id for trial in trials if trial.number in needed})
    for number, (state, value) in enumerate([(TrialState.COMPLETE, 0.9), (TrialState.PRUNED, 0.2)] * 2):
        lease = begin(study)
        for epoch in (1, 2):
            report(study, root, lease, epoch, value / epoch)
        study.tell(lease, state, value=value if state is TrialState.COMPLETE else None)
        needed = {number - 1, number}
        ledger.trim(study.trials()[number])
    left = sorted((path.parent.name, path.stem) for path in root.rglob("*.pt"))
    assert left == [("0", "1-1"), ("2", "1-1"), ("3", "1-1")], "the best trial, and the best epochs of those needed"


def test_trim_spares_a_better_trial_of_another_process_that_ends_meanwhile(
    study: Study, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = begin(study), begin(study)
    report(study, root, ours, 1, 0.5)
    kept = report(study, root, theirs, 1, 0.9)
    study.tell(ours, TrialState.COMPLETE, value=0.5)
    read_holders = study.trials_with_checkpoints

    def read_after_their_end() -> set[int] | frozenset[int]:
        study.tell(theirs, TrialState.COMPLETE, value=0.9)
        return read_holders()

    monkeypatch.setattr(study, "trials_with_checkpoints", read_after_their_end)
    CheckpointLedger(study, root).trim(study.trials()[0])
    monkeypatch.undo()
    assert kept.is_file()
    CheckpointLedger(study, root).trim(study.trials()[1])
    assert [path for path in root.rglob("*.pt")] == [kept]


def test_remove_of_a_file_that_is_gone_is_no_error(study: Study, root: Path) -> None:
    lease = begin(study)
    report(study, root, lease, 1, 0.5).unlink()
    ledger = CheckpointLedger(study, root)
    ledger.remove(lease, study.checkpoints(lease))
    ledger.remove(lease, ())
    assert study.checkpoints(lease) == ()


def test_remove_takes_empty_folders_away_up_to_the_root(study: Study, root: Path) -> None:
    ledger, lease = CheckpointLedger(study, root), begin(study)
    deep = [_filed(study, root, lease, epoch, f"study/trial/attempt/{epoch}.pt") for epoch in (1, 2)]
    flat = _filed(study, root, lease, 3, "3.pt")
    other = root / "study" / "report.html"
    other.write_text("")
    ledger.remove(lease, deep[:1])
    assert Path(ledger.path(deep[1])).exists()
    ledger.remove(lease, deep)
    assert sorted(root.rglob("*")) == [root / "3.pt", root / "study", other]
    other.unlink()
    ledger.remove(lease, deep)
    ledger.remove(lease, [flat])
    assert list(root.iterdir()) == []
    shutil.rmtree(root)
    ledger.remove(lease, [*deep, flat])
    assert root.parent.exists()


def _filed(study: Study, root: Path, lease: Lease, epoch: int, path: str) -> CheckpointRecord:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    record = CheckpointRecord(path=path, epoch=epoch, attempt=lease.attempt, digest=digest, size_bytes=7)
    study.report(lease, epoch, 0.5, {}, record)
    return record


def test_best_epoch_is_the_first_of_equals() -> None:
    equals = trial(0, value=0.1, reports={1: 0.1, 2: 0.9, 3: 0.9, 4: 0.1})
    assert best_epoch(equals, "maximize") == 2
    assert best_epoch(equals, "minimize") == 1


def test_best_epoch_is_finite() -> None:
    odd = trial(0, value=0.1, reports={1: 0.3, 2: 0.1, 3: 0.1, 4: float("nan"), 5: float("-inf"), 6: float("inf")})
    assert best_epoch(odd, "minimize") == 2
    assert best_epoch(odd, "maximize") == 1
    assert best_epoch(trial(0, value=0.1, reports={1: float("nan")}), "minimize") is None
    assert best_epoch(trial(0, value=0.1), "maximize") is None
