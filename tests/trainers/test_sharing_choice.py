"""Settings that need ranks are refused without them, and so are those that a form of sharing cannot use."""

import sys
from pathlib import Path
from typing import Any

import pytest

from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.space import SearchSpace
from tests.trainers.custom.own import write
from trainers.config import Parallelism, TrainConfig
from trainers.custom.references import script_reference
from trainers.sharing_choice import form_mistakes, lonely_mistakes
from trainers.tasks import load_trainer
from trainers.training_choice import check_sharing_offers


@pytest.mark.parametrize(
    "ranks, settings, words",
    [
        (
            1,
            {"parallel": "fsdp"},
            "fsdp shares a network among ranks, and here one trains alone; give at least two (-r",
        ),
        (1, {"parallel": "pipeline"}, "pipeline shares"),
        (1, {"parallel": "ddp"}, ""),
        (2, {"parallel": "fsdp"}, ""),
        (1, {"gradient_compression": "bf16"}, "gradient_compression=bf16 is for where ranks exchange gradients"),
        (1, {"batch_norm": "synchronised"}, "batch_norm=synchronised is for where ranks share"),
        (2, {"gradient_compression": "bf16", "batch_norm": "synchronised"}, ""),
        (1, {"batch_size": 64, "accumulate": 64}, ""),
        (1, {"batch_size": 64, "accumulate": 500}, "accumulate=500 cuts a batch of 64 items into more parts"),
        (2, {"batch_size": 64, "accumulate": 33}, "give 32 at most on each of 2 ranks"),
    ],
)
def test_setting_without_effect_on_so_many_ranks_is_told(ranks: int, settings: dict[str, Any], words: str) -> None:
    found = lonely_mistakes(TrainConfig(**settings), settings, ranks, "-r 2")
    assert len(found) == (1 if words else 0)
    assert words in "".join(found)


def test_only_what_was_given_is_a_mistake() -> None:
    training = TrainConfig(gradient_compression="bf16", batch_norm="synchronised", batch_size=4, accumulate=9)
    assert lonely_mistakes(training, {}, 1, "-r 2") == []


def test_form_of_sharing_tells_what_it_cannot_use() -> None:
    assert form_mistakes(TrainConfig(gradient_compression="bf16", batch_norm="synchronised")) == []
    assert len(form_mistakes(TrainConfig(parallel="fsdp", gradient_compression="bf16"))) == 1
    both = TrainConfig(parallel="pipeline", gradient_compression="bf16", batch_norm="synchronised")
    assert len(form_mistakes(both)) == 2


def offered(constants: dict[str, Any], parallel: Parallelism, ranks: int, **space: Parameter) -> str:
    searched = SearchSpace("mine", space or {"weight_decay": Float(low=0.0, high=0.1)})
    try:
        trainer = load_trainer("image_classification")
        check_sharing_offers(constants, parallel, searched, trainer, ranks, "--procs-per-trial 2")
    except ValueError as error:
        return str(error)
    return ""


def test_search_offers_nothing_that_its_ranks_cannot_use() -> None:
    compression = Categorical(choices=("none", "bf16"))
    assert offered({}, "auto", 1, gradient_compression=compression) == ""
    assert offered({}, "fsdp", 2, gradient_compression=compression).startswith(
        "space 'mine': gradient_compression=bf16"
    )
    assert "with parallel=fsdp" in offered({"gradient_compression": "bf16"}, "fsdp", 2)
    sizes = Integer(low=16, high=128)
    assert offered({"accumulate": 128}, "auto", 1, batch_size=sizes) == ""
    assert "a batch of 128 items" in offered({"accumulate": 129}, "auto", 1, batch_size=sizes)
    assert "(--procs-per-trial 2)" in offered({}, "pipeline", 1)


def test_search_of_a_batch_size_in_steps_knows_the_largest() -> None:
    steps = Float(low=16.0, high=128.0, step=16.0)
    assert offered({"accumulate": 128}, "auto", 1, batch_size=steps) == ""
    assert "a batch of 128 items" in offered({"accumulate": 129}, "auto", 1, batch_size=steps)


@pytest.mark.parametrize(
    "sizes", [Categorical(choices=("small", "big")), Categorical(choices=(0, -1)), Float(low=0.1, high=0.9)]
)
def test_parameters_of_own_code_mean_what_it_likes(tmp_path: Path, sizes: Parameter) -> None:
    own = """
        from search_spaces import Float, SearchSpace
        SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)})
        METRICS = {"gain": "maximize"}
        def fit(context):
            context.report({"gain": 1.0})
        """
    space = SearchSpace("own", {"batch_size": sizes, "batch_norm": Categorical(choices=("synchronised", "frozen"))})
    for reference in (str(write(tmp_path, "own.py", own)), script_reference(f"{sys.executable} -V")):
        for ranks in (1, 2):
            check_sharing_offers({"accumulate": 500}, "auto", space, load_trainer(reference), ranks, "-r 2")
