"""Reads labelled texts: from two columns of a table, or from a folder with one sub-folder of text files per class.

What the texts are cut into, and into which splits they go, is decided elsewhere. No row and no file is left out in
silence.
"""

import codecs
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from search_spaces.errors import did_you_mean
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError

if TYPE_CHECKING:
    from trainers.data.table_files import RawTable
    from trainers.data.table_targets import Targets

__all__ = ["LabelledTexts", "check_text_source", "count_text_classes", "read_texts"]

logger = logging.getLogger(__name__)

SPLIT_FOLDERS = frozenset({"train", "training", "test", "val", "valid", "validation"})
NAMED_FILES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTexts:
    """Some texts in the order of their source, each with its class.

    Attributes:
        texts: without white space around them; may be empty.
        labels_N: int64 class of each text.
        class_names: name of each class, in the order of the labels.
    """

    texts: tuple[str, ...]
    labels_N: npt.NDArray[np.int64]
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, indices: npt.NDArray[np.int64]) -> "LabelledTexts":
        """Return some of the texts."""
        return LabelledTexts(
            texts=tuple(self.texts[index] for index in indices.tolist()),
            labels_N=self.labels_N[indices],
            class_names=self.class_names,
        )


def check_text_source(spec: DataSpec) -> None:
    """Refuse sources that cannot be there or be of use, from names alone.

    Raises:
        BadDataError: the message says what was given, the nearest name, and what is allowed.
    """
    for path in _paths(spec):
        if path.is_dir():
            _class_folders(path)
        else:
            from trainers.data.table_files import table_header

            _refuse_unknown_columns(table_header(path), spec, path)


def count_text_classes(spec: DataSpec) -> int:
    """Count the classes of the source.

    Raises:
        BadDataError: the source is missing or broken.
    """
    path = _existing_path(spec.source)
    if path.is_dir():
        return len(_class_folders(path))
    from trainers.data.table_files import read_table

    named = [name for name in (spec.text, spec.target) if name is not None]
    table = read_table(path, named if len(named) == 2 else None)
    return len(_targets(table, _with_columns(table, spec)).class_names)


def read_texts(spec: DataSpec) -> tuple[LabelledTexts, LabelledTexts | None]:
    """Read the source, and the test source if there is one; its columns and classes are those of the source.

    Raises:
        BadDataError: a source is missing or broken, has no text, or texts without a class.
    """
    path, *test_paths = _paths(spec)
    if path.is_dir():
        texts = _texts_of_folder(path)
        return texts, _texts_of_folder(test_paths[0], texts.class_names) if test_paths else None
    from trainers.data.table_files import read_table

    table = read_table(path)
    spec = _with_columns(table, spec)
    targets = _targets(table, spec)
    texts = _texts_of_table(table, targets, spec)
    if not test_paths:
        return texts, None
    test = read_table(test_paths[0])
    spec = _with_columns(test, spec)
    return texts, _texts_of_table(test, targets.of_more_rows(test.columns[targets.name], test.source), spec)


def _paths(spec: DataSpec) -> list[Path]:
    """Return the path of the source and of the test source, if there is one: two files or two folders."""
    paths = [_existing_path(source) for source in (spec.source, spec.test_source) if source is not None]
    if len({path.is_dir() for path in paths}) > 1:
        raise BadDataError(f"{spec.source!r} and {spec.test_source!r}: allowed: two files or two folders")
    return paths


def _existing_path(source: str) -> Path:
    from trainers.data.table_files import TABLE_KINDS, is_table_file

    allowed = f"allowed: a {TABLE_KINDS} file, or a folder with one sub-folder of .txt files per class"
    path = Path(source).expanduser()
    if path.is_dir() or (path.is_file() and is_table_file(path)):
        return path
    if path.is_file():
        raise BadDataError(f"{source!r} is a file of an unknown kind; {allowed}")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    names = [entry.name for entry in beside if is_table_file(entry)]
    raise BadDataError(f"no data set {source!r};{did_you_mean(path.name, names)} {allowed}")


def _refuse_unknown_columns(names: Collection[str], spec: DataSpec, path: Path) -> None:
    wanted = {"text": spec.text, "target": spec.target, **{f"ignore[{i}]": name for i, name in enumerate(spec.ignore)}}
    problems = [
        f"{field}: no column {name!r};{did_you_mean(name, names)}"
        for field, name in wanted.items()
        if name is not None and name not in names
    ]
    if spec.text is not None and spec.text == spec.target:
        problems.append(f"text and target are both {spec.text!r};")
    if len(set(names) - set(spec.ignore)) < 2:
        problems.append("a column of texts and one to tell are needed;")
    if problems:
        raise BadDataError(f"{path}: {' '.join(problems)} columns: {', '.join(names)}")


def _with_columns(table: "RawTable", spec: DataSpec) -> DataSpec:
    """Return the specification with the columns that it leaves open filled in."""
    _refuse_unknown_columns(table.columns.keys(), spec, Path(table.source))
    open_names = [name for name in table.columns if name not in spec.ignore and name != spec.target]
    text = (
        spec.text or next((name for name in open_names if name.lower() == "text"), None) or _longest(table, open_names)
    )
    target = spec.target or [name for name in table.columns if name not in (*spec.ignore, text)][-1]
    if spec.text is None or spec.target is None:
        logger.info("columns chosen source=%s text=%s target=%s", table.source, text, target)
    return spec.model_copy(update={"text": text, "target": target})


def _longest(table: "RawTable", names: Sequence[str]) -> str:
    """Return the column with the longest texts; of equally long ones the first."""
    return max(names, key=lambda name: sum(len(cell) for cell in _cells(table, name)))


def _cells(table: "RawTable", name: str) -> list[str]:
    """Return the cells of a column as trimmed texts, empty where there is none."""
    from trainers.data.table_cells import cell_texts

    cells = cell_texts(table.columns[name])
    if cells is None:
        raise BadDataError(f"{table.source}: column {name!r} holds {table.columns[name].type}, no texts")
    return [cell or "" for cell in cells.to_pylist()]


def _targets(table: "RawTable", spec: DataSpec) -> "Targets":
    from trainers.data.table_targets import read_targets

    assert spec.target is not None
    return read_targets(spec.target, table.columns[spec.target], table.separator, "classes")


def _texts_of_table(table: "RawTable", targets: "Targets", spec: DataSpec) -> LabelledTexts:
    assert spec.text is not None
    missing = targets.missing
    if len(missing) and not spec.drop_missing_target:
        raise BadDataError(
            f"{table.source}: {len(missing)} of {len(table)} texts have no value in the target column "
            f"{targets.name!r} ({table.places(missing.tolist())}); fill them in, or leave them "
            "out: --drop-missing-target (in Python drop_missing_target=True)"
        )
    if len(missing):
        logger.warning("rows without a target left out source=%s count=%d", table.source, len(missing))
    kept = np.setdiff1d(np.arange(len(table)), missing)
    if len(kept) == 0:
        raise BadDataError(f"{table.source} holds no text with a value in {targets.name!r}")
    texts = LabelledTexts(
        texts=tuple(_cells(table, spec.text)), labels_N=targets.values_N, class_names=targets.class_names
    )
    return texts.at(kept)


def _class_folders(folder: Path) -> list[Path]:
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    folders = [path for path in entries if path.is_dir()]
    if len(folders) < 2:
        raise BadDataError(
            f"{folder} has {len(folders)} sub-folders; needed: one per class with its .txt files, two at least"
        )
    if all(path.name in SPLIT_FOLDERS for path in folders):
        raise BadDataError(
            f"{folder} has a folder per split ({', '.join(path.name for path in folders)}); "
            f"give {folder / 'train'} as source and {folder / 'test'} as test_source"
        )
    return folders


def _texts_of_folder(folder: Path, known: Sequence[str] | None = None) -> LabelledTexts:
    """Read the files of each class; `known`: the classes that there may be, None: those that there are."""
    folders = _class_folders(folder)
    class_names = tuple(known if known is not None else [path.name for path in folders])
    texts: list[str] = []
    labels: list[int] = []
    problems: list[str] = []
    for class_folder in folders:
        if class_folder.name not in class_names:
            problems.append(f"{class_folder.name!r} is no class of the training texts")
            continue
        own = [_text_or_problem(path, problems) for path in _text_files(class_folder, problems)]
        texts += own
        labels += [class_names.index(class_folder.name)] * len(own)
    if problems:
        more = f"; and {len(problems) - NAMED_FILES} more" if len(problems) > NAMED_FILES else ""
        raise BadDataError(f"{folder}: {'; '.join(problems[:NAMED_FILES])}{more}; repair or remove them")
    return LabelledTexts(texts=tuple(texts), labels_N=np.array(labels, dtype=np.int64), class_names=class_names)


def _text_files(folder: Path, problems: list[str]) -> list[Path]:
    """Return the text files below a class folder; note when there is none."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    found = [path for path in files if path.suffix.lower() == ".txt"]
    if len(found) < len(files):
        logger.warning("files left out folder=%s count=%d reason=no .txt file", folder, len(files) - len(found))
    if not found:
        problems.append(f"{folder} holds no .txt file")
    return found


def _text_or_problem(path: Path, problems: list[str]) -> str:
    """Return the text of a file, whatever its byte order mark; note why when there is none."""
    try:
        content = path.read_bytes()
        has_mark = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return content.decode("utf-16" if has_mark else "utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read as UTF-8 ({error})")
        return ""
