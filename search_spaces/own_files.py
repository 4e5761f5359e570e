"""Files that lie in no package: a person's own search space or training, named by the path of its file."""

import hashlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from search_spaces.discovery import PluginImportError
from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words

__all__ = ["import_file", "is_file_reference", "is_python_file", "name_of_file", "place_in"]

_DIGEST = "__automl_digest__"


def is_file_reference(reference: str) -> bool:
    """Whether a reference names a file, of Python or YAML, rather than a name of a catalogue or a module."""
    return reference.endswith((".py", ".yaml", ".yml"))


def is_python_file(reference: str) -> bool:
    """Whether a reference names a file of Python."""
    return reference.endswith(".py")


def name_of_file(path: Path) -> str:
    """Return the name of what a file does not name itself: its stem, as far as a name may be so."""
    name = re.sub(r"\W", "_", path.stem)
    return name if name.isidentifier() else f"_{name}"


def import_file(path: Path) -> ModuleType:
    """Import a Python file; once for as long as its text stays the same.

    Its folder is put last on the import path, so that it may import what lies beside it. The module's name depends on
    the path alone: what it defines can be pickled, and read by a process that has imported the same path before.

    Raises:
        FileNotFoundError: there is no such file.
        PluginImportError: its code raises when it is imported; the message has the line.
    """
    path = path.expanduser().resolve()
    text = path.read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    name = f"automl_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, _DIGEST, None) == digest:
        return known
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = _new_module(name, path, text)
    setattr(module, _DIGEST, digest)
    return module


def place_in(path: Path, error: BaseException) -> str | None:
    """Where in a file an error was raised, such as `train.py, line 12`; None: not in that file."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path.name}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path.name}, line {lines[-1]}" if lines else None


def _new_module(name: str, path: Path, text: bytes) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickle look for it there
    try:
        # Not by the file's loader: its cache knows a text by its time and size, which an edit may leave as they were.
        exec(compile(text, str(path), "exec"), module.__dict__)
    except OWN_CODE_ERRORS as error:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        place = place_in(path, error) or path.name
        raise PluginImportError(f"{path} cannot be imported: {place}: {error_in_words(error)}") from error
    return module
