"""Lets the network of a task begin with what fits of a parent's checkpoint; what fits is known elsewhere."""

import logging

from torch import Tensor, nn

from search_spaces.inheritance import Inheritance, inherit
from trainers.checkpoint import read_checkpoint
from trainers.config import TrainTask
from trainers.errors import BadDataError, DamagedCheckpointError
from trainers.networks import brought_to
from trainers.problem import Problem

__all__ = ["inherit_weights"]

logger = logging.getLogger(__name__)


def inherit_weights(
    task: TrainTask, network: nn.Module, problem: Problem, inputs: tuple[Tensor, ...]
) -> Inheritance | None:
    """Give a fresh network the weights of the checkpoint that a task names; None: there is nothing to inherit.

    Every rank reads the file itself, so that all of them hold the same weights. A training that goes on from a
    checkpoint of its own takes nothing.

    Args:
        task: names the checkpoint.
        network: whole, with weights; is changed in place.
        problem: what it learns.
        inputs: arguments of the network for an item or two, with which a widened one is tried.

    Raises:
        DamagedCheckpointError: the checkpoint is missing or damaged.
        BadDataError: the parent has learned from other items or splits, so that it may know the answers of ours.
        ArtifactStoreError: the store of a URL does not give it.
    """
    if task.inherit is None or task.resume_from is not None:
        return None
    try:
        parent = read_checkpoint(f"{task.artifacts_root}/{task.inherit}")
    except DamagedCheckpointError as error:
        raise DamagedCheckpointError(f"weights to inherit: {error}") from error
    theirs = parent.blueprint.get("fingerprint")
    if theirs != problem.fingerprint:
        raise BadDataError(
            f"checkpoint {task.inherit} has learned from other data or other splits (fingerprint {theirs}, now "
            f"{problem.fingerprint}); its weights are not inherited"
        )
    found = inherit(network, parent.network, brought_to(network, inputs))
    logger.info(
        "weights inherited checkpoint=%s share=%.3f taken=%d widened=%d identities=%d fresh=%d",
        task.inherit,
        found.share,
        len(found.taken),
        len(found.widened),
        len(found.identities),
        len(found.fresh),
    )
    logger.debug("weights inherited checkpoint=%s fresh=%s", task.inherit, ",".join(found.fresh))
    return found
