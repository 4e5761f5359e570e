"""TensorBoard's files, read back as TensorBoard reads them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainers.training import Script, tiny_task
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.reporting import Decision
from trainers.tasks import load_trainer
from trainers.tensorboard import Board

pytest.importorskip("tensorboard", reason="the test needs: pip install 'automl[tensorboard]'")
trainer = load_trainer("image_classification")
ALONE = Ranks.alone("cpu")


def drawn(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]  # no stubs
        EventAccumulator,
    )

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "images": 0})
    found.Reload()
    return found


def with_board(task: TrainTask) -> TrainTask:
    return task.model_copy(update={"tensorboard": "board"})


def test_board_holds_curves_histograms_graph_and_images(few_digits: ImageData, tmp_path: Path) -> None:
    script = Script()
    trainer.fit(with_board(tiny_task(tmp_path, augmentation=1.0)), few_digits, ALONE, script)
    board = drawn(tmp_path / "board")
    tags = board.Tags()
    assert {"loss/training", "loss/validation", "metrics/accuracy", "course/learning_rate", "course/step_ms"} <= set(
        tags["scalars"]
    )
    for tag, name in (("loss/training", "train_loss"), ("metrics/accuracy", "accuracy")):
        assert [(event.step, event.value) for event in board.Scalars(tag)] == [
            (report.epoch, pytest.approx(report.metrics[name])) for report in script.reports
        ]
    weights = {f"{kind}/{name}" for kind in ("weights", "gradients") for name in ("0.weight", "6.weight", "6.bias")}
    assert weights <= set(tags["histograms"])
    assert [event.step for event in board.Histograms("gradients/0.weight")] == [1, 2]
    assert board.Histograms("weights/0.weight")[0].histogram_value.num == 4 * 9
    assert tags["graph"] is True
    images = board.Images("images/first_batch")
    assert len(images) == 1
    assert images[0].encoded_image_string.startswith(b"\x89PNG")


def test_resumed_training_goes_on_in_the_same_board(few_digits: ImageData, tmp_path: Path) -> None:
    task = with_board(tiny_task(tmp_path, epochs=3))
    trainer.fit(task, few_digits, ALONE, Script({2: Decision.PAUSE}))
    again = task.model_copy(update={"resume_from": "trial-0/epoch-0001.pt"})  # that of epoch 2 was lost, say
    trainer.fit(again, few_digits, ALONE, Script())
    board = drawn(tmp_path / "board")
    assert sorted({event.step for event in board.Scalars("loss/training")}) == [1, 2, 3]
    assert len(board.Images("images/first_batch")) == 1


def test_network_that_cannot_be_traced_is_trained_and_drawn_without_its_graph(
    few_digits: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise ValueError("cannot be traced")

    monkeypatch.setattr("torch.jit.trace", refuse)
    result = trainer.fit(with_board(tiny_task(tmp_path, epochs=1)), few_digits, ALONE, Script())
    assert result.outcome == "completed"
    assert "the graph is not drawn reason=ValueError: cannot be traced" in caplog.messages
    assert "loss/training" in drawn(tmp_path / "board").Tags()["scalars"]


def test_board_in_a_store_is_refused(few_digits: ImageData) -> None:
    with pytest.raises(UserCodeError, match="in a folder and not in memory://boards/board"):
        trainer.fit(with_board(tiny_task("memory://boards")), few_digits, ALONE, Script())


def test_missing_package_ends_the_training_with_the_command_that_installs_it(
    few_digits: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserCodeError, match=r"pip install 'automl\[tensorboard\]'"):
        trainer.fit(with_board(tiny_task(tmp_path)), few_digits, ALONE, Script())


def test_board_is_closed_where_the_training_cannot_be_set_up(
    few_digits: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room for the graph")

    def close(board: Board) -> None:
        closed.append(board)
        closes(board)

    closed, closes = list[Board](), Board.close
    monkeypatch.setattr(Board, "graph", fail)
    monkeypatch.setattr(Board, "close", close)
    with pytest.raises(OSError, match="no room for the graph"):
        trainer.fit(with_board(tiny_task(tmp_path)), few_digits, ALONE, Script())
    assert len(closed) == 1
