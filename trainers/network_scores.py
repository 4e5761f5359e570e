"""Zero-cost scores of a space's networks on some data: each is built and looked at, and none is trained."""

from collections.abc import Mapping, Sequence

import torch

from search_spaces.configuration import JsonScalar
from search_spaces.scores import Score, explained_score
from trainers.drafts import refused_in_words
from trainers.networks import build_network
from trainers.problem import Batch, Problem

__all__ = ["network_scores", "scored_batch"]


def scored_batch(problem: Problem, items: int, seed: int) -> Batch:
    """Return random training items, on which all networks should be scored.

    Args:
        problem: the data.
        items: how many; all there are where they are fewer.
        seed: chooses them.
    """
    order = torch.randperm(problem.training_items, generator=torch.Generator().manual_seed(seed))
    return next(iter(problem.training_batches(1, order, [slice(0, min(items, problem.training_items))])))


def network_scores(
    space: str,
    configuration: Mapping[str, JsonScalar],
    problem: Problem,
    batch: Batch,
    names: Sequence[str],
    *,
    seed: int,
) -> Mapping[str, Score]:
    """Return the scores of a configuration's network by their names; torch's generators stay what they are.

    Args:
        space: reference of the search space that builds it.
        configuration: valid there.
        problem: the data, on the CPU.
        batch: some items of them.
        names: of scores.
        seed: of the network's weights.

    Raises:
        InfeasibleArchitectureError: there is no such network for these data.
        UnknownScoreError: there is no such score.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = refused_in_words(lambda: build_network(space, configuration, problem))
    return {name: explained_score(name, network, batch.inputs, batch.targets) for name in names}
