"""A person's own file: loaded once, its errors told with their line, its objects carried to other processes."""

import hashlib
import operator
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, SupportsIndex, get_args

from search_spaces.own_files import import_file, place_in
from trainers.config import Direction
from trainers.errors import InvalidTrainerError, TrialError, UnknownTrainerError, UserCodeError, is_out_of_memory

__all__ = ["Carried", "OwnFile", "open_file", "own_code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """A Python file that defines a training, or parts of one.

    Attributes:
        path: absolute.
        module: what it defines.
    """

    path: Path
    module: ModuleType

    def function(self, name: str) -> Callable[..., Any] | None:
        """Return a function that the file defines; None: it defines none of that name."""
        found = getattr(self.module, name, None)
        return found if callable(found) else None

    def metrics(self) -> Mapping[str, Direction]:
        """Return METRICS, what the file says it measures; empty without it.

        Raises:
            InvalidTrainerError: it is no mapping of names to directions.
        """
        given = getattr(self.module, "METRICS", {})
        directions = get_args(Direction)
        if isinstance(given, Mapping) and all(isinstance(k, str) and v in directions for k, v in given.items()):
            return MappingProxyType(dict(given))
        raise InvalidTrainerError(
            f"{self.path}: METRICS is {given!r}; needed: name -> maximize or minimize, "
            'such as {"accuracy": "maximize"}'
        )

    def digest(self) -> str:
        """Return the SHA-256 of the file's text as it is now."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


class Carried:
    """Something of a person's file, such as an object of a class there, that other processes can be given.

    A process that was given it imports the file when it first asks for the value. Arrays are not copied on the way,
    where the pickler can avoid it.

    Args:
        file: path of the file.
        value: what is carried.
    """

    def __init__(self, file: str, value: Any) -> None:
        self._file = file
        self._unpack: Callable[[], Any] | None = None
        self._value = value

    @property
    def value(self) -> Any:
        """What is carried.

        Raises:
            FileNotFoundError: the file is not on this machine.
            PluginImportError: it cannot be imported here.
        """
        if self._unpack is not None:
            import_file(Path(self._file))
            self._value, self._unpack = self._unpack(), None
        return self._value

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Callable[..., "Carried"], tuple[Any, ...]]:
        buffers: list[pickle.PickleBuffer] = []
        # Buffers can stand beside the content from protocol 5 on only; multiprocessing uses an older one.
        aside = buffers.append if operator.index(protocol) >= 5 else None
        content = pickle.dumps(self.value, protocol=5, buffer_callback=aside)
        return _arrived, (self._file, content, buffers)


def open_file(reference: str) -> OwnFile:
    """Load a person's file.

    Raises:
        UnknownTrainerError: there is no such file.
        PluginImportError: it cannot be imported; the message has the line.
    """
    path = Path(reference).expanduser().resolve()
    try:
        return OwnFile(path=path, module=import_file(path))
    except FileNotFoundError as error:
        raise UnknownTrainerError(f"no trainer {reference!r}; there is no such file") from error


@contextmanager
def own_code(path: Path) -> Iterator[None]:
    """Give an error that a person's file has raised its place there.

    Errors that know their cause, and those of memory, stay as they are.

    Raises:
        UserCodeError: with file, line and the error's own words.
    """
    try:
        yield
    except TrialError:
        raise
    except Exception as error:
        place = place_in(path, error) or _place_in_text(path, str(error))
        if place is None or is_out_of_memory(error):
            raise
        raise UserCodeError(f"{place}: {_in_words(error)}") from error


def _arrived(file: str, content: bytes, buffers: Sequence[Any]) -> Carried:
    arrived = Carried(file, None)
    arrived._unpack = partial(pickle.loads, content, buffers=buffers)
    return arrived


def _place_in_text(path: Path, text: str) -> str | None:
    """Find the file in the traceback that an error of another process brings as text."""
    lines = re.findall(rf'File "{re.escape(str(path))}", line (\d+)', text)
    return f"{path.name}, line {lines[-1]}" if lines else None


def _in_words(error: Exception) -> str:
    text = str(error).strip()
    if "Traceback (most recent call last)" in text:  # of another process: the last line is the error itself
        return text.splitlines()[-1]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
