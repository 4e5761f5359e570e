"""Two real ranks: no weight of a cell may wait for a gradient that never comes."""

import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from search_spaces import catalog
from tests.search_spaces.cells import cell, configuration

RANKS = 2
STEPS = 4


class _WithDeadBranch(nn.Module):
    """What a cell would be if its dead edges were built."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.dead = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x_NC: Tensor) -> Tensor:
        logits_NK: Tensor = self.used(x_NC)
        return logits_NK


def test_cell_with_dead_edges_trains_on_two_ranks_without_a_search_for_unused_weights(tmp_path: Path) -> None:
    spawn(_rank, args=(str(tmp_path),), nprocs=RANKS)  # type: ignore[no-untyped-call]  # torch gives no types
    first, second = (json.loads((tmp_path / f"rank_{rank}.json").read_text()) for rank in range(RANKS))
    assert first["steps"] == second["steps"] == STEPS
    assert first["checksum"] == second["checksum"]
    assert first["checksum"] != first["checksum_before"]
    # The same steps with a dead branch fail, so the test above can fail.
    assert "Expected to have finished reduction" in first["dead_branch"]
    assert "Expected to have finished reduction" in second["dead_branch"]


def _rank(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    # Two convolutions lead to node 2, and nothing leaves it.
    values = configuration(cell(e01="conv3x3", e02="skip", e12="conv3x3", e03="skip"), channels=8)
    model = catalog.load("nas_small").build_model(values, (1, 8, 8), 10)
    before = _checksum(model)
    steps = _train(model, (1, 8, 8), rank)
    result = {
        "steps": steps,
        "checksum_before": before,
        "checksum": _checksum(model),
        "dead_branch": _failure_of_a_dead_branch(rank),
    }
    Path(folder, f"rank_{rank}.json").write_text(json.dumps(result))
    dist.destroy_process_group()


def _failure_of_a_dead_branch(rank: int) -> str:
    # Not pytest.raises: what it keeps would hold the parallel model until after its process group is gone.
    try:
        _train(_WithDeadBranch(), (4,), rank)
    except RuntimeError as error:
        return str(error)
    return "no failure"


def _train(model: nn.Module, input_shape: tuple[int, ...], rank: int) -> int:
    parallel = DistributedDataParallel(model)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        logits_NK = parallel(torch.rand(4, *input_shape, generator=generator))
        model.zero_grad()
        logits_NK.square().mean().backward()
        with torch.no_grad():
            for weight in model.parameters():
                if weight.grad is not None:
                    weight.sub_(weight.grad, alpha=0.1)
    return STEPS


def _checksum(model: nn.Module) -> float:
    return sum(weight.double().abs().sum().item() for weight in model.parameters())
