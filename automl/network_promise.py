"""How promising networks look before any is trained, for samplers that begin with the best of many."""

from collections.abc import Callable
from typing import Any

from automl.spec import SearchSpec
from search_spaces.configuration import Configuration
from search_spaces.errors import InfeasibleArchitectureError

__all__ = ["BATCH_ITEMS", "promise_of"]

BATCH_ITEMS = 64
"""Training items that networks are scored on; naswot tells more items apart the more ReLUs there are."""


def promise_of(spec: SearchSpec, data: Any, name: str) -> Callable[[Configuration], float]:
    """Return what gives the score of a configuration's network, minus infinity where there is none.

    Args:
        spec: of the search; its trainer builds networks.
        data: what the trainer has loaded.
        name: of the score.
    """
    from trainers.network_scores import network_scores, scored_batch

    problem = spec.make_trainer().drafts(spec.space, data).problem
    batch = scored_batch(problem, BATCH_ITEMS, spec.seed)

    def promise(configuration: Configuration) -> float:
        try:
            return network_scores(spec.space, configuration, problem, batch, [name], seed=spec.seed)[name].value
        except InfeasibleArchitectureError:
            return float("-inf")

    return promise
