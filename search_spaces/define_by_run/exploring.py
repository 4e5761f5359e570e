"""What the runs of a define-by-run function tell: which parameters there are, when, and in which range.

One value is changed at a time. A parameter that disappears with some values of another is there only with the rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from search_spaces.conditions import is_same
from search_spaces.configuration import JsonScalar
from search_spaces.define_by_run.moving_ranges import Sighting, moving_range
from search_spaces.define_by_run.recording import Run, Runner, told
from search_spaces.errors import InvalidSpaceError
from search_spaces.parameters import Categorical, Parameter
from search_spaces.placing import placed
from search_spaces.structure import parents

__all__ = ["FEW", "MANY", "Exploration"]

MANY = 64
"""Of a number with more values only the ends and the middle are tried."""
FEW = 8
"""Of one with more, but not many, all values are tried where those three make a difference."""


@dataclass(frozen=True, slots=True)
class _Probe:
    """A run in which one parameter had another value."""

    name: str
    value: JsonScalar
    run: Run


@dataclass(slots=True)
class _Seen:
    """What is known of a parameter: the run that first asked for it, and those with one value changed."""

    run: Run
    probes: list[_Probe] = field(default_factory=list)


class Exploration:
    """The runs of one function, and what they tell.

    Args:
        runner: runs the function.
        few: with so many values or fewer, all of a parameter's are tried.
    """

    def __init__(self, runner: Runner, few: int) -> None:
        self._runner = runner
        self._few = few
        self._seen: dict[str, _Seen] = {}
        self._order: list[str] = []

    def explore(self, start: Run) -> None:
        """Try the values of everything that a run asks for, and go on from each run that asks for something new."""
        waiting = [start]
        while waiting:
            run = waiting.pop(0)
            new = [name for name in run.asked if name not in self._seen]
            if not new:
                continue
            found = _Seen(run)
            self._seen |= dict.fromkeys(new, found)
            self._order = _merged(self._order, list(run.asked))
            for name in run.asked:
                found.probes += self._probes(run, name)
            waiting += [probe.run for probe in found.probes if set(probe.run.asked) - set(self._seen)]

    def parameters(self) -> dict[str, Parameter]:
        """Return what is asked for, with conditions and bounds, each after those that it depends on."""
        found: dict[str, Parameter] = {}
        for name in self._order:
            found[name] = self._range(name, found)
        tests: dict[str, dict[str, tuple[JsonScalar, ...]]] = {}
        for name in sorted(self._seen, key=lambda name: list(self._seen[name].run.asked).index(name)):
            tests[name] = _needed(self._tests(name), tests)
        return _in_order({name: placed(found[name], when=tests[name]) for name in self._order})

    def first(self, name: str) -> Mapping[str, JsonScalar]:
        """Return the answers of the run that has asked for a parameter first."""
        return self._seen[name].run.values

    def without(self, name: str, parameter: Parameter, values: Mapping[str, JsonScalar]) -> Mapping[str, JsonScalar]:
        """Return the answers of a run that has not asked for a parameter, for the reason that values do not tell."""
        broken = [parent for parent, allowed in parameter.condition.items() if values.get(parent) not in allowed]
        probes = [probe for probe in self._seen[name].probes if name not in probe.run.asked]
        return next((probe.run.values for probe in probes if probe.name in broken), probes[0].run.values)

    def _probes(self, run: Run, name: str) -> list[_Probe]:
        parameter, own = run.asked[name], run.values[name]
        size = parameter.size()
        some = _some_values(parameter)
        everything = size is not None and size <= (MANY if isinstance(parameter, Categorical) else self._few)

        def tried(values: Iterable[JsonScalar]) -> list[_Probe]:
            others = [value for value in values if not is_same(value, own)]
            return [_Probe(name, value, self._runner.run({**run.values, name: value})) for value in others]

        probes = tried(parameter.values() if everything else some)
        if everything or size is None or size > MANY or all(probe.run.asked == run.asked for probe in probes):
            return probes
        return probes + tried(value for value in parameter.values() if value not in some)

    def _tests(self, name: str) -> dict[str, tuple[JsonScalar, ...]]:
        """Return the values with which a parameter is there, of each of those before it that make a difference."""
        seen = self._seen[name]
        tests: dict[str, tuple[JsonScalar, ...]] = {}
        for parent in _before(seen.run, name):
            probes = [probe for probe in seen.probes if probe.name == parent]
            without = [probe for probe in probes if name not in probe.run.asked]
            if not without:
                continue
            allowed = [seen.run.values[parent], *(probe.value for probe in probes if name in probe.run.asked)]
            if seen.run.asked[parent].size() != len(probes) + 1:
                raise InvalidSpaceError(
                    f"search space {self._runner.name!r}: {name!r} is asked for with {parent}={allowed[0]!r}, but not "
                    f"with {parent}={without[0].value!r}, and {parent!r} has too many values for a condition; choose "
                    f"by one of few values, or ask for {name!r} always"
                )
            tests[parent] = tuple(value for value in _all(seen.run.asked[parent]) if value in allowed)
        return tests

    def _range(self, name: str, before: Mapping[str, Parameter]) -> Parameter:
        seen = self._seen[name]
        runs = [seen.run, *(probe.run for probe in seen.probes if name in probe.run.asked)]
        sightings = [Sighting({key: run.values[key] for key in _before(run, name)}, run.asked[name]) for run in runs]
        first = sightings[0]
        others = [other for other in sightings if other.parameter != first.parameter]
        if not others:
            return first.parameter
        found = moving_range(sightings, before)
        if found is not None:
            return found
        raise InvalidSpaceError(
            f"search space {self._runner.name!r}: the range of {name!r} changes, and follows no sum of numbers: "
            f"{_range_in_words(first, others[0])}, but {_range_in_words(others[0], first)}; ask for the widest range, "
            "or give each range a name of its own"
        )


def _range_in_words(seen: Sighting, other: Sighting) -> str:
    parameter = seen.parameter
    names = [name for name, value in seen.values.items() if name in other.values and value != other.values[name]]
    range_ = list(parameter.choices) if isinstance(parameter, Categorical) else [parameter.low, parameter.high]
    return f"{range_} with {told(seen.values, names)}"


def _before(run: Run, name: str) -> list[str]:
    names = list(run.asked)
    return names[: names.index(name)]


def _all(parameter: Parameter) -> Iterator[JsonScalar]:
    return iter(parameter.values())


def _some_values(parameter: Parameter) -> list[JsonScalar]:
    """Return the ends and the middle of a range; all choices."""
    if isinstance(parameter, Categorical):
        return list(parameter.choices)
    return list(dict.fromkeys((parameter.low, parameter.at(0.5), parameter.high)))


def _needed(
    tests: dict[str, tuple[JsonScalar, ...]], known: Mapping[str, Mapping[str, tuple[JsonScalar, ...]]]
) -> dict[str, tuple[JsonScalar, ...]]:
    """Leave out the tests that others imply: what needs a kernel needs not say that a kernel needs a convolution."""

    def is_implied(name: str) -> bool:
        others = (known.get(other, {}).get(name) for other in tests if other != name)
        return any(allowed is not None and set(allowed) <= set(tests[name]) for allowed in others)

    return {name: allowed for name, allowed in tests.items() if not is_implied(name)}


def _merged(order: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return an order with those names of another one that are new, each behind the one before it there."""
    merged = list(order)
    for place, name in enumerate(names):
        if name not in merged:
            merged.insert(merged.index(names[place - 1]) + 1 if place else 0, name)
    return merged


def _in_order(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters so that each comes after those that it depends on, otherwise as they are."""
    waiting, found = dict(parameters), dict[str, Parameter]()
    while waiting:
        ready = [name for name, parameter in waiting.items() if set(parents(parameter)) <= set(found)]
        first = ready[0] if ready else next(iter(waiting))  # a cycle: the space says so
        found[first] = waiting.pop(first)
    return found
