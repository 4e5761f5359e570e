import json
from pathlib import Path

import pytest

from trainers.artifact_files import write_file
from trainers.config import TrainConfig
from trainers.errors import DamagedCheckpointError
from trainers.kept_checkpoints import FOLDER, KeptCheckpoints, UsedFolderError
from trainers.reporting import CheckpointFile, Report

TRAINING = TrainConfig(epochs=9)


def opened(root: Path, seed: int = 0) -> KeptCheckpoints:
    return KeptCheckpoints(root, TRAINING, {"space": "s", "seed": seed})


def report(root: Path, epoch: int, accuracy: float) -> Report:
    """Any trainer's checkpoint: its content is nobody's business here."""
    path = f"{FOLDER}/epoch-{epoch:04d}.any"
    facts = write_file(root / path, lambda file: file.write(f"state of epoch {epoch}".encode()))
    checkpoint = CheckpointFile(path=path, epoch=epoch, digest=facts.digest, size_bytes=facts.size_bytes)
    return Report(epoch=epoch, metrics={"accuracy": accuracy, "epochs": epoch}, checkpoint=checkpoint)


def files(root: Path) -> list[str]:
    return sorted(path.stem for path in (root / FOLDER).iterdir())


def train(kept: KeptCheckpoints, root: Path, accuracies: dict[int, float]) -> None:
    for epoch, accuracy in accuracies.items():
        kept.add(report(root, epoch, accuracy))


def test_best_and_last_are_kept_and_taken_up_again(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    train(kept, tmp_path, {1: 0.5, 2: 0.9, 3: 0.6, 4: 0.7})
    assert files(tmp_path) == ["epoch-0002", "epoch-0004"]
    again = opened(tmp_path)
    assert again.newest() == again.last == kept.last == f"{FOLDER}/epoch-0004.any"
    assert (again.best, again.best_metrics()) == (kept.best, {"accuracy": 0.9, "epochs": 2})
    train(again, tmp_path, {5: 0.8})
    assert files(tmp_path) == ["epoch-0002", "epoch-0005"]


def test_what_a_killed_process_left_between_its_writings_is_no_harm(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    train(kept, tmp_path, {1: 0.5, 2: 0.9, 3: 0.6})
    report(tmp_path, 4, 0.7)  # written, and not yet recorded
    again = opened(tmp_path)
    assert again.newest() == f"{FOLDER}/epoch-0003.any"
    train(again, tmp_path, {4: 0.7})
    report(tmp_path, 3, 0.6)  # recorded as kept once, and not yet removed
    last = opened(tmp_path)
    assert last.newest() == f"{FOLDER}/epoch-0004.any"
    train(last, tmp_path, {5: 0.8})
    assert files(tmp_path) == ["epoch-0002", "epoch-0005"]


def test_damaged_checkpoint_is_left_aside_for_the_one_before_with_its_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(opened(tmp_path), tmp_path, {1: 0.5, 2: 0.6, 3: 0.4, 4: 0.9})
    assert files(tmp_path) == ["epoch-0004"]
    train(opened(tmp_path), tmp_path, {1: 0.6, 2: 0.5})
    (tmp_path / FOLDER / "epoch-0002.any").write_text("something else")
    again = opened(tmp_path)
    assert again.newest() == f"{FOLDER}/epoch-0001.any"
    assert again.best_metrics() == {"accuracy": 0.6, "epochs": 1}
    assert "epoch-0002.any is damaged" in caplog.text
    (tmp_path / FOLDER / "epoch-0001.any").write_text("something else")
    with pytest.raises(DamagedCheckpointError, match="no checkpoint in"):
        opened(tmp_path).newest()


def test_epochs_without_a_checkpoint_are_followed_and_started_anew(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.add(Report(epoch=1, metrics={"accuracy": 0.5}))
    assert (kept.best, kept.last, kept.best_metrics()) == (None, None, {"accuracy": 0.5})
    assert opened(tmp_path).newest() is None
    kept.add(report(tmp_path, 2, 0.4))
    assert (kept.best, kept.last) == (None, f"{FOLDER}/epoch-0002.any")


def test_folder_of_another_training_is_refused(tmp_path: Path) -> None:
    KeptCheckpoints.check_unused(tmp_path)
    train(opened(tmp_path), tmp_path, {1: 0.5})
    with pytest.raises(UsedFolderError, match="--resume"):
        KeptCheckpoints.check_unused(tmp_path)
    with pytest.raises(UsedFolderError, match="seed: there 0, now 3"):
        opened(tmp_path, seed=3).newest()
    (tmp_path / "training.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(UsedFolderError, match="no record of a training of this version"):
        opened(tmp_path).newest()
