"""Which way of sharing a network a configuration asks for."""

from torch import nn

from trainers.config import TrainConfig
from trainers.distributed import Ranks
from trainers.parallel.base import Parallel
from trainers.parallel.replicas import Replicas
from trainers.precision import MixedPrecision
from trainers.problem import Batch

__all__ = ["build_parallel"]


def build_parallel(
    network: nn.Module, training: TrainConfig, ranks: Ranks, precision: MixedPrecision, example: Batch
) -> Parallel:
    """Share a network among the ranks; on a single rank there is nothing to share.

    Args:
        network: on this rank's device, with equal weights on every rank.
        training: says how.
        ranks: the ranks.
        precision: in which forward passes compute.
        example: one training item.
    """
    return Replicas(network, ranks, precision, example)
