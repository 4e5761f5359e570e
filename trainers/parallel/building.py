"""Which way of sharing a network a configuration asks for."""

from torch import nn

from trainers.config import TrainConfig
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.parallel.base import Parallel
from trainers.parallel.replicas import Replicas
from trainers.precision import MixedPrecision
from trainers.problem import Batch
from trainers.sharing_choice import form_mistakes

__all__ = ["build_parallel"]


def build_parallel(
    network: nn.Module, training: TrainConfig, ranks: Ranks, precision: MixedPrecision, example: Batch
) -> Parallel:
    """Share a network among the ranks; on a single rank there is nothing to share.

    Args:
        network: with equal weights on every rank; on this rank's device where each rank holds the whole of it,
            otherwise on the CPU, from where each takes its part.
        training: says how.
        ranks: the ranks.
        precision: in which forward passes compute.
        example: one training item.

    Raises:
        UserCodeError: the network cannot be shared so, or the gradients cannot be compressed there, or batch
            normalisation cannot be synchronised.
    """
    if ranks.world_size > 1 and (mistakes := form_mistakes(training)):
        raise UserCodeError("; ".join(mistakes))
    if training.parallel == "pipeline" and ranks.world_size > 1:
        from trainers.parallel.pipeline import Pipeline  # loads torch's pipelines

        return Pipeline(network, ranks, precision, example, training.micro_batch(ranks.world_size))
    if training.parallel == "fsdp" and ranks.world_size > 1:
        from trainers.parallel.fsdp import FullySharded  # takes half a second to load

        return FullySharded(network, ranks, precision, example, training.micro_batch(1), training.batch_norm)
    return Replicas(
        network,
        ranks,
        precision,
        example,
        training.micro_batch(1),
        training.batch_norm,
        training.gradient_compression,
    )
