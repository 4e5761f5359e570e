"""Networks that cannot be built for the data, or cost too much, are refused before training: `--max-params` and others.

What a network costs is told by the trainer's drafts; each network is built and counted once.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from automl.spec import SearchSpec
from automl.tasks import training_of
from search_spaces.configuration import Configuration, JsonScalar
from search_spaces.errors import InfeasibleArchitectureError
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
        flag: by which it is given; the name of the limit.
        most: inclusive.
        verb: `has`, `takes`, .. so much.
        unit: what is counted.
        digits: decimals that are shown.
        is_quick: whether it takes milliseconds to tell the cost.
        names: the parameters that the cost depends on.
        measure: tells the cost of a configuration; None: it is not known.
    """

    flag: str
    most: float
    verb: str
    unit: str
    digits: int
    is_quick: bool
    names: Sequence[str]
    measure: Callable[[Configuration], float | None]

    def in_words(self, cost: float) -> str:
        """Such as `has 1,234 weights`."""
        return f"{self.verb} {self.rounded_up(cost):,.{self.digits}f} {self.unit}"

    def rounded_up(self, cost: float) -> float:
        """The cost in the digits that are shown, so that a limit of so much allows it."""
        return math.ceil(cost * 10.0**self.digits) / 10.0**self.digits


class CostLimits:
    """Tries each network with one item, mostly without giving it any memory, and compares what it costs.

    Args:
        spec: its trainer builds networks; holds the limits.
        data: what the trainer has loaded; the networks' inputs and outputs depend on it.
    """

    def __init__(self, spec: SearchSpec, data: Any) -> None:
        self._spec = spec
        self._data = data
        space = spec.search_space
        training = set(space.names("training"))
        self._names = [name for name in space.names() if name not in training]
        self._limits = self._limits_of(spec)
        self._known: dict[tuple[str, tuple[JsonScalar, ...]], _Cost] = {}
        self._unbuildable = 0
        self._has_built = False

    def refusal(self, configuration: Configuration) -> str | None:
        """Why a configuration is not trained; None: its network can be built, and costs little enough."""
        for limit in self._limits:
            cost = self._cost(limit, configuration)
            if isinstance(cost, str):
                return cost
            if cost is not None and cost > limit.most:
                most = f"{limit.most:,.{limit.digits}f}"
                return f"its network {limit.in_words(cost)}, more than {most} ({limit.flag})"
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
            self._cost(limit, each) if limit.is_quick else self._known.get((limit.flag, self._key(limit, each)))
            for each in configurations
        ]
        costs = [cost for cost in known if isinstance(cost, float)]
        if not costs or min(costs) <= limit.most:
            return None
        least = f"{limit.rounded_up(min(costs)):.{limit.digits}f}"
        return f"the smallest network found {limit.in_words(min(costs))}, give {limit.flag} {least} or more"

    def _cost(self, limit: _Limit, configuration: Configuration) -> _Cost:
        key = (limit.flag, self._key(limit, configuration))
        if key not in self._known:
            self._known[key] = self._measured(limit, configuration)
        return self._known[key]

    def _key(self, limit: _Limit, configuration: Configuration) -> tuple[JsonScalar, ...]:
        return tuple(configuration.get(name) for name in limit.names)

    def _measured(self, limit: _Limit, configuration: Configuration) -> _Cost:
        from trainers.drafts import UnbuildableNetworkError

        try:
            cost = limit.measure(configuration)
        except UnbuildableNetworkError as error:
            return self._unbuildable_in_words(error)
        except InfeasibleArchitectureError as error:
            return str(error)
        except Exception as error:  # a person's code may raise anything, and one trial never ends a search
            _log.warning("no costs of %s: %s: %s", configuration, type(error).__name__, error)
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
        """The limits, the quickest to tell first; multiply-adds are counted anyway, to see whether it can be built."""
        known = [
            (spec.max_params, "--max-params", "has", "weights", 0, self._parameters),
            (spec.max_flops or math.inf, "--max-flops", "makes", "multiply-adds for an item", 0, self._multiply_adds),
            (spec.max_memory_mib, "--max-memory-mib", "needs", "MiB of memory", 1, self._memory_mib),
            (spec.max_latency_ms, "--max-latency-ms", "takes", "ms for an item", 2, self._latency_ms),
        ]
        return [
            _Limit(
                flag=flag,
                most=most,
                verb=verb,
                unit=unit,
                digits=digits,
                is_quick=measure != self._latency_ms,
                names=list(spec.search_space.names()) if measure == self._memory_mib else self._names,
                measure=measure,
            )
            for most, flag, verb, unit, digits, measure in known
            if most is not None
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
