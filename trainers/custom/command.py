"""The command line of a person's script: checked before a search, and filled in for a configuration."""

import hashlib
import re
import shlex
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from search_spaces.configuration import JsonScalar
from search_spaces.errors import did_you_mean
from trainers.errors import InvalidTrainerError, MistakeElsewhereError

__all__ = ["PLACES", "Command", "command_words", "placed_command"]

PLACES = ("data", "epochs", "seed")
"""Names that may have a place in a command besides those of the parameters."""

_PREFIX = "cd"
_NAME = r"[A-Za-z_]\w*"
_PLACE = re.compile(rf"\{{\{{(?P<escaped>{_NAME})\}}\}}|(?<!\$)\{{(?P<name>{_NAME})\}}")
"""A name in braces and nothing else: JSON, `${HOME}` and programs of awk stay as they are, and so does {{name}}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command and where it runs.

    Attributes:
        words: the program and its arguments; `{name}` stands for the value of a parameter, `{{name}}` for `{name}`.
        folder: working folder.
    """

    words: tuple[str, ...]
    folder: Path

    @classmethod
    def parse(cls, text: str) -> "Command":
        """Read a command as people write it, such as `python train.py` or `cd /srv/project && python train.py`.

        There is no shell: of its syntax only quotes and this `cd` are known.

        Raises:
            InvalidTrainerError: it is empty, has unclosed quotes, or the folder or the program does not exist.
        """
        words = command_words(text)
        folder = Path.cwd()
        if words[:1] == [_PREFIX] and words[2:3] == ["&&"]:
            folder, words = Path(words[1]).expanduser(), words[3:]
        command = cls(words=tuple(words), folder=folder.absolute())
        if problems := command._problems():
            raise InvalidTrainerError(f"{'; '.join(problems)} (the script {text!r})")
        return command

    def __str__(self) -> str:
        return f"{_PREFIX} {shlex.quote(str(self.folder))} && {shlex.join(self.words)}"

    def filled(self, values: Mapping[str, JsonScalar], places: Mapping[str, str]) -> list[str]:
        """Return the words for a configuration.

        Args:
            values: name -> value; those that have no place in the command follow as `--name value`.
            places: further names that may have a place.
        """
        texts = {name: text_of(value) for name, value in values.items()}
        known = {**places, **texts}
        used: set[str] = set()

        def place(match: re.Match[str]) -> str:
            name = match["name"]
            if name is None:
                return f"{{{match['escaped']}}}"
            if name not in known:
                return match[0]
            used.add(name)
            return known[name]

        words = [_PLACE.sub(place, word) for word in self.words]
        for name, text in texts.items():
            if name not in used:
                words += [f"--{name}", text]
        return words

    def check_places(self, names: Collection[str]) -> None:
        """Refuse places that nothing has a value for.

        Args:
            names: of the parameters.

        Raises:
            MistakeElsewhereError: with each such place, and all names that may have one.
        """
        known = sorted({*names, *PLACES})
        found = dict.fromkeys(match["name"] for word in self.words for match in _PLACE.finditer(word))
        strange = [name for name in found if name is not None and name not in known]
        if strange:
            told = "; ".join(f"no parameter {name!r} for {{{name}}}{_or_meant(name, known)}" for name in strange)
            raise MistakeElsewhereError(
                "script", f"{told}; places: {', '.join(known)}; {{{{{strange[0]}}}}} is passed on as {{{strange[0]}}}"
            )

    def digest(self) -> str:
        """Return the SHA-256 of the files that the command names."""
        digest = hashlib.sha256()
        for word in self.words[1:]:
            file = self.folder / word
            if file.is_file():
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()

    def _problems(self) -> list[str]:
        if not self.words:
            return ["it names no program; give a command such as 'python train.py'"]
        if not self.folder.is_dir():
            return [f"there is no folder {self.folder}; give the command where it can run"]
        problems = []
        if shutil.which(self._program()) is None:
            problems.append(f"there is no program {self.words[0]!r} that can be run")
        scripts = [word for word in self.words[1:] if word.endswith((".py", ".sh", ".R", ".jl")) and "{" not in word]
        problems += [f"there is no file {self.folder / word}" for word in scripts if not (self.folder / word).is_file()]
        return problems

    def _program(self) -> str:
        """The program as it is found from the folder: a path is taken from there, a name from PATH."""
        name = self.words[0]
        return str(self.folder / name) if "/" in name else name


def _or_meant(name: str, known: Collection[str]) -> str:
    hint = did_you_mean(name, known).strip()
    return f", {hint}" if hint else ""


def command_words(text: str) -> list[str]:
    """Cut a command into words as a shell does.

    Raises:
        InvalidTrainerError: a quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidTrainerError(f"{text!r} cannot be read as a command: {str(error).lower()}") from error


def placed_command(text: str) -> Sequence[str]:
    """Return the words of a command without its folder, which may differ from machine to machine."""
    words = command_words(text)
    return words[3:] if words[:1] == [_PREFIX] and words[2:3] == ["&&"] else words


def text_of(value: JsonScalar) -> str:
    """Write a value as command lines do: `true`, `false`, `none`, and numbers as Python writes them."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)
