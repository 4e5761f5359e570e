"""Blocks and repeats are ordinary parameters that keep what they depend on together."""

import numpy as np
import pytest

from search_spaces import Categorical, Float, Integer, InvalidParameterError, SearchSpace
from search_spaces.blocks import MOST_ITEMS, Block, block, repeat


def test_block_prefixes_names_and_what_conditions_and_bounds_speak_of() -> None:
    inside: Block = {
        "pool": Categorical(choices=("max", "none")),
        "size": Integer(low=2, high=3, when={"pool": "max"}),
        "width": Integer(low=8, high=64, at_most="4 * size + 1e1 * outer"),
        "epochs": 10,
    }
    found = block("stem", inside, role="architecture", when={"kind": ("a", "b")})
    assert list(found) == ["stem_pool", "stem_size", "stem_width", "stem_epochs"]
    assert {parameter.role for parameter in found.values()} == {"architecture"}
    assert found["stem_size"].condition == {"stem_pool": ("max",), "kind": ("a", "b")}
    width = found["stem_width"]
    assert isinstance(width, Integer)
    assert width.at_most == "4 * stem_size + 1e1 * outer"
    assert found["stem_epochs"].sample(np.random.default_rng(0)) == 10


def test_block_keeps_lists_behind_labels_and_notes() -> None:
    found = block("stem", {"kernel": Categorical(choices=((3, 3), (3, 5))), "rate": Float(low=0, high=1, step=0.3)})
    space = SearchSpace("s", found)
    assert space.plain({"stem_kernel": "3x5"}) == {"stem_kernel": (3, 5)}
    assert space.notes == ("stem_rate: high=1.0 is not on the grid; the values are 0, 0.3, 0.6, 0.9",)


def test_block_whose_parameter_could_never_be_there_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="op has no value with which the condition holds"):
        block("b", {"kernel": Integer(low=1, high=3, when={"op": "conv"})}, when={"op": "pool"})


def test_repeat_has_as_many_items_as_its_count_says() -> None:
    widths = {"width": Integer(low=1, high=2)}
    space = SearchSpace("s", repeat("layers", Integer(low=0, high=3), widths, item="layer"))
    assert space.names() == ("layers", "layer_1_width", "layer_2_width", "layer_3_width")
    assert space.size() == 1 + 2 + 4 + 8
    for configuration in space.every():
        assert len(configuration) == 1 + int(str(configuration["layers"]))


def test_repeat_that_is_always_there_has_no_condition() -> None:
    found = repeat("layers", Integer(low=2, high=3), {"width": Integer(low=1, high=2)})
    assert [str(p.condition) for p in found.values()] == ["", "", "", "layers is 3"]


def test_repeats_nest_and_follow_a_count_that_is_not_always_there() -> None:
    cell: Block = {"op": Categorical(choices=("conv", "skip")), "kernel": Integer(low=1, high=2, when={"op": "conv"})}
    stage = repeat("cells", Integer(low=1, high=2), cell, item="cell")
    space = SearchSpace("s", repeat("stages", Categorical(choices=(1, 3)), stage, item="stage", role="architecture"))
    assert "stage_3_cell_2_kernel" in space.names("architecture")
    cells = 2 + 1  # a convolution with one of two kernels, or a skip
    stages = cells + cells**2
    assert space.size() == stages + stages**3
    for seed in range(20):
        drawn = space.sample(np.random.default_rng(seed))
        assert space.validate(drawn) == drawn
        assert ("stage_2_cells" in drawn) == (drawn["stages"] == 3)


@pytest.mark.parametrize(
    "count, words",
    [
        (Integer(low=-1, high=2), "layers may be -1"),
        (Integer(low=1, high=10**9), f"goes to {10**9}; a block is there at most {MOST_ITEMS} times"),
        (Categorical(choices=(1, "two", 2.5)), "layers may be 'two', 2.5"),
    ],
)
def test_repeat_of_what_is_no_count_is_refused(count: Integer | Categorical, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        repeat("layers", count, {"width": 8})
