"""What has changed between two versions of a search space, in words, and what becomes of old trials."""

from collections.abc import Iterator, Sequence

from search_spaces.conditions import is_same
from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Integer, Parameter
from search_spaces.space import SearchSpace

__all__ = ["changes_between", "kind_in_words", "old_trials_may_have"]


def changes_between(older: SearchSpace, newer: SearchSpace) -> tuple[str, ...]:
    """Return every change of a space in words, one line each; () when nothing has changed."""
    changes = []
    if older.task != newer.task:
        changes.append(f"task: {older.task!r} -> {newer.task!r}")
    if older.name != newer.name:
        changes.append(f"name: {older.name!r} -> {newer.name!r}")
    for name, parameter in newer.parameters.items():
        if name in older.parameters:
            changes += [f"{name}: {text}" for text in _changes_of(older.parameters[name], parameter)]
            changes += [f"{name}: {text}" for text in _changed_dependencies(name, older, newer)]
        else:
            changes.append(f"{name} is new, {_old_trials(name, older, newer)}")
    changes += [f"{name} was removed" for name in older.parameters if name not in newer.parameters]
    return (*changes, *_changed_defaults(older, newer))


def old_trials_may_have(name: str, older: SearchSpace, newer: SearchSpace) -> bool:
    """Whether a new parameter is there beside some values of an older space; its condition may ask for what is new."""
    for parent, allowed in newer.parameters[name].condition.items():
        if parent in older.parameters:
            if all(older.parameters[parent].problem(value) for value in allowed):
                return False
        elif not old_trials_may_have(parent, older, newer) or not _counts_as_one_of(parent, allowed, newer):
            return False
    return True


def _counts_as_one_of(parent: str, allowed: Sequence[JsonScalar], newer: SearchSpace) -> bool:
    """Whether the default with which old trials count for a new parent is one of those allowed."""
    return newer.defaults is None or any(is_same(newer.defaults.get(parent), value) for value in allowed)


def _old_trials(name: str, older: SearchSpace, newer: SearchSpace) -> str:
    condition = newer.parameters[name].condition
    if not old_trials_may_have(name, older, newer):
        return f"there only when {condition}, as no old trial is"
    if newer.defaults is None:
        return "without a default that old trials could count as"
    which = f"old trials with {condition}" if condition else "old trials"
    if name in newer.defaults:
        return f"{which} count as {name}={newer.defaults[name]!r} (the default)"
    return f"{which} are left out, as the defaults have no {name}"


def _changes_of(old: Parameter, new: Parameter) -> list[str]:
    if isinstance(old, Categorical) and isinstance(new, Categorical):
        texts = _changed_choices(old, new)
    elif isinstance(old, Float | Integer) and isinstance(new, type(old)):
        texts = _changed_range(old, new)
    else:
        texts = [f"{kind_in_words(old)} -> {kind_in_words(new)}"]
    return texts if old.role == new.role else [*texts, f"role {old.role} -> {new.role}"]


def _changed_dependencies(name: str, older: SearchSpace, newer: SearchSpace) -> Iterator[str]:
    old, new = older.parameters[name], newer.parameters[name]
    if old.condition != new.condition:
        yield f"there when {old.condition or 'ever'} -> when {new.condition or 'ever'}, {_without(name, newer)}"
    for side in ("at_least", "at_most"):
        before, now = getattr(old, side, None), getattr(new, side, None)
        if before != now:
            yield f"{side.replace('_', ' ')} {before} -> {now}, trials outside are left out"


def _without(name: str, newer: SearchSpace) -> str:
    """What becomes of old trials when the condition of a parameter has changed."""
    if newer.defaults is None or name not in newer.defaults:
        return "trials that differ are left out"
    value = newer.defaults[name]
    return f"old trials that lack it count as {name}={value!r} (the default), those that must not have it are left out"


def _changed_choices(old: Categorical, new: Categorical) -> list[str]:
    texts = [f"choice {choice!r} is new" for choice in new.choices if old.problem(choice)]
    texts += [
        f"choice {choice!r} was removed, trials with it are left out" for choice in old.choices if new.problem(choice)
    ]
    if not texts and old.choices != new.choices:
        texts.append(f"order of the choices {_listed(old)} -> {_listed(new)}")
    if old.ordered != new.ordered:
        texts.append("the choices are ordered now" if new.ordered else "the choices are no longer ordered")
    return texts


def _changed_range(old: Float | Integer, new: Float | Integer) -> list[str]:
    texts = []
    if (old.low, old.high) != (new.low, new.high):
        texts.append(f"range {_range(old)} -> {_range(new)} ({_direction(old, new)})")
    if old.log != new.log:
        texts.append(f"scale {_scale(old)} -> {_scale(new)}")
    if old.step != new.step:
        texts.append(f"step {_step(old)} -> {_step(new)}{'' if new.step is None else ', trials between are left out'}")
    return texts


def _direction(old: Float | Integer, new: Float | Integer) -> str:
    if new.low <= old.low and old.high <= new.high:
        return "wider"
    left_out = "trials outside are left out"
    return f"narrower, {left_out}" if old.low <= new.low and new.high <= old.high else f"moved, {left_out}"


def _changed_defaults(older: SearchSpace, newer: SearchSpace) -> Iterator[str]:
    old, new = older.defaults, newer.defaults
    if old is None or new is None:
        if old is not new:
            yield "defaults are new" if old is None else "the defaults were removed"
        return
    for name in new:
        if name in old and (type(old[name]), old[name]) != (type(new[name]), new[name]):
            yield f"{name}: default {old[name]!r} -> {new[name]!r}"


def kind_in_words(parameter: Parameter) -> str:
    """Return what kind of parameter it is, with its values: `integer 0..3`, `choices a|b`."""
    if isinstance(parameter, Categorical):
        return f"choices {_listed(parameter)}"
    return f"{'float' if isinstance(parameter, Float) else 'integer'} {_range(parameter)}"


def _listed(parameter: Categorical) -> str:
    return "|".join(map(str, parameter.choices))


def _range(parameter: Float | Integer) -> str:
    return f"{parameter.low!r}..{parameter.high!r}"


def _scale(parameter: Float | Integer) -> str:
    return "log" if parameter.log else "linear"


def _step(parameter: Float | Integer) -> str:
    return "none" if parameter.step is None else repr(parameter.step)
