"""What is told of each row: a class or a number, and how the target column says it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from trainers.data.table_cells import NumberForm, cell_texts, cell_values, number_form
from trainers.errors import BadDataError

__all__ = ["TargetKind", "Targets", "read_targets"]

TargetKind: TypeAlias = Literal["classes", "numbers"]

_MOST_WHOLE_NUMBERS = 20
"""Whole numbers with at most so many different values are classes, unless the trainer's name says otherwise."""
_MOST_CLASSES = 1000
"""So many classes, hardly any of them twice, are no classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The target column of some rows.

    Attributes:
        name: of the column.
        kind: classes or numbers.
        form: how numbers are written; None: the classes are texts.
        values_N: (N,) float64 numbers with NaN where there is none, or int64 classes with -1.
        class_names: names of the classes: whole numbers by size, otherwise sorted texts; empty for numbers.
        is_guess: whether more than two whole numbers were taken as classes because there are few of them.
    """

    name: str
    kind: TargetKind
    form: NumberForm | None
    values_N: npt.NDArray[Any]
    class_names: tuple[str, ...] = ()
    is_guess: bool = False

    @property
    def missing(self) -> npt.NDArray[np.int64]:
        """Rows without a target, counted from 0."""
        is_missing = np.isnan(self.values_N) if self.kind == "numbers" else self.values_N < 0
        return np.flatnonzero(is_missing)

    def of_more_rows(self, cells: Any, source: str) -> "Targets":
        """Return the target column of another file, read as this one was.

        Raises:
            BadDataError: it has classes that this one lacks, or no numbers.
        """
        if self.kind == "numbers":
            assert self.form is not None
            return Targets(name=self.name, kind="numbers", form=self.form, values_N=cell_values(cells, self.form))
        labels = _labels(cells, self.form)
        strange = sorted(set(labels) - {None, *self.class_names}, key=str)
        if strange:
            shown = ", ".join(map(repr, strange[:5]))
            raise BadDataError(
                f"{source}: {self.name!r} has values that are no class of the training file: {shown}; "
                f"its classes: {_listed(self.class_names)}"
            )
        return Targets(
            name=self.name,
            kind="classes",
            form=self.form,
            values_N=_numbered(labels, self.class_names),
            class_names=self.class_names,
        )


def read_targets(name: str, cells: Any, separator: str | None, wanted: TargetKind | None = None) -> Targets:
    """Read a target column.

    Texts and truth values are classes; numbers are numbers, except that whole numbers with at most 20 different values
    are classes. A class that is a number has one name, however it is written: `1` is `1.0`.

    Args:
        name: of the column.
        cells: a pyarrow.ChunkedArray.
        separator: of the file, see `number_form`.
        wanted: what the person has asked for; None: what the column says.

    Raises:
        BadDataError: it holds texts where numbers are wanted, dates, or nearly as many classes as rows.
    """
    form = number_form(cells, separator)
    if form == "date":
        raise BadDataError(f"the target {name!r} holds dates; needed: classes or numbers")
    if form is None and wanted == "numbers":
        raise BadDataError(
            f"the target {name!r} holds {_examples(cells)}, which are no numbers; tell them with tabular_classification"
        )
    values_N = None if form is None else cell_values(cells, form)
    is_classes = wanted == "classes" or values_N is None or (wanted is None and _are_few_whole_numbers(values_N))
    if values_N is not None and not is_classes:
        return Targets(name=name, kind="numbers", form=form, values_N=values_N)
    labels = _labels(cells, form)
    names = _class_names(labels, form)
    if len(names) > _MOST_CLASSES and 2 * len(names) > len(labels):
        raise BadDataError(
            f"the target {name!r} has {len(names)} different values in {len(labels)} rows, too many to be classes; "
            "choose another target, or tell numbers with tabular_regression"
        )
    return Targets(
        name=name,
        kind="classes",
        form=form,
        values_N=_numbered(labels, names),
        class_names=names,
        is_guess=form is not None and wanted is None and len(names) > 2,
    )


def _are_few_whole_numbers(values_N: npt.NDArray[np.float64]) -> bool:
    different = np.unique(values_N[~np.isnan(values_N)])
    return len(different) <= _MOST_WHOLE_NUMBERS and bool((different == np.round(different)).all())


def _labels(cells: Any, form: NumberForm | None) -> Sequence[str | None]:
    """Return the name of each row's class; None where it is missing."""
    if form is None:
        texts = cell_texts(cells)
        if texts is None:
            raise BadDataError(f"the target holds {cells.type}; needed: texts, truth values or numbers")
        labels: list[str | None] = texts.to_pylist()
        return labels
    numbers = cell_values(cells, form).tolist()
    return [None if number != number else _spelled(number) for number in numbers]


def _spelled(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _class_names(labels: Sequence[str | None], form: NumberForm | None) -> tuple[str, ...]:
    different = {label for label in labels if label is not None}
    return tuple(sorted(different, key=float) if form is not None else sorted(different))


def _numbered(labels: Sequence[str | None], names: Sequence[str]) -> npt.NDArray[np.int64]:
    places: dict[str | None, int] = {None: -1, **{name: place for place, name in enumerate(names)}}
    return np.array([places[label] for label in labels], dtype=np.int64)


def _examples(cells: Any) -> str:
    texts = cell_texts(cells)
    return str(cells.type) if texts is None else _listed([str(text) for text in texts.unique().to_pylist()])


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - 5} more"] if len(names) > 5 else []
    return ", ".join([*map(repr, names[:5]), *more])
