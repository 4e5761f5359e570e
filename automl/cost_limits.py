"""Networks that cannot be built for the data, or cost too much, are refused before training: `--max-params` and others.

What a network costs is told by the trainer's drafts. Each network is built and counted once, also where the space
describes it by several configurations.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from automl.cost_kinds import COST_KINDS, CostKind
from automl.spec import SearchSpec
from automl.tasks import training_of
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InfeasibleArchitectureError
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from studies.trial import Trial, TrialState
from trainers.replaced_parameters import complete_configuration

if TYPE_CHECKING:
    from trainers.drafts import Drafts

__all__ = ["CostLimits"]

_log = logging.getLogger(__name__)

MOST_UNBUILDABLE = 10
"""Networks that fail to be built before one could be, after which it is taken for a fault of the code: then the
training tells it, with the place."""

_Cost: TypeAlias = float | str | None
"""A cost; or why there is no such network; or None: it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """The most that a network may cost of one kind.

    Attributes:
        kind: of cost.
        most: inclusive.
        measure: tells the cost of a configuration; None: it is not known.
    """

    kind: CostKind
    most: float
    measure: Callable[[Configuration], float | None]


class CostLimits:
    """Tries each network with one item, a large one without giving it any memory, and compares what it costs.

    Args:
        spec: its trainer builds networks; holds the limits.
        data: what the trainer has loaded; the networks' inputs and outputs depend on it.
    """

    def __init__(self, spec: SearchSpec, data: Any) -> None:
        self._spec = spec
        self._data = data
        self._training = frozenset(spec.search_space.names("training"))
        self._limits = self._limits_of(spec)
        self._known: dict[tuple[str, Configuration], _Cost] = {}
        self._unbuildable = 0
        self._has_built = False

    def refusal(self, configuration: Configuration) -> str | None:
        """Why a configuration is not trained; None: its network can be built, and costs little enough."""
        for limit in self._limits:
            cost = self._cost(limit, configuration)
            if isinstance(cost, str):
                return cost
            if cost is not None and cost > limit.most:
                most = f"{limit.most:,.{limit.kind.digits}f}"
                return f"its network {limit.kind.in_words(cost)}, more than {most} ({limit.kind.flag})"
        return None

    def advice(self, trials: Iterable[Trial]) -> str:
        """What to say when nothing could be trained: the smallest network that was found; empty when something could.

        Args:
            trials: the whole study.
        """
        space = self._spec.search_space
        own = [trial for trial in trials if not trial.is_imported and not space.lacks(trial.configuration)]
        if any(trial.state is not TrialState.INFEASIBLE for trial in own):
            return ""
        configurations = [Configuration(trial.configuration) for trial in own]
        reasons = [reason for each in configurations[-1:] if (reason := self.refusal(each)) is not None]
        found = [text for limit in self._limits if (text := self._smallest(limit, configurations)) is not None]
        return "".join(f"; {text}" for text in found or [f"the last one: {reason}" for reason in reasons])

    def _smallest(self, limit: _Limit, configurations: Sequence[Configuration]) -> str | None:
        """The least cost of networks of which none is within a limit."""
        if math.isinf(limit.most):
            return None
        # Those that another process has refused are counted anew, but it would take too long to time them.
        known = [
            self._cost(limit, each) if limit.kind.is_quick else self._known.get(self._key(limit, each))
            for each in configurations
        ]
        costs = [cost for cost in known if isinstance(cost, float)]
        if not costs or min(costs) <= limit.most:
            return None
        kind = limit.kind
        least = f"{kind.rounded_up(min(costs)):.{kind.digits}f}"
        return f"the smallest network found {kind.in_words(min(costs))}, give {kind.flag} {least} or more"

    def _cost(self, limit: _Limit, configuration: Configuration) -> _Cost:
        key = self._key(limit, configuration)
        if key not in self._known:
            self._known[key] = self._measured(limit, configuration)
        return self._known[key]

    def _key(self, limit: _Limit, configuration: Configuration) -> tuple[str, Configuration]:
        """The kind of cost, and what it depends on: equal for all configurations of one network."""
        try:
            found = self._spec.search_space.canonical(configuration)
        except OWN_CODE_ERRORS:  # a trial of an older version of the space; or a fault of its own, which a search tells
            found = configuration
        left_out = frozenset[str]() if limit.kind.is_of_training else self._training
        return limit.kind.field, Configuration({name: found[name] for name in found if name not in left_out})

    def _measured(self, limit: _Limit, configuration: Configuration) -> _Cost:
        from trainers.drafts import UnbuildableNetworkError

        try:
            cost = limit.measure(configuration)
        except UnbuildableNetworkError as error:
            return self._unbuildable_in_words(error)
        except InfeasibleArchitectureError as error:
            return str(error)
        except OWN_CODE_ERRORS as error:  # one trial never ends a search; its training tells what is wrong
            _log.warning("no costs of %s: %s", configuration, error_in_words(error))
            return None
        self._has_built = True
        return None if cost is None else float(cost)

    def _unbuildable_in_words(self, error: Exception) -> str | None:
        self._unbuildable += 1
        if not self._has_built and self._unbuildable > MOST_UNBUILDABLE:
            _log.warning("none of %d networks could be built, the last one because: %s", self._unbuildable, error)
            return None
        return str(error)

    @cached_property
    def _drafts(self) -> "Drafts":
        return self._spec.make_trainer().drafts(self._spec.space, self._data)

    def _limits_of(self, spec: SearchSpec) -> Sequence[_Limit]:
        """The limits that are given, and what is told anyway."""
        measures: Mapping[str, Callable[[Configuration], float | None]] = {
            "max_params": self._parameters,
            "max_flops": self._multiply_adds,
            "max_memory_mib": self._memory_mib,
            "max_latency_ms": self._latency_ms,
        }
        given = {kind: getattr(spec, kind.field) for kind in COST_KINDS}
        return [
            _Limit(kind=kind, most=math.inf if most is None else most, measure=measures[kind.field])
            for kind, most in given.items()
            if most is not None or kind.is_always_told
        ]

    def _whole(self, configuration: Configuration) -> Mapping[str, JsonScalar]:
        """With what `--set` has taken out of the search, as the space's own builder reads it."""
        return complete_configuration(configuration, self._spec.set, self._spec.whole_space)

    def _parameters(self, configuration: Configuration) -> float:
        return self._drafts.count_parameters(self._whole(configuration))

    def _multiply_adds(self, configuration: Configuration) -> float:
        return self._drafts.count_multiply_adds(self._whole(configuration))

    def _memory_mib(self, configuration: Configuration) -> float | None:
        training = training_of(self._spec, configuration, seed=0)
        size = self._drafts.estimate_memory_bytes(
            self._whole(configuration), training, ranks=self._spec.procs_per_trial
        )
        return None if size is None else size / 2**20

    def _latency_ms(self, configuration: Configuration) -> float:
        from trainers.devices import gpus_of_torch

        # The trials' machine is this one: a cluster elsewhere is refused together with a limit of the latency.
        has_gpu = self._spec.gpus_per_trial != 0 and bool(gpus_of_torch().gpus)
        return self._drafts.measure_latency_ms(self._whole(configuration), "cuda" if has_gpu else "cpu")
