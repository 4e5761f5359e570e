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
from trainers.config import TrainConfig
from trainers.trainer import Trainer

__all__ = ["complete_configuration", "read_value", "replacement_problem", "searched_space", "stand_ins"]


def replacement_problem(name: str, value: Any, space: SearchSpace, trainer: Trainer) -> str | None:
    """Return why a constant cannot replace a parameter of a space, or None.

    What the trainer knows is allowed whatever the space says: where the network is built, a value of the space stands
    for it. Of what only a person's own code knows, nobody but the space can tell what is allowed.

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
    if problem is None or name in trainer.hyperparameters:
        return None
    return f"{name}={value!r} {problem} (space '{space.name}')"


def searched_space(space: SearchSpace, constants: Mapping[str, Any]) -> SearchSpace:
    """Return what of a space is searched beside the constants.

    Raises:
        InvalidSpaceError: nothing is.
    """
    replaced = {name: read_value(space, name, value) for name, value in constants.items() if name in space.parameters}
    try:
        return space.fixing(replaced)
    except InvalidSpaceError as error:
        raise InvalidSpaceError(
            f"nothing is left to search: all parameters of the space '{space.name}' have one value; train it once by "
            "`python -m trainers`"
        ) from error


def complete_configuration(
    configuration: Mapping[str, JsonScalar], constants: Mapping[str, Any], space: SearchSpace
) -> dict[str, JsonScalar]:
    """Return a configuration as the whole space has it, for what builds networks of that space or draws them.

    A constant that the space does not know is only the training's; a usual value of its parameter stands for it.

    Args:
        configuration: of the space without the parameters that constants replace.
        constants: name -> value.
        space: with all its parameters.
    """
    fixed = {name: read_value(space, name, value) for name, value in constants.items() if name in space.parameters}
    if not fixed:
        return dict(configuration)
    # The trial's own values stay what they are, also those that an older version of the space allowed.
    return {**space.filled({**fixed, **configuration}), **configuration}


def stand_ins(
    whole: Mapping[str, JsonScalar],
    configuration: Mapping[str, JsonScalar],
    constants: Mapping[str, Any],
    space: SearchSpace,
) -> tuple[str, ...]:
    """Return the parameters of the training whose values nobody has asked for: they only make a configuration whole.

    Args:
        whole: what was made of the configuration, see `complete_configuration`.
        configuration: of the space without the parameters that constants replace.
        constants: name -> value.
        space: with all its parameters.
    """
    made_up = [name for name in space.names("training") if name in whole and name not in configuration]
    asked = {name: read_value(space, name, constants[name]) for name in made_up if name in constants}
    return tuple(
        name
        for name in made_up
        if name in TrainConfig.model_fields and (name not in asked or whole[name] != asked[name])
    )


def read_value(space: SearchSpace, name: str, value: Any) -> Any:
    """Return what a text of a command line says for a parameter of a space; other values as they are."""
    return value_of_text(space.parameters[name], value) if isinstance(value, str) else value
