"""Whether a configuration belongs to a space, and every reason why not."""

from collections.abc import Collection, Mapping

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from search_spaces.parameters import Parameter, PlainValue
from search_spaces.structure import Parameters, bound_problem, is_there

__all__ = ["checked", "part_problems", "unknown"]


def checked(parameters: Parameters, configuration: Mapping[str, PlainValue]) -> tuple[dict[str, JsonScalar], list[str]]:
    """Return the allowed values in the order and the spelling of a space, and all that is wrong with the others."""
    problems = [unknown(name, parameters) for name in configuration if name not in parameters]
    values: dict[str, JsonScalar] = {}
    for name, parameter in parameters.items():
        if parameter.when is not None and not is_there(parameter, values):
            if name in configuration:
                problems.append(_not_there(name, parameter, configuration, values))
        elif name not in configuration:
            problems.append(f"{name} is missing")
        elif problem := parameter.problem(configuration[name]):
            problems.append(f"{name}={configuration[name]!r} {problem}")
        else:
            values[name] = parameter.normalise(configuration[name])
            if parameter.is_bounded and (problem := bound_problem(parameter, values[name], values)):
                problems.append(f"{name}={configuration[name]!r} {problem}")
    return values, problems


def part_problems(parameters: Parameters, part: Mapping[str, JsonScalar]) -> list[str]:
    """Return what is wrong with some values, whatever the others are."""
    problems = [unknown(name, parameters) for name in part if name not in parameters]
    known = ((name, value, parameters[name].problem(value)) for name, value in part.items() if name in parameters)
    return [*problems, *(f"{name}={value!r} {problem}" for name, value, problem in known if problem is not None)]


def unknown(name: object, parameters: Collection[str]) -> str:
    """Say that there is no such parameter, and which there are."""
    return f"no parameter {name!r};{did_you_mean(str(name), parameters)} parameters: {', '.join(parameters)}"


def _not_there(
    name: str, parameter: Parameter, given: Mapping[str, PlainValue], values: Mapping[str, JsonScalar]
) -> str:
    now = [f"{parent} is {values[parent]}" for parent in parameter.condition if parent in values]
    why = f" ({' and '.join(now)})" if now else ""
    return f"{name}={given[name]!r} is given, but it is there only when {parameter.condition}{why}; leave it out"
