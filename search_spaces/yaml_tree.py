"""YAML with the line of everything, read by the rules of YAML 1.2: `1e-3` is a number, `yes` and `012` are not odd.

Only mappings, lists and scalars are read; nothing is constructed. Mistakes are collected, so that a person sees all.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import yaml

from search_spaces.configuration import JsonScalar

__all__ = ["Located", "Remark", "kind_of", "read_tree"]


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """A sentence about a line of a file.

    Attributes:
        line: counted from 1.
        text: what is to be said.
    """

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Located:
    """A value of a file and where it stands.

    Attributes:
        value: a scalar, a tuple of values, or a mapping of names to values.
        line: of the value, or of the name before it; counted from 1.
    """

    value: "JsonScalar | tuple[Located, ...] | Mapping[str, Located]"
    line: int

    @property
    def plain(self) -> Any:
        """The value without lines: scalars, lists and dicts."""
        if isinstance(self.value, Mapping):
            return {name: item.plain for name, item in self.value.items()}
        return [item.plain for item in self.value] if isinstance(self.value, tuple) else self.value


def read_tree(text: str, faults: list[Remark]) -> Located | None:
    """Read a document.

    Args:
        text: of the file.
        faults: takes what is wrong: syntax, a name that is there twice, a value of a strange type.

    Returns:
        The document without what is wrong in it; None: it is empty, or no YAML.
    """
    try:
        node = yaml.compose(text, Loader=_Loader)
        return None if node is None else _Tree(faults).located(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line + 1 if mark is not None else text.count("\n", 0, getattr(error, "position", 0)) + 1
        said = [getattr(error, part, None) for part in ("context", "problem", "reason")]
        faults.append(Remark(line, f"no valid YAML: {', '.join(filter(None, said)) or str(error).splitlines()[0]}"))
    except RecursionError:
        faults.append(Remark(1, "no usable YAML: it is nested too deeply"))
    return None


def kind_of(value: object) -> str:
    """Return what a value is, for a message."""
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else repr(value)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012 - as in the class above


_TAG = "tag:yaml.org,2002:"
_RULES = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    "merge": "<<",
}
for _kind, _pattern in _RULES.items():  # the first that fits is it
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"(?:{_pattern})$"), None)

_Pairs: TypeAlias = dict[str, Located]


class _Tree:
    """Turns nodes into values; a node that several places share is turned once."""

    def __init__(self, faults: list[Remark]) -> None:
        self._faults = faults
        self._known: dict[int, Located] = {}
        self._open: set[int] = set()

    def located(self, node: yaml.Node) -> Located:
        if id(node) in self._known:
            return self._known[id(node)]
        line = node.start_mark.line + 1
        if id(node) in self._open:
            self._faults.append(Remark(line, "it contains itself"))
            return Located(None, line)
        self._open.add(id(node))
        if isinstance(node, yaml.MappingNode):
            found = Located(self._mapping(node), line)
        elif isinstance(node, yaml.SequenceNode):
            found = Located(tuple(self.located(item) for item in node.value), line)
        else:
            assert isinstance(node, yaml.ScalarNode)
            found = Located(self._scalar(node, line), line)
        self._open.remove(id(node))
        self._known[id(node)] = found
        return found

    def _mapping(self, node: yaml.MappingNode) -> _Pairs:
        own: _Pairs = {}
        merged: _Pairs = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == f"{_TAG}merge":
                merged = {**self._merged(value, line), **merged}
            elif not isinstance(key, yaml.ScalarNode):
                self._faults.append(Remark(line, "a name is a word, not a list or a mapping"))
            elif key.value in own:
                earlier = own[key.value].line
                self._faults.append(Remark(line, f"{key.value!r} is there already, in line {earlier}; leave one out"))
            else:
                own[key.value] = replace(self.located(value), line=line)
        return {**merged, **own}

    def _merged(self, node: yaml.Node, line: int) -> _Pairs:
        """What `<<` brings in: a mapping, or a list of them of which the first goes before."""
        found = self.located(node).value
        parts = [item.value for item in found] if isinstance(found, tuple) else [found]
        if not all(isinstance(part, Mapping) for part in parts):
            self._faults.append(Remark(line, "<< takes a mapping, or a list of mappings"))
        pairs: _Pairs = {}
        for part in reversed(parts):
            pairs |= part if isinstance(part, Mapping) else {}
        return pairs

    def _scalar(self, node: yaml.ScalarNode, line: int) -> JsonScalar:
        text: str = node.value
        try:
            match node.tag.removeprefix(_TAG):
                case "null":
                    return None
                case "bool":
                    return text.lower() == "true"
                case "int":
                    return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
                case "float":
                    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
                case "str" | "merge":
                    return text
        except ValueError as error:
            self._faults.append(Remark(line, f"{text[:40]!r} cannot be read: {error}"))
            return None
        self._faults.append(Remark(line, f"{text[:40]!r} has the type {node.tag}, which means nothing here"))
        return None
