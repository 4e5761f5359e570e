import dataclasses
import hashlib
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.helpers.full_disk import SmallDisk, small_disk
from tests.helpers.stores import names_in, store_url
from tests.trainers.training import Script, assert_same_tensors, timeless, tiny_task
from trainers.artifact_files import local_copy, write_file
from trainers.checkpoint import Checkpoint, checkpoint_name, read_checkpoint, write_checkpoint
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import DamagedCheckpointError, full_disk
from trainers.tasks import load_trainer

__all__ = ["small_disk", "store_url"]


@pytest.fixture
def checkpoint() -> Checkpoint:
    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(network.parameters())
    network(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return Checkpoint(
        epoch=3,
        seed=5,
        network=network.state_dict(),
        optimization={"optimizer": optimizer.state_dict(), "scaler": {}, "steps_made": 1, "skipped_steps": 0},
        best={"value": 0.5, "epoch": 2, "mark": None, "mark_epoch": 0, "last_epoch": 3},
        metrics={"accuracy": 0.5},
        blueprint={"space": "tiny", "configuration": {"width": 4}, "input_shape": [1, 8, 8]},
    )


def test_written_checkpoint_reads_back_equal(checkpoint: Checkpoint, tmp_path: Path) -> None:
    file = write_checkpoint(checkpoint, tmp_path, "trial-0/epoch-0003.pt")
    read = read_checkpoint(tmp_path / file.path)
    assert_same_tensors(dict(checkpoint.network), dict(read.network))
    assert_same_tensors(dict(checkpoint.optimization), dict(read.optimization))
    for name in ("epoch", "seed", "best", "metrics", "blueprint"):
        assert getattr(read, name) == getattr(checkpoint, name)


def test_checkpoint_is_a_plain_weights_only_file(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_checkpoint(checkpoint, tmp_path, "c.pt")
    content = torch.load(tmp_path / "c.pt", weights_only=True)
    assert_same_tensors(dict(checkpoint.network), content["network"])


def test_nothing_is_left_beside_a_checkpoint(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_checkpoint(checkpoint, tmp_path, "a/b/c.pt")
    write_checkpoint(checkpoint, tmp_path, "a/b/c.pt")
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["c.pt"]


def test_failed_write_leaves_the_old_checkpoint_and_nothing_else(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_checkpoint(checkpoint, tmp_path, "c.pt")
    before = (tmp_path / "c.pt").read_bytes()
    unsavable = dataclasses.replace(checkpoint, blueprint={"hook": lambda: None})  # type: ignore[dict-item]  # on purpose
    with pytest.raises(Exception, match="pickle"):
        write_checkpoint(unsavable, tmp_path, "c.pt")
    assert (tmp_path / "c.pt").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["c.pt"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_checkpoint_cut_short_is_refused(checkpoint: Checkpoint, tmp_path: Path, share: float) -> None:
    write_checkpoint(checkpoint, tmp_path, "c.pt")
    content = (tmp_path / "c.pt").read_bytes()
    (tmp_path / "c.pt").write_bytes(content[: int(share * len(content))])
    with pytest.raises(DamagedCheckpointError, match=r"c\.pt is cut short or damaged"):
        read_checkpoint(tmp_path / "c.pt")


def test_single_flipped_bit_in_a_weight_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    write_checkpoint(checkpoint, tmp_path, "c.pt")
    content = bytearray((tmp_path / "c.pt").read_bytes())
    weight = checkpoint.network["0.weight"].numpy().tobytes()
    content[content.index(weight)] ^= 1
    (tmp_path / "c.pt").write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match="fails its checksum"):
        read_checkpoint(tmp_path / "c.pt")


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedCheckpointError, match="is missing"):
        read_checkpoint(tmp_path / "none.pt")
    torch.save({"weights": torch.ones(2)}, tmp_path / "foreign.pt")
    with pytest.raises(DamagedCheckpointError, match=r"is no 'automl checkpoint 1' file"):
        read_checkpoint(tmp_path / "foreign.pt")


def test_checkpoint_in_a_store_reads_back_equal(checkpoint: Checkpoint, store_url: str) -> None:
    file = write_checkpoint(checkpoint, store_url, "study one/trial-0/epoch-0003.pt")
    assert names_in(store_url) == [file.path]
    read = read_checkpoint(f"{store_url}/{file.path}")
    assert_same_tensors(dict(checkpoint.network), dict(read.network))
    with local_copy(f"{store_url}/{file.path}") as copy:
        content = copy.read_bytes()
    assert (file.digest, file.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))


def test_missing_and_damaged_checkpoints_of_a_store_are_refused(checkpoint: Checkpoint, store_url: str) -> None:
    write_checkpoint(checkpoint, store_url, "c.pt")
    with local_copy(f"{store_url}/c.pt") as copy:
        content = copy.read_bytes()
    write_file(f"{store_url}/c.pt", lambda file: file.write(content[: len(content) // 2]))
    with pytest.raises(DamagedCheckpointError, match=r"c\.pt is cut short or damaged"):
        read_checkpoint(f"{store_url}/c.pt")
    with pytest.raises(DamagedCheckpointError, match=r"none\.pt is missing"):
        read_checkpoint(f"{store_url}/none.pt")


@pytest.mark.parametrize("tag", ["cuda:1", "mps"])
def test_checkpoint_with_the_tag_of_a_device_that_is_not_here_is_read_on_the_cpu(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda storage: tag)
        write_checkpoint(checkpoint, tmp_path, "c.pt")
    assert tag.encode() in (tmp_path / "c.pt").read_bytes()
    read = read_checkpoint(tmp_path / "c.pt")
    assert_same_tensors(dict(checkpoint.network), dict(read.network))
    assert_same_tensors(dict(checkpoint.optimization), dict(read.optimization))


def test_full_disk_is_told_from_other_reasons(checkpoint: Checkpoint, small_disk: SmallDisk) -> None:
    write_checkpoint(checkpoint, small_disk.folder, "c.pt")
    big = dataclasses.replace(checkpoint, network={"weights": torch.randn(100_000)})
    small_disk.fill()
    with pytest.raises((OSError, RuntimeError)) as caught:
        write_checkpoint(big, small_disk.folder, "d.pt")
    assert full_disk(caught.value) is not None
    small_disk.make_room()
    assert [path.name for path in small_disk.folder.iterdir()] == ["c.pt"]
    read_checkpoint(small_disk.folder / "c.pt")
    assert full_disk(RuntimeError("No space left on device")) is None
    assert full_disk(PermissionError(13, "Permission denied")) is None


def test_names_sort_like_epochs() -> None:
    names = [checkpoint_name(epoch) for epoch in (1, 9, 10, 99, 100, 2000)]
    assert names == sorted(names)


def test_checkpoint_of_the_release_without_methods_is_gone_on_with(few_digits: ImageData, tmp_path: Path) -> None:
    trainer, ranks, path = load_trainer("image_classification"), Ranks.alone("cpu"), "trial-0/epoch-0001.pt"
    whole, resumed = Script(), Script()
    trainer.fit(tiny_task(tmp_path / "whole"), few_digits, ranks, whole)
    new = read_checkpoint(tmp_path / "whole" / path)
    known = ("optimizer", "scaler", "steps_made", "skipped_steps")  # all that it kept
    old = dataclasses.replace(new, optimization={name: new.optimization[name] for name in known})
    write_checkpoint(old, tmp_path / "resumed", path)
    trainer.fit(tiny_task(tmp_path / "resumed", resume_from=path), few_digits, ranks, resumed)
    assert [timeless(report) for report in resumed.reports] == [timeless(whole.reports[1])]
