"""A configuration as Optuna stores it: one number and one distribution for each parameter."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from studies.errors import IncompatibleDistributionError
from studies.names import check_keys
from studies.schema import optuna_tables as optuna
from studies.trial import JsonScalar

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["StoredParameter", "check_compatible", "stored_parameters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredParameter:
    """A row of Optuna's `trial_params`.

    Attributes:
        name: the parameter.
        internal_value: the value itself, or the position of a choice.
        distribution_json: where the value came from.
    """

    name: str
    internal_value: float
    distribution_json: str


def stored_parameters(
    configuration: Mapping[str, JsonScalar], distributions: Mapping[str, "BaseDistribution"]
) -> tuple[StoredParameter, ...]:
    """Translate a configuration; `distributions` may hold more parameters than are active in it.

    Raises:
        ValueError: a name has no distribution or a value lies outside of it; all mistakes are listed.
    """
    check_keys("parameter", configuration)
    faults = [fault for name in configuration if (fault := _fault(name, configuration[name], distributions))]
    if faults:
        raise ValueError(f"the configuration does not fit its distributions: {'; '.join(faults)}")
    return tuple(_stored(name, value, distributions[name]) for name, value in configuration.items())


def check_compatible(connection: Connection, study_id: int, kinds: Collection[tuple[str, str]]) -> None:
    """Refuse parameters whose kind differs from that of earlier trials: float, integer or choice.

    Ranges, scales and choices may change, since every stored value comes with its own distribution. That is more than
    Optuna allows, which then still reads the study, and refuses to go on with it. One statement; the caller remembers
    what has passed.

    Args:
        connection: holds the transaction.
        study_id: the study.
        kinds: names with their distributions as JSON.

    Raises:
        IncompatibleDistributionError: at least one differs; all are listed.
    """
    from optuna.distributions import json_to_distribution

    table, given = optuna.trial_params, dict(kinds)
    query = (
        select(table.c.param_name, table.c.distribution_json)
        .distinct()
        .join(optuna.trials, optuna.trials.c.trial_id == table.c.trial_id)
        .where(optuna.trials.c.study_id == study_id, table.c.param_name.in_(given))
    )
    faults = [
        f"parameter {name!r} was {earlier} and is now {given[name]}, another kind"
        for name, earlier in connection.execute(query)
        if type(json_to_distribution(earlier)) is not type(json_to_distribution(given[name]))
    ]
    if faults:
        raise IncompatibleDistributionError(f"{'; '.join(faults)}; give the changed space a new study")


def _fault(name: str, value: JsonScalar, distributions: Mapping[str, "BaseDistribution"]) -> str | None:
    if name not in distributions:
        near = get_close_matches(name, distributions, n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        return f"parameter {name!r} has no distribution{hint}"
    distribution = distributions[name]
    try:
        internal = distribution.to_internal_repr(value)
    except ValueError:
        return f"{name}={value!r} is not in {distribution}"
    is_inside = math.isfinite(internal) and distribution._contains(internal)
    return None if is_inside else f"{name}={value!r} is outside of {distribution}"


def _stored(name: str, value: JsonScalar, distribution: "BaseDistribution") -> StoredParameter:
    from optuna.distributions import CategoricalDistribution, distribution_to_json

    internal = float(distribution.to_internal_repr(value))
    # Choices that are equal, as True and 1 are, would be taken for each other.
    is_range = not isinstance(distribution, CategoricalDistribution)
    text = _range_as_json(distribution) if is_range else distribution_to_json(distribution)
    return StoredParameter(name=name, internal_value=internal, distribution_json=text)


@lru_cache(maxsize=4096)  # the distributions of a study are the same for all its trials
def _range_as_json(distribution: "BaseDistribution") -> str:
    from optuna.distributions import distribution_to_json

    return distribution_to_json(distribution)
