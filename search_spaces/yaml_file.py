"""A search space of hyperparameters as a YAML file: what `--space my_space.yaml` reads. It builds no network."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_spaces.errors import InvalidConfigurationError, InvalidSpaceError, did_you_mean
from search_spaces.own_files import name_of_file
from search_spaces.parameters import Parameter
from search_spaces.soundness import settled_conditions, structure_problems
from search_spaces.space import SearchSpace
from search_spaces.structure import parents
from search_spaces.yaml_parameters import YamlParameters
from search_spaces.yaml_tree import Located, Remark, kind_of, read_tree

__all__ = ["YamlReading", "read_yaml_space"]

_FIELDS = ("name", "task", "description", "parameters", "defaults")


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlReading:
    """What a file says, and what is to be said of it.

    Attributes:
        space: the search space; None: there are faults.
        faults: all that is wrong, a sentence each, with its line.
        notes: what a person should know of how the file was read, a sentence each.
    """

    space: SearchSpace | None
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def read_yaml_space(path: Path) -> YamlReading:
    """Read a search space; a file that cannot be read has that fault.

    Args:
        path: of the file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "own.yaml"
        >>> _ = path.write_text("parameters: {learning_rate: {low: 1e-4, high: 1e-1, log: true}, layers: 3}")
        >>> read_yaml_space(path).space
        SearchSpace('own', 2 parameters, task='image_classification')
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return YamlReading(space=None, faults=(f"the file cannot be read: {error.strerror}",), notes=())
    except UnicodeDecodeError as error:
        return YamlReading(space=None, faults=(f"no UTF-8 text: {error.reason}",), notes=())
    faults: list[Remark] = []
    notes: list[Remark] = []
    tree = read_tree(text, faults)
    space = None if tree is None and faults else _File(faults, notes).space(tree, name_of_file(path))
    if space is not None:
        return YamlReading(space=space, faults=(), notes=space.notes)
    return YamlReading(space=None, faults=_in_order(faults), notes=_in_order(notes))


class _File:
    """One file that is read; see `read_yaml_space`."""

    def __init__(self, faults: list[Remark], notes: list[Remark]) -> None:
        self._faults = faults
        self._notes = notes
        self._reader = YamlParameters(faults, notes)

    def space(self, tree: Located | None, usual_name: str) -> SearchSpace | None:
        """Return the search space; None: there are faults."""
        fields = {} if tree is None else tree.value
        if not isinstance(fields, Mapping):
            self._say(1, f"the file holds {kind_of(fields)}; wanted are the fields {', '.join(_FIELDS)}")
            return None
        for name in fields:
            if name not in _FIELDS:
                suggestion = did_you_mean(name, _FIELDS)
                self._say(fields[name].line, f"no field {name!r};{suggestion} fields: {', '.join(_FIELDS)}")
        texts = {name: self._text(fields, name) for name in ("name", "task", "description")}
        parameters = self._parameters(fields)
        self._check_structure(parameters)
        defaults = self._defaults(fields, parameters)
        return None if self._faults else self._made(texts, usual_name, parameters, defaults, fields)

    def _made(
        self,
        texts: Mapping[str, str],
        usual_name: str,
        parameters: Mapping[str, Parameter],
        defaults: Mapping[str, Any] | None,
        fields: Mapping[str, Located],
    ) -> SearchSpace | None:
        notes = _in_order(self._notes)
        chosen: dict[str, Any] = {name: text for name, text in texts.items() if name != "name" and text}
        try:
            space = SearchSpace(texts["name"] or usual_name, parameters, notes=notes, **chosen)
        except InvalidSpaceError as error:
            self._say(fields["name"].line if "name" in fields else 1, str(error))
            return None
        if defaults is None:
            return space
        try:
            space.validate(defaults)
        except InvalidConfigurationError as error:
            for problem in error.problems:
                self._say(_line_of(problem, fields["defaults"]), f"defaults: {problem}")
            return None
        return SearchSpace(space.name, parameters, notes=notes, defaults=defaults, **chosen)

    def _parameters(self, fields: Mapping[str, Located]) -> dict[str, Parameter]:
        given = fields.get("parameters")
        if given is None or not isinstance(given.value, Mapping) or not given.value:
            line = 1 if given is None else given.line
            what = "lacks" if given is None else f"has {kind_of(given.plain)} for"
            self._say(line, f"the file {what} parameters; give a name and a range, or a list of choices, for each")
            return {}
        return self._reader.read(given.value)

    def _check_structure(self, parameters: Mapping[str, Parameter]) -> None:
        """Find conditions and bounds on what is not there; those on parameters that are wrong say nothing new."""
        known: dict[str, Parameter] = {}
        left_out: set[str] = set()
        for name, parameter in parameters.items():
            missing = [parent for parent in parents(parameter) if parent not in parameters]
            if any(self._is_wrong(parent) for parent in missing) or left_out & set(parents(parameter)):
                left_out.add(name)
            else:
                known[name] = parameter
        for problem in structure_problems(settled_conditions(known)):
            name = re.split(r"[ :]", problem, maxsplit=1)[0]
            self._say(self._reader.lines[name], problem)

    def _is_wrong(self, name: str) -> bool:
        return any(wrong == name or wrong.endswith(f"_{name}") for wrong in self._reader.wrong)

    def _defaults(self, fields: Mapping[str, Located], parameters: Mapping[str, Parameter]) -> Mapping[str, Any] | None:
        """Return the defaults; without faults so far the space checks the whole, else each is checked by itself."""
        given = fields.get("defaults")
        if given is None or given.value is None:
            return None
        if not isinstance(given.value, Mapping):
            self._say(given.line, f"defaults is {kind_of(given.value)}; give a value for each parameter")
            return None
        if self._faults:
            for name, item in given.value.items():
                problem = parameters[name].problem(item.plain) if name in parameters else None
                if problem is not None:
                    self._say(item.line, f"defaults: {name}={item.plain!r} {problem}")
        plain: Mapping[str, Any] = given.plain
        return plain

    def _text(self, fields: Mapping[str, Located], name: str) -> str:
        value = fields[name].plain if name in fields else ""
        if isinstance(value, str):
            return value
        self._say(fields[name].line, f"{name} is {kind_of(value)}; give a text")
        return ""

    def _say(self, line: int, text: str) -> None:
        self._faults.append(Remark(line, text))


def _line_of(problem: str, defaults: Located) -> int:
    """The line of the default that a problem speaks of; else that of all defaults."""
    assert isinstance(defaults.value, Mapping)
    spoken = re.match(r"no parameter '(.*?)'|(\w+)=", problem)
    name = (spoken[1] or spoken[2]) if spoken else ""
    return defaults.value[name].line if name in defaults.value else defaults.line


def _in_order(remarks: list[Remark]) -> tuple[str, ...]:
    return tuple(map(str, dict.fromkeys(sorted(remarks))))
