import hashlib
import os
import subprocess
import sys
from io import BufferedRandom
from pathlib import Path

import pytest

from tests.helpers.commands import REPOSITORY, until
from tests.helpers.full_disk import SmallDisk, small_disk
from tests.helpers.stores import TornStore, names_in, store_url
from trainers.artifact_files import is_url, local_copy, write_file
from trainers.checkpoint import read_checkpoint
from trainers.errors import ArtifactStoreError, full_disk

__all__ = ["small_disk", "store_url"]

CONTENT = bytes(range(256)) * 1000


def test_a_url_is_told_from_a_path() -> None:
    assert is_url("s3://bucket/runs")
    assert not any(is_url(path) for path in ("/tmp/a", Path("s3:/bucket"), "a::b", ""))


def test_file_in_a_folder_reads_back_with_its_digest_and_size(tmp_path: Path) -> None:
    facts = write_file(tmp_path / "a" / "b", lambda file: file.write(CONTENT))
    with local_copy(tmp_path / "a" / "b") as path:
        assert path == tmp_path / "a" / "b"
        assert path.read_bytes() == CONTENT
    assert (facts.digest, facts.size_bytes) == (hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    assert os.listdir(tmp_path / "a") == ["b"]


def test_file_in_a_store_reads_back_and_nothing_is_left_beside_it(store_url: str) -> None:
    for content in (CONTENT, b"replaced"):
        facts = write_file(f"{store_url}/a/b", lambda file, content=content: file.write(content))  # type: ignore[misc]
        with local_copy(f"{store_url}/a/b") as path:
            assert path.read_bytes() == content
        assert not path.exists()
        assert (facts.digest, facts.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert names_in(store_url) == ["a/b"]


def test_file_that_is_not_in_a_store_is_missing(store_url: str) -> None:
    with pytest.raises(FileNotFoundError), local_copy(f"{store_url}/none"):
        pass


def test_content_that_fails_leaves_the_old_file_in_a_store(store_url: str) -> None:
    def fail(file: BufferedRandom) -> None:
        file.write(b"half")
        raise ZeroDivisionError

    write_file(f"{store_url}/a", lambda file: file.write(CONTENT))
    with pytest.raises(ZeroDivisionError):
        write_file(f"{store_url}/a", fail)
    with local_copy(f"{store_url}/a") as path:
        assert path.read_bytes() == CONTENT


def test_upload_that_breaks_off_shows_no_file() -> None:
    with pytest.raises(ArtifactStoreError, match=r"cannot write torn://broken/a/b: ConnectionResetError"):
        write_file("torn://broken/a/b", lambda file: file.write(CONTENT))
    assert names_in("torn://broken") == []


def test_store_that_refuses_is_named_with_its_own_words() -> None:
    with pytest.raises(ArtifactStoreError, match=r"cannot write refusing://x/a: PermissionError: Access Denied"):
        write_file("refusing://x/a", lambda file: file.write(CONTENT))
    with (
        pytest.raises(ArtifactStoreError, match=r"cannot read refusing://x/a: PermissionError"),
        local_copy("refusing://x/a"),
    ):
        pass


def test_bucket_that_does_not_exist_is_an_error_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(*_: object) -> None:
        raise FileNotFoundError("The specified bucket does not exist")

    monkeypatch.setattr(TornStore, "put_file", say)
    with pytest.raises(ArtifactStoreError, match="cannot write torn://bucket/a: FileNotFoundError: The specified"):
        write_file("torn://bucket/a", lambda file: file.write(CONTENT))


def test_full_disk_leaves_the_old_file_and_nothing_else(small_disk: SmallDisk) -> None:
    write_file(small_disk.folder / "a", lambda file: file.write(b"old"))
    small_disk.fill()
    with pytest.raises(OSError) as caught:
        write_file(small_disk.folder / "a", lambda file: file.write(CONTENT))
    assert full_disk(caught.value) is caught.value
    small_disk.make_room()
    assert os.listdir(small_disk.folder) == ["a"]
    assert (small_disk.folder / "a").read_bytes() == b"old"


SAVES_FOR_EVER = """
import itertools, sys, torch
from trainers.checkpoint import Checkpoint, checkpoint_name, write_checkpoint
weights = torch.arange(1_000_000, dtype=torch.float32)
for turn in itertools.count(1):
    state = Checkpoint(
        epoch=turn, seed=1, network={"weights": weights + turn}, optimization={}, best={}, metrics={}, blueprint={}
    )
    write_checkpoint(state, sys.argv[1], checkpoint_name(1 + turn % 2))
    print(turn, flush=True)
"""
KILLS = 12


@pytest.mark.slow
@pytest.mark.chaos
def test_kill_in_the_middle_of_a_save_never_leaves_fewer_than_one_good_file(tmp_path: Path) -> None:
    # Two files are written in turn, each over its elder, so that every kill meets one that is being replaced.
    met = 0
    for kill in range(KILLS):
        folder = tmp_path / str(kill)
        saved = killed_while_saving(folder, share=kill / KILLS)
        checkpoints = [read_checkpoint(file) for file in folder.glob("epoch-*.pt")]
        assert all(checkpoint.network["weights"][0] == checkpoint.epoch for checkpoint in checkpoints)
        assert max(checkpoint.epoch for checkpoint in checkpoints) >= saved
        met += len(list(folder.glob(".*.unfinished")))
    assert met >= KILLS // 2, "most kills meet a file that is not finished"


def killed_while_saving(folder: Path, share: float) -> int:
    """Kill a process that saves, once a file that it writes has this share of its size; return the saves it told of."""
    command = [sys.executable, "-c", SAVES_FOR_EVER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        saved = [int(process.stdout.readline()) for _ in range(2)]
        wanted = share * next(folder.glob("epoch-*.pt")).stat().st_size
        until(lambda: any(size >= wanted for size in sizes_of_unfinished(folder)), 30.0, "a save under way")
        process.kill()
        return max(saved + [int(line) for line in process.stdout])


def sizes_of_unfinished(folder: Path) -> list[int]:
    try:
        return [file.stat().st_size for file in folder.glob(".*.unfinished")]
    except FileNotFoundError:
        return []  # finished since
