"""Networks that are too large are refused before training: `--max-params`."""

import logging
from collections.abc import Iterable
from typing import Any

from automl.spec import SearchSpec
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InfeasibleArchitectureError
from studies.trial import Trial, TrialState
from trainers.replaced_parameters import complete_configuration

__all__ = ["SizeLimit"]

_log = logging.getLogger(__name__)


class SizeLimit:
    """Counts the weights of a configuration's network, each network once, without giving it any memory.

    Args:
        spec: its trainer builds networks, and `max_params` is given.
        data: what the trainer has loaded; the networks' inputs and outputs depend on it.
    """

    def __init__(self, spec: SearchSpec, data: Any) -> None:
        assert spec.max_params is not None
        self.most = spec.max_params
        self._spec = spec
        self._trainer = spec.make_trainer()
        self._data = data
        training = set(spec.search_space.names("training"))
        self._names = [name for name in spec.search_space.names() if name not in training]
        self._counts: dict[tuple[JsonScalar, ...], int | None] = {}

    def refusal(self, configuration: Configuration) -> str | None:
        """Why a configuration is not trained; None: its network is small enough."""
        count = self._count(configuration)
        if count is None or count <= self.most:
            return None
        return f"its network has {count:,} weights, more than {self.most:,} (--max-params)"

    def advice(self, trials: Iterable[Trial]) -> str:
        """What to say when nothing was small enough: the smallest network that was found; empty when something was.

        Args:
            trials: the whole study.
        """
        own = [trial for trial in trials if not trial.is_imported and set(trial.configuration) >= set(self._names)]
        if any(trial.state is not TrialState.INFEASIBLE for trial in own):
            return ""
        known = (self._count(Configuration(trial.configuration)) for trial in own)
        counts = [count for count in known if count is not None and count > self.most]
        if not counts:
            return ""
        return f"; the smallest network found has {min(counts):,} weights, give --max-params {min(counts)} or more"

    def _count(self, configuration: Configuration) -> int | None:
        """The number of weights; None where no network can be built, which is left to the training to tell."""
        key = tuple(configuration[name] for name in self._names)
        if key not in self._counts:
            try:
                whole = complete_configuration(configuration, self._spec.set, self._spec.whole_space)
                self._counts[key] = self._trainer.count_weights(self._spec.space, whole, self._data)
            except InfeasibleArchitectureError:
                self._counts[key] = None
            except Exception as error:  # a person's code may raise anything, and one trial never ends a search
                _log.warning("the weights of %s are not counted: %s: %s", configuration, type(error).__name__, error)
                self._counts[key] = None
        return self._counts[key]
