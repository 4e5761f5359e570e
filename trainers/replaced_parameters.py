"""Constants in the place of parameters that a space searches: what is searched without them, and what stands for them.

A constant of a parameter of the training wins over the space, also with a value that the space does not know: `muon`
where it searches among other optimizers. Parameters of the architecture stay with the space.
"""

from collections.abc import Mapping
from typing import Any

from search_spaces.configuration import JsonScalar
from search_spaces.errors import InvalidSpaceError
from search_spaces.space import SearchSpace
from search_spaces.value_texts import value_of_text
from trainers.trainer import Trainer

__all__ = ["complete_configuration", "read_value", "replacement_problem", "searched_space"]


def replacement_problem(name: str, value: Any, space: SearchSpace, trainer: Trainer) -> str | None:
    """Return why a constant cannot replace a parameter of a space, or None.

    What the trainer knows is allowed whatever the space says, if the space's own value can stand for it where the
    network is built. Of what only a person's own code knows, nobody but the space can tell what is allowed.

    Args:
        name: of a parameter of the space.
        value: the constant.
        space: what would be searched without it.
        trainer: takes the constant.
    """
    parameter = space.parameters[name]
    if parameter.role != "training":
        return (
            f"{name} is searched by the space '{space.name}', and of the {parameter.role}: only parameters of the "
            "training can be given a value instead; give a space of your own in which it has one"
        )
    problem = parameter.problem(read_value(space, name, value))
    if problem is None or (name in trainer.hyperparameters and not trainer.has_networks):
        return None
    if name not in trainer.hyperparameters:
        return f"{name}={value!r} {problem} (space '{space.name}')"
    if space.defaults is None:
        return (
            f"{name}={value!r} {problem}; the space '{space.name}' has no defaults, one of which would stand for it "
            "where the network is built; give it defaults"
        )
    return None


def searched_space(space: SearchSpace, constants: Mapping[str, Any]) -> SearchSpace:
    """Return what of a space is searched beside the constants.

    Raises:
        InvalidSpaceError: nothing is; or the space has rules and no defaults to give to them.
    """
    replaced = [name for name in constants if name in space.parameters]
    if len(replaced) == len(space.parameters):
        raise InvalidSpaceError(
            f"nothing is left to search: all parameters of the space '{space.name}' have one value; train it once by "
            "`python -m trainers`"
        )
    return space.without(replaced)


def complete_configuration(
    configuration: Mapping[str, JsonScalar], constants: Mapping[str, Any], space: SearchSpace
) -> dict[str, JsonScalar]:
    """Return a configuration as the whole space has it, for what builds networks of that space or draws them.

    A constant that the space does not know is only the training's; the default of its parameter stands for it.

    Args:
        configuration: of the space without the parameters that constants replace.
        constants: name -> value.
        space: with all its parameters.
    """
    defaults: Mapping[str, JsonScalar] = space.defaults or {}
    found: dict[str, JsonScalar] = {}
    for name in space.parameters:
        if name not in constants:
            continue
        value = read_value(space, name, constants[name])
        if space.parameters[name].problem(value) is None:
            found[name] = space.parameters[name].normalise(value)
        elif name in defaults:
            found[name] = defaults[name]
    return {**found, **configuration}


def read_value(space: SearchSpace, name: str, value: Any) -> Any:
    """Return what a text of a command line says for a parameter of a space; other values as they are."""
    return value_of_text(space.parameters[name], value) if isinstance(value, str) else value
