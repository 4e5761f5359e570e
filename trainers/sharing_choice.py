"""Which ways to share a training among ranks fit its settings; loads no torch, so that a plan can be refused early."""

from collections.abc import Collection

from trainers.config import TrainConfig

__all__ = ["form_mistakes", "holds_a_part", "lonely_mistakes"]

_OF_SEVERAL_RANKS = {
    "gradient_compression": ("none", "ranks exchange gradients"),
    "batch_norm": ("local", "ranks share the items of a batch"),
}
"""Settings that need ranks: the value without effect, and what they are for."""


def holds_a_part(training: TrainConfig, ranks: int) -> bool:
    """Whether each rank holds a part of the network only, so that the whole need not fit its device."""
    return ranks > 1 and training.parallel in ("fsdp", "pipeline")


def form_mistakes(training: TrainConfig) -> list[str]:
    """Return what several ranks cannot do in the chosen form of sharing, one sentence each; empty: all fits."""
    parallel, mistakes = training.parallel, []
    if training.gradient_compression != "none" and parallel in ("fsdp", "pipeline"):
        mistakes.append(
            f"gradient_compression={training.gradient_compression} is for parallel=ddp, where whole gradients are "
            f"exchanged; with parallel={parallel} leave it at none"
        )
    if training.batch_norm == "synchronised" and parallel == "pipeline":
        mistakes.append(
            "batch_norm=synchronised is for parallel=ddp and fsdp, whose ranks share the items of a batch; with "
            "parallel=pipeline each layer is on one rank, and sees micro-batches one by one: leave it at local"
        )
    return mistakes


def lonely_mistakes(training: TrainConfig, given: Collection[str], ranks: int, more_ranks: str) -> list[str]:
    """Return what has no effect with so many ranks, one sentence each; empty: nothing.

    Args:
        training: the settings; where the batch size is searched, with the largest one.
        given: the settings that were asked for; what is searched may be without effect in some trials.
        ranks: how many train together.
        more_ranks: how two are asked for, such as `--ranks 2`.
    """
    mistakes = []
    if ranks == 1 and training.parallel in ("fsdp", "pipeline"):
        mistakes.append(
            f"{training.parallel} shares a network among ranks, and here one trains alone; give at least two "
            f"({more_ranks}), or leave it out"
        )
    for name, (usual, purpose) in _OF_SEVERAL_RANKS.items():
        value = getattr(training, name)
        if ranks == 1 and name in given and value != usual:
            mistakes.append(
                f"{name}={value} is for where {purpose}, and here one trains alone; give at least two ({more_ranks}), "
                "or leave it out"
            )
    most = -(-training.batch_size // ranks)
    if "accumulate" in given and training.accumulate > most:
        share = "" if ranks == 1 else f" on each of {ranks} ranks"
        mistakes.append(
            f"accumulate={training.accumulate} cuts a batch of {training.batch_size} items into more parts than there "
            f"are; give {most} at most{share}, or a larger batch_size"
        )
    return mistakes
