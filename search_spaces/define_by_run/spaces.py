"""A search space of what a function asks for."""

from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase

from search_spaces.configuration import JsonScalar
from search_spaces.define_by_run.proving import proved_parameters
from search_spaces.define_by_run.recording import Suggest
from search_spaces.errors import InvalidSpaceError
from search_spaces.parameters import Parameter
from search_spaces.placing import placed
from search_spaces.space import SearchSpace

__all__ = ["traced"]


def traced(
    name: str,
    suggest: Suggest,
    *,
    task: str = "image_classification",
    architecture: Collection[str] = (),
    defaults: Mapping[str, JsonScalar] | None = None,
    refuse: Callable[[Mapping[str, JsonScalar]], str | None] | None = None,
    description: str = "",
) -> SearchSpace:
    """Make a search space of what a function asks for.

    The function is run with its usual values, then with each other value of what it asks for, to see what it asks for
    then; so conditions are found, loops over a count, and bounds such as `high = 100 - a`. At last 200 random
    configurations prove that it asks for what the space says.

    Args:
        name: of the space.
        suggest: asks a trial by Optuna's `suggest_float`, `suggest_int` and `suggest_categorical`, or by Keras Tuner's
            `Float`, `Int`, `Choice`, `Boolean` and `Fixed`; what it returns does not matter.
        task: who trains it; see `SearchSpace`.
        architecture: names of the parameters that build the network, such as `units_*`; the others are of the training.
        defaults: a configuration that is known to be sensible; None: the function's own, where it names any.
        refuse: tells infeasible configurations from feasible ones; None: all are feasible.
        description: one sentence for lists of spaces.

    Raises:
        InvalidSpaceError: the function raises, or what it asks for is no search space: what there is depends on more
            than lists of values of what came before, or a range changes otherwise than by a sum.

    Example:
        >>> def suggest(trial: TrialCalls) -> None:
        ...     for layer in range(trial.suggest_int("layers", 1, 2)):
        ...         trial.suggest_int(f"units_{layer}", 8, 64, step=8)
        >>> {key: str(parameter.condition) for key, parameter in traced("mlp", suggest).parameters.items()}
        {'layers': '', 'units_0': '', 'units_1': 'layers is 2'}
    """
    parameters, own_defaults = proved_parameters(name, suggest)
    if unused := [pattern for pattern in architecture if not any(fnmatchcase(key, pattern) for key in parameters)]:
        raise InvalidSpaceError(
            f"search space {name!r}: architecture={', '.join(unused)} names no parameter; there are: "
            f"{', '.join(parameters)}"
        )
    return SearchSpace(
        name,
        {key: _with_role(key, parameter, architecture) for key, parameter in parameters.items()},
        task=task,
        defaults=own_defaults if defaults is None else defaults,
        refuse=refuse,
        description=description,
    )


def _with_role(name: str, parameter: Parameter, architecture: Collection[str]) -> Parameter:
    if not any(fnmatchcase(name, pattern) for pattern in architecture):
        return parameter
    return placed(parameter, role="architecture")
