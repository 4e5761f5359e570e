"""Weights that are cut over two real processes: what they do together equals what one does alone."""

import errno
import pickle
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from search_spaces.configuration import JsonScalar
from studies.checkpoint_files import CheckpointFiles
from studies.trial import CheckpointRecord
from tests.trainers import training
from tests.trainers.rank_pool import RankPool
from tests.trainers.training import (
    SMOOTH,
    assert_same_course,
    assert_same_tensors,
    evaluation_of,
    last_checkpoint,
    tiny_task,
    two_classes,
)
from trainers.artifact_files import facts_of
from trainers.checkpoint import PARTS, read_checkpoint, remove_checkpoint
from trainers.config import TrainTask
from trainers.data.arrays import ImageData
from trainers.distributed import Ranks
from trainers.errors import DamagedCheckpointError, PeerFailedError, UserCodeError, full_disk
from trainers.optimizers.sharded import own_part
from trainers.parallel import fsdp
from trainers.parallel.fsdp import FullySharded, units
from trainers.precision import MixedPrecision
from trainers.problem import Batch
from trainers.reporting import Decision, JsonValue, Report, TrialResult
from trainers.tasks import load_trainer

trainer = load_trainer("image_classification")
NO_NORM: dict[str, JsonScalar] = {"norm": "none", "width": 5}


def fit(
    ranks: Ranks, task: TrainTask, data: ImageData, decisions: dict[int, Decision] | None = None
) -> tuple[TrialResult, list[Report]]:
    fsdp.UNIT_WEIGHTS = 50  # so that the layers of a tiny network are gathered one after the other
    return training.fit(ranks, task, data, decisions)


def sharded(root: Path | str, network: dict[str, JsonScalar] | None = None, **settings: Any) -> TrainTask:
    return tiny_task(root, network, **{"parallel": "fsdp", **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 32, "gradient_clip": 0.1},
        {"batch_size": 30, "accumulate": 4, "augmentation": 1.0},
        {"batch_size": 1, "epochs": 1},
        {"batch_size": 3, "accumulate": 2, "epochs": 1},
        {"batch_size": 32, "precision": "fp16"},
        {"batch_size": 32, "precision": "bf16"},
        {"batch_size": 32, "ema": 0.9},
    ],
    ids=["plain", "accumulated", "a rank without items", "ranks with unequal parts", "fp16", "bf16", "averaged"],
)
def test_two_ranks_equal_one(pair: RankPool, few_digits: ImageData, tmp_path: Path, settings: dict[str, Any]) -> None:
    tolerance = {"fp16": 1e-3, "bf16": 5e-3}.get(settings.get("precision", "fp32"), 1e-5)
    _, alone = fit(Ranks.alone("cpu"), sharded(tmp_path / "1", NO_NORM, **SMOOTH, **settings), few_digits)

    first, second = pair.run(fit, sharded(tmp_path / "2", NO_NORM, **SMOOTH, **settings), few_digits)

    assert first[0].facts["parallel"] == second[0].facts["parallel"] == "fsdp"
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), tolerance)
    assert_same_course(first[1], alone, tolerance)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "rmsprop", "lion", "muon"])
def test_every_optimizer_moves_cut_weights_as_whole_ones(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, optimizer: str
) -> None:
    settings: dict[str, Any] = {"optimizer": optimizer, "epochs": 1, "learning_rate": 1e-3, "l1": 1e-3}
    fit(Ranks.alone("cpu"), sharded(tmp_path / "1", NO_NORM, **settings), few_digits)
    first, _ = pair.run(fit, sharded(tmp_path / "2", NO_NORM, **settings), few_digits)
    assert first[0].outcome == "completed"
    one, two = last_checkpoint(tmp_path / "1"), last_checkpoint(tmp_path / "2")
    assert_same_tensors(dict(one.network), dict(two.network), 1e-4 if optimizer == "muon" else 1e-5)


def test_two_ranks_resumed_equal_uninterrupted_to_the_last_bit(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    network: dict[str, JsonScalar] = {"dropout": 0.5}
    settings: dict[str, Any] = {"epochs": 3, "ema": 0.9}
    pair.run(fit, sharded(tmp_path / "whole", network, **settings), few_digits)
    pair.run(fit, sharded(tmp_path / "parts", network, **settings), few_digits, {1: Decision.PAUSE})
    resumed = sharded(tmp_path / "parts", network, resume_from="trial-0/epoch-0001.pt", **settings)
    (result, _), _ = pair.run(fit, resumed, few_digits)
    assert result.epoch == 3
    whole, parts = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert_same_tensors(dict(whole.network), dict(parts.network))
    assert_same_tensors(dict(whole.optimization), dict(parts.optimization))


@pytest.mark.parametrize(
    ("before", "after"), [("fsdp", "ddp"), ("ddp", "fsdp"), ("fsdp", None)], ids=["to ddp", "from ddp", "to one rank"]
)
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_checkpoint_goes_on_in_another_way_of_sharing(
    pair: RankPool, few_digits: ImageData, tmp_path: Path, before: str, after: str | None, optimizer: str
) -> None:
    settings: dict[str, Any] = {"optimizer": optimizer, "learning_rate": 1e-2, "epochs": 2}
    pair.run(fit, sharded(tmp_path, NO_NORM, parallel=before, **settings), few_digits, {1: Decision.PAUSE})
    resumed = sharded(tmp_path, NO_NORM, parallel=after or "auto", resume_from="trial-0/epoch-0001.pt", **settings)
    result, _ = pair.run(fit, resumed, few_digits)[0] if after else fit(Ranks.alone("cpu"), resumed, few_digits)
    assert result.facts["parallel"] == (after or "none")
    fit(Ranks.alone("cpu"), sharded(tmp_path / "alone", NO_NORM, **settings), few_digits)
    mixed, alone = last_checkpoint(tmp_path), last_checkpoint(tmp_path / "alone")
    assert_same_tensors(dict(mixed.network), dict(alone.network), 1e-4)


def test_batch_norm_statistics_are_equal_on_both_ranks_and_one_process_measures_the_same(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    task = sharded(tmp_path, batch_size=16)
    (_, reports), _ = pair.run(fit, task, few_digits)
    alone = trainer.evaluate(evaluation_of(task), few_digits, Ranks.alone("cpu"))
    for name, value in alone.items():
        assert reports[-1].metrics[name] == pytest.approx(value, abs=1e-6)


class _Numbered:
    """Items whose answer is known."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def batches(self, parts: Sequence[slice]) -> Iterator[Batch]:
        for part in parts:
            items = torch.arange(part.start, part.stop)
            yield Batch(inputs=(torch.ones(len(items), 3),), targets=items)


class _Seen:
    """Remembers which items were counted."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def add(self, answers: torch.Tensor, targets: torch.Tensor) -> None:
        self.items += targets.tolist()

    def total(self, ranks: Ranks) -> dict[str, float]:
        return {str(item): 1.0 for seen in ranks.gather_objects(self.items) for item in seen}

    def details(self) -> dict[str, JsonValue]:
        return {}


def held_shares(ranks: Ranks) -> tuple[float, list[str]]:
    """Return this rank's share of the weights and of the optimizer's state, and the names of weights."""
    example = Batch(inputs=(torch.ones(1, 30),), targets=torch.zeros(1))
    network = nn.Sequential(nn.Linear(30, 64), nn.Linear(64, 30))
    parallel = FullySharded(network, ranks, MixedPrecision("fp32", ranks.device), example, 4, unit_weights=1)
    optimizer = torch.optim.AdamW(parallel.network.parameters(), fused=True)
    parallel.train_batch(
        iter([example]),
        [slice(0, 1)],
        2,
        lambda answers, _: answers.sum(dim=1),
        lambda losses, weight: (losses.sum() * weight).backward(),  # type: ignore[no-untyped-call]  # untyped in torch
    )
    optimizer.step()
    state = [values["exp_avg"] for values in parallel.optimizer_state(optimizer)["state"].values()]
    weights = parallel.network_state()
    held = sum(own_part(tensor).numel() for tensor in [*weights.values(), *state])
    return held / (2 * (30 * 64 + 64 + 64 * 30 + 30)), list(weights)


def test_each_rank_holds_its_share_of_weights_and_optimizer_state(pair: RankPool) -> None:
    for share, names in pair.run(held_shares):
        assert share == pytest.approx(0.5, abs=0.01)
        assert names == ["0.weight", "0.bias", "1.weight", "1.bias"]


def measured_items(ranks: Ranks, count: int) -> tuple[list[int], list[str], bool]:
    example = Batch(inputs=(torch.ones(1, 3),), targets=torch.zeros(1))
    precision = MixedPrecision("fp32", ranks.device)
    parallel = FullySharded(nn.Sequential(nn.Linear(3, 2)), ranks, precision, example, micro_batch=4, unit_weights=1)
    before, seen = parallel.network_state()["0.weight"], _Seen()
    metrics = parallel.measure(_Numbered(count), 2, seen)
    return seen.items, sorted(metrics), type(before) is type(parallel.network_state()["0.weight"])


@pytest.mark.parametrize("count", [1, 5, 8])
def test_every_item_is_measured_once_however_unequal_the_shares(pair: RankPool, count: int) -> None:
    first, second = pair.run(measured_items, count)
    assert first[0] + second[0] == list(range(count))
    assert first[1] == second[1] == sorted(map(str, range(count)))
    assert first[2]


def test_group_can_be_reopened_after_trials_that_ended_well_and_badly(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    for number in range(3):
        replies = pair.run(fit, sharded(tmp_path / f"good-{number}", epochs=1), few_digits)
        assert [result.outcome for result, _ in replies] == ["completed"] * 2
        bad = sharded(tmp_path / f"bad-{number}", {"kind": "raises_in_training"}, epochs=1)
        errors = pair.run(fit, bad, few_digits)
        assert [str(error) for error in errors] == ["this network cannot be trained"] * 2
        pair.reopen()


def test_weight_without_gradient_does_not_stop_two_ranks(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    replies = pair.run(fit, sharded(tmp_path, {"kind": "unused_weight"}), few_digits)
    assert [result.outcome for result, _ in replies] == ["completed"] * 2


def test_pictures_of_cut_weights_do_not_stop_two_ranks(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    task = sharded(tmp_path, epochs=1).model_copy(update={"tensorboard": "board"})
    replies = pair.run(fit, task, few_digits)
    assert [result.outcome for result, _ in replies] == ["completed"] * 2
    (file,) = (tmp_path / "board").iterdir()
    assert b"histograms show the part of each weight that rank 0 holds" in file.read_bytes()


def test_weight_without_dimension_is_refused(pair: RankPool, tmp_path: Path) -> None:
    data = two_classes(train=[0] * 6, validation=[0])
    errors = pair.run(fit, sharded(tmp_path, {"kind": "unit_gradient"}, epochs=1), data)
    assert [type(error) for error in errors] == [UserCodeError] * 2
    assert "fsdp cannot cut weights without a dimension: weight" in str(errors[0])


@pytest.fixture(scope="module")
def written(pair: RankPool, few_digits: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written")
    pair.run(fit, sharded(root, epochs=1), few_digits)
    return root / "trial-0"


@pytest.fixture
def checkpoint(written: Path, tmp_path: Path) -> Path:
    """A checkpoint with parts of its own."""
    shutil.copytree(written, tmp_path / "trial-0")
    return tmp_path / "trial-0" / "epoch-0001.pt"


def test_checkpoint_has_one_part_for_each_rank_and_can_be_removed(checkpoint: Path) -> None:
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["epoch-0001.pt", "epoch-0001.pt.parts"]
    parts = Path(f"{checkpoint}{PARTS}")
    assert sorted(path.name for path in parts.iterdir()) == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    assert str(checkpoint.parent).encode() not in (parts / ".metadata").read_bytes()  # it may be moved
    assert read_checkpoint(checkpoint).network["0.weight"].shape == (4, 1, 3, 3)
    remove_checkpoint(checkpoint)
    remove_checkpoint(checkpoint)
    assert list(checkpoint.parent.iterdir()) == []


def test_ledger_finds_a_checkpoint_whole_and_removes_all_of_it(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    (_, (report,)), _ = pair.run(fit, sharded(tmp_path, epochs=1), few_digits)
    file, files = report.checkpoint, CheckpointFiles(str(tmp_path))
    assert file is not None
    record = CheckpointRecord(
        path=file.path, epoch=file.epoch, attempt=1, digest=file.digest, size_bytes=file.size_bytes
    )
    assert files.fault(record) is None
    files.remove(record.path)
    assert list(tmp_path.joinpath("trial-0").iterdir()) == []


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp", "__1_0.distcp"])
def test_damaged_or_missing_part_is_found(checkpoint: Path, name: str) -> None:
    part = Path(f"{checkpoint}{PARTS}", name)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match=rf"part {name} of checkpoint .* is cut short or altered"):
        read_checkpoint(checkpoint)
    part.unlink()
    with pytest.raises(DamagedCheckpointError, match=rf"part {name} of checkpoint .* is missing"):
        read_checkpoint(checkpoint)


def test_nothing_that_parts_name_is_run(checkpoint: Path, tmp_path: Path) -> None:
    from trainers.sharded_checkpoint import read_shards

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "run",))

    parts = Path(f"{checkpoint}{PARTS}")
    (parts / ".metadata").write_bytes(pickle.dumps(Evil()))
    known = {path.name: facts_of(path) for path in parts.iterdir()}
    with pytest.raises(DamagedCheckpointError, match=r"\.metadata names pathlib"):
        read_shards({"0": torch.empty(1)}, parts, known)
    assert not (tmp_path / "run").exists()


def test_epoch_that_is_written_again_by_fewer_ranks_keeps_no_old_part(
    pair: RankPool, few_digits: ImageData, checkpoint: Path
) -> None:
    stale = Path(f"{checkpoint}{PARTS}", "__2_0.distcp")
    stale.write_bytes(b"of a third rank")
    pair.run(fit, sharded(checkpoint.parent.parent, epochs=1), few_digits)
    assert not stale.exists()
    assert read_checkpoint(checkpoint).epoch == 1


def test_parts_lie_in_a_store_too(pair: RankPool, few_digits: ImageData, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 2}
    root = f"local://{tmp_path}/store"
    pair.run(fit, sharded(root, **settings), few_digits, {1: Decision.PAUSE})
    (result, _), _ = pair.run(fit, sharded(root, resume_from="trial-0/epoch-0001.pt", **settings), few_digits)
    assert result.outcome == "completed"
    pair.run(fit, sharded(tmp_path / "folder", **settings), few_digits)
    store, folder = read_checkpoint(f"{root}/trial-0/epoch-0002.pt"), last_checkpoint(tmp_path / "folder")
    assert_same_tensors(dict(store.network), dict(folder.network))
    for epoch in (1, 2):
        remove_checkpoint(f"{root}/trial-0/epoch-000{epoch}.pt")
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


def fit_on_a_full_disk(ranks: Ranks, task: TrainTask, data: ImageData) -> str:
    from trainers.sharded_checkpoint import _Writer

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    patch = pytest.MonkeyPatch()
    if ranks.rank == 1:
        patch.setattr(_Writer.__base__, "write_data", full)
    try:
        fit(ranks, task, data)
    except (OSError, PeerFailedError) as error:
        return f"{type(error).__name__} {full_disk(error) is not None} {error}"
    finally:
        patch.undo()
    return "done"


def test_rank_that_cannot_write_its_part_ends_all_and_leaves_nothing(
    pair: RankPool, few_digits: ImageData, tmp_path: Path
) -> None:
    first, second = pair.run(fit_on_a_full_disk, sharded(tmp_path, epochs=1), few_digits)
    assert second.startswith("OSError True ")
    assert first.startswith("PeerFailedError") and "rank 1: OSError: [Errno 28] No space left" in first
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_units_are_blocks_with_enough_weights_of_their_own() -> None:
    inner, small = nn.Sequential(nn.Linear(10, 20), nn.Linear(20, 10), nn.ReLU()), nn.ModuleList([nn.Linear(3, 3)])
    network = nn.Sequential(nn.Linear(10, 10), inner, small, nn.Linear(10, 2))
    assert units(network, 150) == [inner[0], inner[1]]
    assert units(network, 100) == [inner[0], inner[1], network[0]]
    assert units(network, 400) == [inner]
    assert set(units(network, 1)) == {network[0], inner[0], inner[1], small[0], network[3]}


def test_unit_that_shares_a_weight_with_others_is_left_to_the_whole() -> None:
    embedding, layer = nn.Embedding(10, 10), nn.Linear(10, 10, bias=False)
    network = nn.ModuleDict({"embedding": embedding, "layers": nn.ModuleList([layer])})
    assert units(network, 50) == [layer]
    layer.weight = embedding.weight
    assert units(network, 50) == []
