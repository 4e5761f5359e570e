import pytest
import torch
from torch import nn

from search_spaces.cost import count_multiply_adds
from search_spaces.stochastic_depth import StochasticDepth, drop_branches, linear_rule


class Block(nn.Module):
    """A residual block."""

    def __init__(self, drop: float) -> None:
        super().__init__()
        self.branch, self.depth = nn.Linear(3, 3), StochasticDepth(drop)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = x + self.depth(self.branch(x))
        return result


def test_whole_items_are_left_out_and_the_mean_stays() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        kept = drop_branches(torch.ones(4000, 2, 3), 0.25)
    assert sorted(set(kept.view(-1).tolist())) == pytest.approx([0.0, 1.0 / 0.75])
    assert torch.equal(kept.amin(dim=(1, 2)), kept.amax(dim=(1, 2)))
    assert float(kept.mean()) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_branch_in_a_low_format_keeps_its_format_and_its_mean(kind: torch.dtype) -> None:
    branch = torch.linspace(1.0, 2.0, 501).repeat(64, 1).to(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        kept = drop_branches(branch, 0.1)
    assert kept.dtype == kind
    staying = kept[(kept != 0).all(dim=1)]
    assert float((staying[0].double() / branch[0].double()).mean()) == pytest.approx(1.0 / 0.9, rel=2e-4)


def test_evaluation_and_likelihood_0_change_nothing_and_draw_nothing() -> None:
    x, before = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.get_rng_state()
    assert StochasticDepth(0.9).eval()(x) is x and StochasticDepth(0.0).train()(x) is x
    assert torch.equal(before, torch.get_rng_state())


def test_residual_block_hands_dropped_items_on_and_gives_the_branch_no_gradient() -> None:
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    block = Block(0.5).train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        answers = block(x)
    dropped = (answers == x).all(dim=1)
    assert 10 < int(dropped.sum()) < 54
    gradient = torch.autograd.grad(answers[dropped].sum(), block.branch.weight)[0]
    assert not bool(gradient.any())


def test_cost_can_be_counted_without_values() -> None:
    assert count_multiply_adds(Block(0.5), (3,)) == 9


def test_likelihood_rises_linearly_to_the_last_block() -> None:
    assert linear_rule(4, 0.5) == [0.125, 0.25, 0.375, 0.5]
    assert linear_rule(1, 0.2) == [0.2]


@pytest.mark.parametrize("drop", [-0.1, 1.0, float("nan")])
def test_likelihood_outside_its_range_is_refused(drop: float) -> None:
    with pytest.raises(ValueError, match=r"drop=.* is outside \[0, 1\)"):
        StochasticDepth(drop)
