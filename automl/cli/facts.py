"""What is known about a trial in lines for people: numbers, warnings, places of files, which classes are confused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from automl.cli.tables import number, short_place, table

__all__ = ["fact_lines"]

_ESTIMATES = {"device_memory_mib": "estimated_memory_mib", "epoch_s": "estimated_epoch_s"}
"""Facts that are shown beside what was expected of them."""
_PLACES = ("profile", "tensorboard")
"""Files and folders, stored relative to the root of the artifacts."""
_MOST_IN_A_TABLE = 12
"""Classes of a confusion matrix that is shown whole."""
_MOST_PAIRS = 10


def fact_lines(facts: Mapping[str, Any], root: str) -> Iterator[str]:
    """Yield the lines.

    Args:
        facts: the attributes of a trial.
        root: of the study's artifacts on this machine.
    """
    beside = {estimate for name, estimate in _ESTIMATES.items() if name in facts}
    classes = _texts(facts.get("class_names"))
    for name, fact in facts.items():
        if name in beside:
            continue
        if name in _PLACES and isinstance(fact, str):
            yield f"{name}  {short_place(f'{root}/{fact}')}"
        elif name == "confusion" and _is_square(fact):
            yield from _confusion(fact, classes or tuple(map(str, range(len(fact)))))
        elif name == "f1_per_class" and len(classes) == len(fact):
            yield f"{name}  {', '.join(f'{known} {number(value)}' for known, value in zip(classes, fact, strict=True))}"
        elif name == "warnings" and isinstance(fact, list):
            yield from (name, *(f"  {text}" for text in fact))
        else:
            yield from _plain(name, fact, facts.get(_ESTIMATES.get(name, "")))


def _plain(name: str, fact: object, estimate: object) -> Iterator[str]:
    """A fact in a line; a text of several lines below its name, as it is."""
    text = (", ".join(map(number, fact)) if isinstance(fact, list) and fact else number(fact)).rstrip()
    expected = "" if estimate is None else f" (expected {number(estimate)})"
    yield f"{name}  {text}{expected}" if "\n" not in text else f"{name}\n{text}"


def _confusion(rows: Sequence[Sequence[int]], classes: Sequence[str]) -> Iterator[str]:
    """Which classes are taken for which: the whole matrix of few classes, the worst pairs of many."""
    if len(rows) <= _MOST_IN_A_TABLE:
        yield "confusion (a row for each true class, a column for each answer)"
        cells = [(name, *(count or "." for count in row)) for name, row in zip(classes, rows, strict=True)]
        yield from (f"  {line}" for line in table(("", *classes), cells))
        return
    pairs = sorted(
        (-count, true, answer)
        for true, row in enumerate(rows)
        for answer, count in enumerate(row)
        if true != answer and count
    )
    yield f"confusion (the most frequent of {len(pairs)} pairs)"
    for count, true, answer in pairs[:_MOST_PAIRS]:
        yield f"  {-count} of {sum(rows[true])} items of {classes[true]} taken for {classes[answer]}"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _is_square(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) and len(row) == len(value) for row in value)
