"""Search spaces in files of a person's own: Python with SPACE or `suggest(trial)`, or YAML; named by their paths."""

from pathlib import Path
from types import ModuleType

from search_spaces.errors import InvalidSpaceError
from search_spaces.own_files import import_file, is_python_file, name_of_file

__all__ = ["load_space_file"]


def load_space_file(path: Path) -> ModuleType:
    """Return a file as a module; one that holds only `suggest(trial)` gets the SPACE that the function asks for.

    Args:
        path: of a `.py`, `.yaml` or `.yml` file.

    Raises:
        InvalidSpaceError: a YAML file has faults, all of which are listed, or `suggest` makes no space.
        PluginImportError: a Python file cannot be imported.
        OSError: a Python file cannot be read.
    """
    return _with_traced_space(import_file(path), path) if is_python_file(path.name) else _yaml_module(path)


def _yaml_module(path: Path) -> ModuleType:
    from search_spaces.yaml_file import read_yaml_space

    reading = read_yaml_space(path)
    if reading.space is None:
        raise InvalidSpaceError("\n    ".join((f"{path.name} is no search space:", *reading.faults)))
    module = ModuleType(reading.space.name, reading.space.description)
    module.__file__ = str(path.resolve())
    vars(module)["SPACE"] = reading.space
    return module


def _with_traced_space(module: ModuleType, path: Path) -> ModuleType:
    suggest = getattr(module, "suggest", None)
    if hasattr(module, "SPACE") or not callable(suggest):
        return module
    from search_spaces.define_by_run import traced

    vars(module)["SPACE"] = traced(name_of_file(path), suggest, description=(module.__doc__ or "").split("\n")[0])
    return module
