"""Settings that change nothing because of another one; whoever gives such a setting expects something else.

Loads no torch, so that a plan can be refused before anything is trained.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from search_spaces.configuration import JsonScalar
from trainers.data.spec import DataSpec

__all__ = ["idle_options", "idle_settings"]


class _Need(NamedTuple):
    """What a setting needs to have an effect.

    Attributes:
        switch: the other setting.
        values: that it must have one of.
        words: the same for people.
    """

    switch: str
    values: Callable[[JsonScalar], bool]
    words: str


def _one_of(*values: JsonScalar) -> Callable[[JsonScalar], bool]:
    return lambda value: value in values


_STEP = _Need("schedule", _one_of("step"), "step")
_NEEDS = {
    "momentum": _Need("optimizer", _one_of("sgd", "rmsprop", "muon"), "sgd, rmsprop or muon"),
    "focal_gamma": _Need("loss", _one_of("focal"), "focal"),
    "schedule_power": _Need("schedule", _one_of("polynomial"), "polynomial"),
    "schedule_drops": _STEP,
    "schedule_factor": _STEP,
    "reference_batch_size": _Need("learning_rate_scaling", _one_of("linear", "sqrt"), "linear or sqrt"),
    "min_change": _Need("patience", lambda value: value != 0, "1 or more"),
}


def idle_settings(given: Collection[str], values_of: Callable[[str], Sequence[JsonScalar]]) -> list[str]:
    """Return which of the given settings have no effect in any training, one sentence each; empty: all have one.

    Args:
        given: names of settings with one value for all trainings.
        values_of: gives the values that a setting has in the trainings: one, or those that are searched.
    """
    mistakes = []
    for name, need in _NEEDS.items():
        values = values_of(need.switch) if name in given else ()
        if values and not any(map(need.values, values)):
            shown = " or ".join(str(value) for value in values)
            mistakes.append(
                f"{name} has no effect with {need.switch}={shown}; give {need.switch}={need.words}, or leave {name} out"
            )
    return mistakes


def idle_options(data: DataSpec, meaningful: Collection[str], kind: str) -> list[str]:
    """Return in a sentence which options of the data are given and mean nothing; empty: none.

    Args:
        data: where an option has its usual value, it is not given.
        meaningful: those that have a meaning for such data.
        kind: what the data are, in words.
    """
    others = [name for name in _OF_SOME_DATA if name not in meaningful]
    idle = [name for name in others if getattr(data, name) != DataSpec.model_fields[name].default]
    if not idle:
        return []
    shown = ", ".join(_option(name) for name in idle)
    known = ", ".join(_option(name) for name in _OF_SOME_DATA if name in meaningful)
    return [f"{shown} means nothing for {kind}, which has {known}; leave it out"]


_OF_SOME_DATA = (
    "target", "text", "tokens", "vocabulary", "max_length", "ignore", "drop_missing_target", "image_size",
)  # fmt: skip
"""Options that mean something for some kinds of data only."""


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
