"""Reads table files as named columns: compression, encoding and separator are found out from the file itself.

What the columns mean (numbers, categories, labels) is decided elsewhere. A file is read whole or refused: rows that are
too short, two columns of one name or bytes that are no text are never passed over.
"""

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from trainers.errors import BadDataError

__all__ = ["TABLE_KINDS", "RawTable", "is_table_file", "read_table", "table_header"]

TABLE_KINDS = ".csv, .tsv or .parquet (also as .csv.gz, .bz2 or .zst)"
"""What may be read, for messages."""

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 2**16
_SAMPLE_ROWS = 20
_BLOCK_BYTES = 2**24
"""A cell must fit into one block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """The columns of a table as they were written.

    Attributes:
        source: the file, or the name of a built-in table.
        columns: name -> pyarrow.ChunkedArray, in the order of the file. Of a text file all are texts, and an empty cell
            is null; other files give what they hold.
        separator: between the cells of a text file; None for other files.
        kept: which rows of the source these are, counted from 0; None: all.
    """

    source: str
    columns: Mapping[str, Any]
    separator: str | None = None
    kept: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def places(self, rows: Sequence[int], most: int = 10) -> str:
        """Say where rows (counted from 0) are: `lines 5 and 19` of a text file, otherwise rows counted from 1."""
        shown = [int(row if self.kept is None else self.kept[row]) for row in rows[:most]]
        if self.separator is None:
            word, numbers = "row", [row + 1 for row in shown]
        else:
            word, numbers = "line", _line_numbers(Path(self.source), self.separator, shown)
        more = [f"{len(rows) - most} more"] if len(rows) > most else []
        texts = [*map(str, numbers), *more]
        listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
        return f"{word}{'s' if len(rows) > 1 else ''} {listed}"


def is_table_file(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return _kind(path) in (".csv", ".tsv", ".parquet")


def table_header(path: Path) -> tuple[str, ...]:
    """Return the names of a file's columns; only its beginning is read.

    Names are trimmed; a column without one is called `column N`, counted from 1.

    Raises:
        BadDataError: the file is empty or broken, has two columns of one name, or begins with numbers.
    """
    with _errors_named(path):
        if _kind(path) == ".parquet":
            import pyarrow.parquet

            names = list(pyarrow.parquet.read_schema(path).names)
        else:
            sample, _ = _sample(path)
            reader = csv.reader(io.StringIO(sample), delimiter=_separator(sample, path))
            names = next((cells for cells in reader if cells), [])
    return _checked_names(names, path)


def read_table(path: Path, only: Collection[str] | None = None) -> RawTable:
    """Read a table.

    Args:
        path: a file for which `is_table_file` holds.
        only: names of the columns to read; None: all.

    Raises:
        BadDataError: see `table_header`; or a row has too few or too many cells, or bytes are no text.
    """
    import pyarrow.parquet

    names = table_header(path)
    with _errors_named(path):
        if _kind(path) == ".parquet":
            table, separator = pyarrow.parquet.read_table(path).rename_columns(list(names)), None
            table = table.select([name for name in names if only is None or name in only])
        else:
            table, separator = _read_text(path, names, only)
    return RawTable(
        source=str(path), columns=dict(zip(table.column_names, table.columns, strict=True)), separator=separator
    )


def _read_text(path: Path, names: Sequence[str], only: Collection[str] | None) -> tuple[Any, str]:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    sample, encoding = _sample(path)
    separator = _separator(sample, path)
    wanted = [name for name in names if only is None or name in only]
    with _stream(path) as stream:
        if encoding in ("utf-16", "utf-32"):
            stream = pa.BufferReader(stream.read().decode(encoding).encode())
        table = pacsv.read_csv(
            stream,
            # one thread: only then do errors have a row number
            pacsv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=list(names),
                skip_rows=_blank_lines(sample),
                skip_rows_after_names=1,
            ),
            pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
            pacsv.ConvertOptions(
                column_types={name: pa.string() for name in wanted},
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    return table, separator


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Say in our words why a file cannot be read."""
    import pyarrow as pa

    try:
        yield
    except (UnicodeDecodeError, csv.Error, pa.ArrowInvalid) as error:
        reason = str(error).partition("\n")[0]
        if "UTF8" in reason or isinstance(error, UnicodeDecodeError):
            reason += "; if it is Windows-1252, convert it: iconv -f WINDOWS-1252 -t UTF-8"
        raise BadDataError(f"{path} cannot be read as a table: {reason}") from error
    except (OSError, EOFError, pa.ArrowException) as error:
        raise BadDataError(f"{path} cannot be read: {error}") from error


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] != ".parquet" else ""
    return suffixes[-1] if suffixes else ""


@contextmanager
def _stream(path: Path) -> Iterator[Any]:
    import pyarrow as pa

    with pa.input_stream(str(path), compression=_COMPRESSIONS.get(path.suffix.lower())) as stream:
        yield stream


def _sample(path: Path) -> tuple[str, str]:
    """Return the first whole lines of a text file, one at least, and its encoding."""
    size = _SAMPLE_BYTES
    with _stream(path) as stream:
        head: bytes = stream.read(size)
        encoding = _encoding(head, path)
        while len(head) == size and not _whole_lines(head, encoding).strip():  # a long header goes on
            if size >= _BLOCK_BYTES:
                raise BadDataError(f"{path} has no end of a line in its first {size // 2**20} MiB: it is no table")
            head += stream.read(size)
            size *= 2
    is_whole = len(head) < size
    return head.decode(encoding) if is_whole else _whole_lines(head, encoding), encoding


def _encoding(head: bytes, path: Path) -> str:
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
    if encoding.startswith("utf-8") and b"\0" in head:
        raise BadDataError(
            f"{path} holds NUL bytes: it is no text, or UTF-16 without a mark; save it as UTF-8 with commas"
        )
    return encoding


def _whole_lines(head: bytes, encoding: str) -> str:
    """Return the beginning of a file up to the last end of a line in it, which the cut behind it leaves alone."""
    text = head.decode(encoding, errors="ignore")
    return text[: text.rfind("\n") + 1]


def _separator(sample: str, path: Path) -> str:
    """Return the separator that cuts the first lines into the most cells, as many in each."""
    if _kind(path) == ".tsv":
        return "\t"
    most, chosen = 1, None
    for candidate in _SEPARATORS:
        counts = _cells_per_row(sample, candidate)
        if len(counts) == 1 and max(counts) > most:
            most, chosen = max(counts), candidate
    if chosen is None:  # rows of different lengths are refused later; the header knows best
        header = sample.lstrip("\r\n").partition("\n")[0]
        chosen = max(_SEPARATORS, key=header.count)
    return chosen


def _cells_per_row(sample: str, separator: str) -> set[int]:
    rows = islice(csv.reader(io.StringIO(sample), delimiter=separator), _SAMPLE_ROWS)
    try:
        return {len(row) for row in rows if row}
    except csv.Error:  # without its separator, a long line is one cell beyond the reader's limit
        return set()


def _blank_lines(sample: str) -> int:
    """Return how many lines before the header are empty."""
    return sum(1 for _ in takewhile(lambda line: not line.strip("\r\n"), io.StringIO(sample, newline="")))


def _checked_names(names: Sequence[str], path: Path) -> tuple[str, ...]:
    clean = [str(name).strip() or f"column {place}" for place, name in enumerate(names, start=1)]
    if not clean:
        raise BadDataError(f"{path} is empty; needed: a line of column names, then rows")
    if all(_is_number(name) for name in clean):
        raise BadDataError(f"{path} begins with numbers ({', '.join(clean[:3])}); needed: a first line of column names")
    twins = {name: [i + 1 for i, other in enumerate(clean) if other == name] for name in clean}
    problems = [f"columns {' and '.join(map(str, at))} are both named {name!r}" for name, at in twins.items() if at[1:]]
    if problems:
        raise BadDataError(f"{path}: {'; '.join(problems)}; rename them, so that each can be meant")
    return tuple(clean)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line_numbers(path: Path, separator: str, rows: Sequence[int]) -> list[int]:
    """Return the line in which each row of a text file begins, counted from 1; cells may hold line breaks."""
    _, encoding = _sample(path)
    lines: list[int] = []
    with _stream(path) as stream:
        reader = csv.reader(io.TextIOWrapper(stream, encoding=encoding, newline=""), delimiter=separator)
        number, begin = -1, 1
        for cells in reader:
            if cells:
                if number in rows:
                    lines.append(begin)
                if len(lines) == len(rows):
                    break
                number += 1
            begin = reader.line_num + 1
    return lines
