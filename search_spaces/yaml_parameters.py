"""From what a YAML file says of a parameter to the parameter: ranges, choices, constants, blocks and repeats.

How a value is written tells what it is: `low: 1, high: 4` are whole numbers, `low: 1.0, high: 4` are not; a list is
choices, anything else a constant.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from search_spaces.blocks import block, repeat
from search_spaces.errors import InvalidParameterError, did_you_mean
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.ranges import is_integer, is_number
from search_spaces.yaml_tree import Located, Remark, kind_of

__all__ = ["YamlParameters"]

_Fields: TypeAlias = Mapping[str, Located]
_SHARED = ("role", "when")
_KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "number": (("low", "high"), ("log", "step", "type", "at_least", "at_most")),
    "choice": (("choices",), ("ordered",)),
    "repeat": (("repeat", "each"), ("item",)),
    "block": (("block",), ()),
}
"""Kind -> (names that it must have, names that it may have)."""
_TYPES: Mapping[str, type[Integer] | type[Float]] = {"integer": Integer, "float": Float}


class YamlParameters:
    """Reads the parameters of one file, and remembers where each stands and what is to be said of it.

    Args:
        faults: takes what is wrong.
        notes: takes what a person should know of how something was read.

    Attributes:
        lines: name -> line, of those that are wrong, too.
        wrong: names of those that are wrong.
    """

    def __init__(self, faults: list[Remark], notes: list[Remark]) -> None:
        self._faults = faults
        self._notes = notes
        self.lines: dict[str, int] = {}
        self.wrong: set[str] = set()

    def read(self, given: _Fields, place: str = "") -> dict[str, Parameter]:
        """Return the parameters that could be read, those of blocks and repeats by their full names.

        Args:
            given: name -> what the file says of it.
            place: the block that they belong to, for messages, with an underscore behind it; empty: none.
        """
        found: dict[str, Parameter] = {}
        for name, item in given.items():
            self.lines[place + name] = item.line
            try:
                own = self._parameters(name, item, place)
            except (InvalidParameterError, _FaultError) as error:
                text = str(error).removeprefix("Float: ").removeprefix("Integer: ").removeprefix("Categorical: ")
                self._faults.append(Remark(item.line, f"{place}{name}: {text}"))
                self.wrong.add(place + name)
                continue
            for twice in sorted(set(own) & set(found)):
                self._faults.append(Remark(item.line, f"{place}{twice} is there already; name one of them otherwise"))
            found |= own
            self.lines |= {place + key: item.line for key in own if place + key not in self.lines}
        return found

    def _parameters(self, name: str, item: Located, place: str) -> dict[str, Parameter]:
        if not name.isidentifier():
            raise _FaultError("a name is of letters, digits and underscores, and does not begin with a digit")
        value = item.value
        if isinstance(value, tuple):
            return {name: self._choices(value, item.line, f"{place}{name}")}
        if not isinstance(value, Mapping):
            return {name: Categorical(choices=(value,))}
        kind = _kind(value)
        self._check_names(value, kind, f"{place}{name}")
        shared = {field: value[field].plain for field in _SHARED if field in value}
        if not isinstance(shared.get("when", {}), Mapping):
            raise _FaultError(
                f"when is {kind_of(shared['when'])}; give a name and its values, such as {{layers: [2, 3]}}"
            )
        match kind:
            case "number":
                return {name: self._number(value, shared)}
            case "choice":
                return {name: self._choice(value, shared, f"{place}{name}")}
            case "repeat":
                return self._repeat(name, value, shared, place)
            case _:
                inside = self.read(_mapping(value["block"], "block"), f"{place}{name}_")
                return block(name, inside, **shared)

    def _check_names(self, fields: _Fields, kind: str, name: str) -> None:
        needed, allowed = _KINDS[kind]
        known = (*needed, *allowed, *_SHARED)
        for field in fields:
            if field not in known:
                text = f"{name}: no field {field!r};{did_you_mean(field, known)} fields here: {', '.join(known)}"
                self._faults.append(Remark(fields[field].line, text))
        if missing := [field for field in needed if field not in fields]:
            raise _FaultError(f"{' and '.join(missing)} must be given")

    def _number(self, fields: _Fields, shared: Mapping[str, Any]) -> Parameter:
        given = {name: item.plain for name, item in fields.items() if name in (*_KINDS["number"][0], "step")}
        kind = _number_kind(fields, given)
        log = _yes_or_no(fields, "log")
        bounds = {name: str(fields[name].plain) for name in ("at_least", "at_most") if name in fields}
        return kind(**given, **bounds, **shared, log=log)

    def _choice(self, fields: _Fields, shared: Mapping[str, Any], name: str) -> Categorical:
        given = fields["choices"]
        if not isinstance(given.value, tuple):
            raise _FaultError(f"choices is {kind_of(given.value)}; give a list")
        return self._choices(given.value, given.line, name, ordered=_yes_or_no(fields, "ordered"), **shared)

    def _choices(self, given: tuple[Located, ...], line: int, name: str, **fields: Any) -> Categorical:
        strange = [item for item in given if isinstance(item.value, Mapping)]
        if strange:
            places = ", ".join(str(item.line) for item in strange)
            raise _FaultError(
                f"a choice is a scalar or a list of them, not a mapping (line {places}); "
                "give each choice a name, and what it means in the code that trains"
            )
        choices = tuple(item.plain for item in given)
        if len(choices) == 2 and all(map(is_number, choices)) and choices[0] < choices[1]:
            text = f"two numbers are two choices; a range is written {{low: {choices[0]!r}, high: {choices[1]!r}}}"
            self._notes.append(Remark(line, f"{name}: {text}"))
        return Categorical(choices=choices, **fields)

    def _repeat(self, name: str, fields: _Fields, shared: Mapping[str, Any], place: str) -> dict[str, Parameter]:
        item = fields["item"].plain if "item" in fields else name
        if not isinstance(item, str) or not item.isidentifier():
            raise _FaultError(f"item={item!r} is no prefix of names; give a word such as layer")
        # What is in the block may be wrong as well as the count: both are read before either is used.
        inside = self.read(_mapping(fields["each"], "each"), f"{place}{item}_")
        count = self._parameters(name, _count(fields), place)[name]
        if isinstance(count, Float):
            raise _FaultError("repeat is a range of whole numbers, such as {low: 1, high: 4}")
        return repeat(name, count, inside, item=item, role=shared.get("role"))


class _FaultError(ValueError):
    """What a file says of a parameter makes none."""


def _kind(fields: _Fields) -> str:
    """Which kind of parameter is meant: the one with the most of its own names."""
    found = {kind: sum(name in fields for name in needed + allowed) for kind, (needed, allowed) in _KINDS.items()}
    best = max(found, key=lambda kind: found[kind])
    if found[best] == 0:
        names = [name for needed, allowed in _KINDS.values() for name in needed + allowed]
        near = " ".join(filter(None, (did_you_mean(name, names).strip() for name in fields)))
        given = ", ".join(fields) or "nothing"
        raise _FaultError(
            f"{given} says no range and no choices; {near}{' ' if near else ''}"
            "give low and high, or choices, or repeat and each, or block"
        )
    return best


def _number_kind(fields: _Fields, given: Mapping[str, Any]) -> Callable[..., Parameter]:
    if "type" not in fields:
        return Integer if all(map(is_integer, given.values())) else Float
    asked = fields["type"].plain
    if not isinstance(asked, str) or asked not in _TYPES:
        raise _FaultError(f"no type {asked!r};{did_you_mean(str(asked), _TYPES)} types: {', '.join(_TYPES)}")
    return _TYPES[asked]


def _yes_or_no(fields: _Fields, name: str) -> bool:
    value = fields[name].plain if name in fields else False
    if not isinstance(value, bool):
        raise _FaultError(f"{name} is true or false, not {kind_of(value)}")
    return value


def _mapping(item: Located, name: str) -> _Fields:
    if not isinstance(item.value, Mapping) or not item.value:
        raise _FaultError(f"{name} is {kind_of(item.value)}; give the parameters of one, a name and its range each")
    return item.value


def _count(fields: _Fields) -> Located:
    """Return how often a block is there as a parameter of its own, with the role and the condition of the whole."""
    given = fields["repeat"]
    own = given.value
    if is_integer(own):
        own = (Located(own, given.line),)
    if isinstance(own, tuple):
        own = {"choices": Located(own, given.line)}
    if not isinstance(own, Mapping) or "repeat" in own or "block" in own:
        raise _FaultError(f"repeat is {kind_of(own)}; give a range such as {{low: 1, high: 4}}")
    return Located({**own, **{name: fields[name] for name in _SHARED if name in fields}}, given.line)
