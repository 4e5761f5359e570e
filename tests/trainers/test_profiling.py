"""The profile of a few steps: a trace that a browser opens, and the dearest operators."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainers.training import Script, tiny_task
from trainers.artifact_files import local_copy
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import NonFiniteLossError
from trainers.profiling import TABLE, TRACE, Operator, StepProfile, operator_table
from trainers.tasks import load_trainer

ALONE = Ranks.alone("cpu")


def test_profile_lies_beside_the_checkpoints(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, batch_size=16).model_copy(update={"profile": True})  # 7 steps
    load_trainer("image_classification").fit(task, few_digits, ALONE, Script())
    events = json.loads((tmp_path / "trial-0" / TRACE).read_text())["traceEvents"]
    names = [event["name"] for event in events if "name" in event]
    assert sum(name.startswith("ProfilerStep") for name in names) == 3
    head, *rows = (tmp_path / "trial-0" / TABLE).read_text().splitlines()
    assert head.split() == ["own", "ms", "share", "calls", "operator"]
    assert len(rows) == 10
    times = [float(row.split()[0]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert any("convolution" in row for row in rows)


@pytest.mark.parametrize("steps, recorded", [(1, 1), (4, 3), (5, 3), (20, 3)])
def test_short_epoch_is_profiled_without_warm_up(tmp_path: Path, steps: int, recorded: int) -> None:
    weight = torch.ones(8, 8, requires_grad=True)
    profile = StepProfile(str(tmp_path), torch.device("cpu"), steps)
    profile.begin()
    for _ in range(steps):
        (weight @ weight).sum().backward()  # type: ignore[no-untyped-call]  # torch
        profile.step_done()
    profile.begin()  # a second epoch
    profile.step_done()
    profile.close()
    row = next(row for row in (tmp_path / TABLE).read_text().splitlines() if row.endswith(" aten::mm"))
    assert int(row.split()[-2]) == 3 * recorded, "one forward and two backward"


def test_profile_goes_to_a_store(few_digits: ImageData) -> None:
    task = tiny_task("memory://profile", epochs=1).model_copy(update={"profile": True})
    load_trainer("image_classification").fit(task, few_digits, ALONE, Script())
    with local_copy(f"memory://profile/trial-0/{TABLE}") as table:
        assert "operator" in table.read_text()


def test_failed_training_ends_the_profiler(few_digits: ImageData, tmp_path: Path) -> None:
    task = tiny_task(tmp_path, batch_size=101, learning_rate=1e38, gradient_clip=0.0, optimizer="sgd", epochs=9)
    bad = task.model_copy(update={"profile": True})
    with pytest.raises(NonFiniteLossError):
        load_trainer("image_classification").fit(bad, few_digits, ALONE, Script())
    test_profile_lies_beside_the_checkpoints(few_digits, tmp_path / "next")


def test_table_has_the_dearest_operators_first() -> None:
    operators = [Operator(name=f"op{index}", own_us=1000.0 * index, calls=index) for index in range(1, 15)]
    lines = operator_table(operators).splitlines()
    assert len(lines) == 11
    assert lines[1].split() == ["14.000", "13.3", "%", "14", "op14"]
