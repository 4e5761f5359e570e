"""What a search would train, tried before anything is started, as far as only the data and networks can tell."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from automl.spec import SearchSpec
from search_spaces.configuration import Configuration, JsonScalar
from trainers.config import TrainConfig
from trainers.settings import extremes, full_configuration
from trainers.trainer import Trainer

__all__ = ["plan_mistakes"]

_DRAWN = 8
"""Configurations that are tried beside the defaults: in a space of many forms some may be possible and others not."""


def plan_mistakes(spec: SearchSpec, trainer: Trainer, data: Any) -> list[str]:
    """Return what of a search no trial could do, one sentence each; empty: nothing.

    Args:
        spec: the search.
        trainer: its trainer.
        data: what the trainer has loaded.
    """
    found: list[str] = []
    networks = _networks(spec, trainer) if spec.parallel == "pipeline" and spec.procs_per_trial > 1 else []
    for training in _trainings(spec, trainer):
        found += trainer.mistakes_once_loaded(training, spec.space, networks, data, spec.procs_per_trial)
    return list(dict.fromkeys(found))


def _trainings(spec: SearchSpec, trainer: Trainer) -> Iterator[TrainConfig]:
    """Yield the constants as settings, once for each teacher that is offered."""
    known: dict[str, JsonScalar] = {name: v for name, v in spec.set.items() if name in trainer.hyperparameters}
    known["parallel"] = spec.parallel
    parameters = spec.search_space.parameters
    offered = [known.get("teacher")] if "teacher" not in parameters else extremes(parameters["teacher"])
    for teacher in offered:
        yield TrainConfig.model_validate({**known, "teacher": teacher})


def _networks(spec: SearchSpec, trainer: Trainer) -> list[Mapping[str, JsonScalar]]:
    """Return the space's defaults and some configurations that it allows."""
    space, rng = spec.search_space, np.random.default_rng(0)
    drawn = [*([space.defaults] if space.defaults is not None else []), *(space.sample(rng) for _ in range(_DRAWN))]
    allowed = [Configuration(one) for one in drawn if space.refusal(one) is None]
    return [full_configuration(spec.set, one, spec.whole_space, trainer) for one in allowed]
