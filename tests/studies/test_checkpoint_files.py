"""The ledger of checkpoints over a store that is no folder."""

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from studies.checkpoint_files import PARTS
from studies.checkpoints import CheckpointLedger
from studies.errors import CheckpointStoreError
from studies.storage import Storage
from studies.study import Study
from studies.trial import CheckpointRecord, Lease, TrialState
from tests.contracts.study_contract import begin
from tests.helpers.stores import names_in, store_url
from trainers.checkpoint import combined_digest

__all__ = ["store_url"]


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        yield storage.create_study("study", direction="maximize")


def report(study: Study, root: str, lease: Lease, epoch: int, value: float) -> str:
    """Report an epoch with a checkpoint in a store, and return the checkpoint's path."""
    path, content = f"study/{lease.number}/{epoch}.pt", f"weights {lease.number} {epoch}".encode()
    write(root, path, content)
    digest = hashlib.sha256(content).hexdigest()
    record = CheckpointRecord(path=path, epoch=epoch, attempt=lease.attempt, digest=digest, size_bytes=len(content))
    study.report(lease, epoch, value, {}, record)
    return path


def write(root: str, path: str, content: bytes) -> None:
    store, place = fsspec.url_to_fs(f"{root}/{path}")
    store.makedirs(place.rpartition("/")[0], exist_ok=True)
    store.pipe_file(place, content)


def test_newest_whole_file_of_a_store_is_the_latest(
    study: Study, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    lease, ledger = begin(study), CheckpointLedger(study, store_url)
    first, second, third = (report(study, store_url, lease, epoch, 0.1 * epoch) for epoch in (1, 2, 3))
    newest = ledger.latest(lease)
    assert newest is not None
    assert ledger.path(newest) == f"{store_url}/{third}"
    write(store_url, third, b"weigh")
    write(store_url, second, b"WEIGHTS 0 2")
    with caplog.at_level(logging.WARNING):
        oldest = ledger.latest(lease)
    assert oldest is not None
    assert ledger.path(oldest) == f"{store_url}/{first}"
    assert "3.pt of trial 0 has 5 bytes instead of 11" in caplog.text
    assert "2.pt of trial 0 is damaged" in caplog.text
    assert len(study.checkpoints(lease)) == 3


def test_trim_removes_what_is_not_needed_from_a_store(study: Study, store_url: str) -> None:
    ledger, lease = CheckpointLedger(study, store_url), begin(study)
    for epoch, value in ((1, 0.1), (2, 0.9), (3, 0.3), (4, 0.4)):
        report(study, store_url, lease, epoch, value)
        ledger.trim(study.trials()[0])
    assert names_in(store_url) == ["study/0/2.pt", "study/0/3.pt", "study/0/4.pt"]
    study.tell(lease, TrialState.COMPLETE, value=0.9)
    ledger.trim(study.trials()[0])
    assert names_in(store_url) == ["study/0/2.pt"]
    best = ledger.best(study.trials()[0])
    assert best is not None and best.epoch == 2
    ledger.remove(lease, [best])
    assert names_in(store_url) == []
    assert study.checkpoints(lease) == ()


def cut(study: Study, root: str, lease: Lease, epoch: int) -> CheckpointRecord:
    """Report an epoch with a checkpoint whose weights are cut over two ranks."""
    contents = {"": b"file", "/a": b"first half", "/b": b"second half"}
    path = f"study/{lease.number}/{epoch}.pt"
    for name, content in contents.items():
        write(root, f"{path}{PARTS}{name}" if name else path, content)
    digests = [hashlib.sha256(content).hexdigest() for content in contents.values()]
    record = CheckpointRecord(
        path=path,
        epoch=epoch,
        attempt=lease.attempt,
        digest=combined_digest(digests[0], {"a": digests[1], "b": digests[2]}),
        size_bytes=sum(map(len, contents.values())),
    )
    study.report(lease, epoch, 0.5, {}, record)
    return record


def test_checkpoint_with_parts_is_whole_only_with_all_of_them(study: Study, store_url: str, tmp_path: Path) -> None:
    for root in (store_url, f"{tmp_path}/artifacts"):
        lease, ledger = begin(study), CheckpointLedger(study, root)
        first, second, third = (cut(study, root, lease, epoch) for epoch in (1, 2, 3))
        assert ledger.latest(lease) == third
        store, place = fsspec.url_to_fs(f"{root}/{third.path}{PARTS}/a")
        store.rm_file(place)
        assert ledger.latest(lease) == second
        write(root, f"{second.path}{PARTS}/b", b"SECOND half")
        assert ledger.latest(lease) == first
        write(root, f"{first.path}{PARTS}/c", b"of an older attempt")
        assert ledger.latest(lease) is None


def test_checkpoint_is_removed_with_its_parts(study: Study, store_url: str, tmp_path: Path) -> None:
    for root in (store_url, f"{tmp_path}/artifacts"):
        lease, ledger = begin(study), CheckpointLedger(study, root)
        records = [cut(study, root, lease, epoch) for epoch in (1, 2)]
        ledger.remove(lease, records[:1])
        assert names_in(root) == [f"{records[1].path}{name}" for name in ("", f"{PARTS}/a", f"{PARTS}/b")]
        ledger.remove(lease, records)
        assert names_in(root) == []
    assert not (tmp_path / "artifacts" / "study").exists()


def test_folders_are_missing_in_a_store_without_them(study: Study, store_url: str) -> None:
    lease = begin(study)
    report(study, store_url, lease, 1, 0.5)
    assert not CheckpointLedger(study, store_url).missing_folders()
    assert CheckpointLedger(study, f"{store_url}/other").missing_folders() == ["study"]


def test_store_that_cannot_be_reached_stops_a_resumption_and_loses_nothing(
    study: Study, caplog: pytest.LogCaptureFixture
) -> None:
    # Were it taken for a missing file, the trial would start anew and its checkpoints would be given up.
    lease, ledger = begin(study), CheckpointLedger(study, "refusing://away")
    for epoch in (1, 2, 3, 4):
        report(study, "memory://away", lease, epoch, 0.5)
    with pytest.raises(CheckpointStoreError, match=r"cannot read refusing://away/study/0/4\.pt: PermissionError"):
        ledger.latest(lease)
    with pytest.raises(CheckpointStoreError, match="cannot look for refusing://away/study"):
        ledger.missing_folders()
    with caplog.at_level(logging.WARNING):
        ledger.trim(study.trials()[0])
    assert "no longer needed stays: cannot remove refusing://away/study/0/2.pt" in caplog.text
    assert len(study.checkpoints(lease)) == 4
    CheckpointLedger(study, "memory://away").trim(study.trials()[0])
    assert [record.epoch for record in study.checkpoints(lease)] == [4, 3, 1]


def test_folder_with_colons_in_its_name_is_a_folder(study: Study, tmp_path: Path) -> None:
    lease, root = begin(study), tmp_path / "a::b"
    record = CheckpointRecord(
        path="1.pt", epoch=1, attempt=1, digest=hashlib.sha256(b"weights").hexdigest(), size_bytes=7
    )
    root.mkdir()
    (root / "1.pt").write_bytes(b"weights")
    study.report(lease, 1, 0.5, {}, record)
    assert CheckpointLedger(study, root).latest(lease) == record
