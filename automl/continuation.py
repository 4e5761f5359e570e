"""What may change when a study goes on, and what makes its trials incomparable."""

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath

from automl.errors import InvalidSpecError
from automl.spec import SearchSpec
from search_spaces import catalog
from search_spaces.discovery import PluginImportError
from search_spaces.errors import InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError
from search_spaces.own_files import is_file_reference
from search_spaces.space import SearchSpace
from search_spaces.versions import SpaceHistory
from studies.standing import Limits
from studies.study import Study
from studies.trial import Trial, TrialState
from trainers.custom.command import placed_command
from trainers.replaced_parameters import searched_space

__all__ = [
    "FIXED",
    "LIMITS",
    "changed_fixed_fields",
    "changed_limits",
    "check_same_data",
    "check_space",
    "continued",
    "keep_space",
    "limits_of",
    "moved_data",
    "named_space",
    "note_code",
    "present_space",
    "said_fields",
    "space_history",
    "stored_fields",
    "stored_form",
    "unfinished_trials",
    "usable_trials",
]

FIXED = ("space", "trainer", "script", "set", "metric", "direction", "epochs", "seed")
"""Fields that every trial of a study shares; so are the data, which are known by their fingerprint."""
_NOT_STORED = frozenset(
    {
        "storage", "artifacts", "ray_address", "study", "concurrency", "gpus_per_trial", "cpus_per_trial",
        "memory_per_trial", "spread", "wait_for_nodes", "warm_start",
    }
)  # fmt: skip
"""Where things lie and how many fit differs from machine to machine, and a URL may hold a password."""
_OPTIONS = {"sampler": "sampler_option", "pruner": "pruner_option"}
"""Fields whose settings are those of what they name."""
LIMITS = {"trials": "trials", "timeout": "timeout_s", "target_value": "target_value"}
"""Fields that are the study's own rules, with their names there: any process may change them, and all obey at once."""
_FINGERPRINT = "data_fingerprint"
_CODE = "trainer_code"

_log = logging.getLogger(__name__)


def stored_form(spec: SearchSpec) -> Mapping[str, object]:
    """The specification as it is kept in the study: plain JSON, without places, secrets and the study's limits."""
    return spec.model_dump(mode="json", exclude={*_NOT_STORED, *LIMITS})


def limits_of(spec: SearchSpec) -> Limits:
    """The rules of the whole study that a specification holds."""
    return Limits(trials=spec.trials, timeout_s=spec.timeout, target_value=spec.target_value)


def changed_limits(study: Study, explicit: Mapping[str, object]) -> Collection[str]:
    """Which limits of a study are to be replaced: those that were given now; all where it has none yet.

    Args:
        study: as it is stored.
        explicit: the fields of a specification that were given.
    """
    if study.limits == Limits():
        return LIMITS.values()
    return [limit for name, limit in LIMITS.items() if name in explicit]


def stored_fields(study: Study) -> Mapping[str, object]:
    """The fields that a study has stored, its limits among them; empty for a study of other programs."""
    specification, limits = study.specification, study.limits
    if not specification:
        return {}
    known = {name: getattr(limits, limit) for name, limit in LIMITS.items()}
    return {**specification, **{name: value for name, value in known.items() if value is not None}}


def continued(stored: Mapping[str, object], given: SearchSpec, explicit: Mapping[str, object]) -> SearchSpec:
    """The specification of a study that goes on: what is stored, with what was said now.

    Args:
        stored: what `stored_fields` gave; empty for a study of other programs.
        given: the specification made from `explicit` alone, already valid.
        explicit: the fields that were given now; all others keep their stored value.

    Raises:
        InvalidSpecError: a fixed field is given with another value; all of them are named.
    """
    asked = given.model_dump(mode="json")
    problems = changed_fixed_fields(given.study, stored, {name: asked[name] for name in explicit if name in asked})
    if problems:
        raise InvalidSpecError(problems, f"the continuation of study '{given.study}'")
    changed = {name: asked[name] for name in {*explicit, *_NOT_STORED}}
    if "data" in explicit:
        changed["data"] = moved_data(stored, explicit["data"])
    if "space" in explicit and stored.get("trainer") == stored.get("space"):
        changed["trainer"] = asked["trainer"]  # the file of the space is also the training, and has moved with it
    for name, options in _OPTIONS.items():
        if name in explicit and asked[name] != stored.get(name):
            changed.setdefault(options, {})  # those of another one mean nothing to it
    return SearchSpec.from_mapping({**stored, **changed}, f"study '{given.study}'")


def said_fields(explicit: Collection[str]) -> frozenset[str]:
    """The fields that were given now, with those that are settled by them: a sampler comes with its options."""
    return frozenset(explicit) | {options for name, options in _OPTIONS.items() if name in explicit}


def changed_fixed_fields(study: str, stored: Mapping[str, object], given: Mapping[str, object]) -> list[str]:
    """What is given otherwise than every trial of a study shares it, a sentence each.

    Args:
        study: its name.
        stored: what `stored_fields` gave.
        given: the fields that were given now, as they are stored.
    """
    return [
        f"{name}: study '{study}' has {_show(stored[name])}, but {_show(given[name])} was given; "
        "leave it out to go on with the study, or give --study another name"
        for name in FIXED
        if name in given and name in stored and _without_place(name, given[name]) != _without_place(name, stored[name])
    ]


def moved_data(stored: Mapping[str, object], given: object) -> object:
    """The data of a study that are said to lie elsewhere now: what is not said keeps its stored value."""
    known = stored.get("data")
    said = {"source": given} if isinstance(given, str) else given
    return {**known, **said} if isinstance(said, Mapping) and isinstance(known, Mapping) else given


def check_same_data(study: Study, fingerprint: str) -> None:
    """Keep the fingerprint of a new study's data; refuse other data for a study that has one.

    Raises:
        InvalidSpecError: the items or their splits are not those that the study's trials were trained on.
    """
    known = study.attributes.get(_FINGERPRINT)
    if known is None:
        study.set_attribute(_FINGERPRINT, fingerprint)
    elif known != fingerprint:
        raise InvalidSpecError(
            [
                f"data: study '{study.name}' was made with other items or other splits (fingerprint {known[:12]}, now "
                f"{fingerprint[:12]}), so that its trials could not be compared; give --data where they lie, or "
                "--study another name"
            ],
            f"the continuation of study '{study.name}'",
        )


def note_code(study: Study, digest: str | None) -> None:
    """Keep what identifies the text of a person's own training, and say in the log when it has changed.

    It is not refused: a mistake may have been corrected, after which a study shall go on.
    """
    known = study.attributes.get(_CODE)
    if digest is None or known == digest:
        return
    if known is not None:
        _log.warning(
            "study=%s the code of its training has changed since it was last used; its trials may not be comparable",
            study.name,
        )
    study.set_attribute(_CODE, digest)


def space_history(study: Study, space: SearchSpace) -> SpaceHistory:
    """The versions of its space that a study has stored, with the present one.

    Raises:
        InvalidSpecError: a stored version cannot be read.
    """
    try:
        return SpaceHistory([SearchSpace.from_json(version) for version in study.space_versions()], space)
    except InvalidSpaceError as error:
        raise InvalidSpecError([f"space: {error}"], f"what study '{study.name}' has stored") from error


def check_space(study: Study, space: SearchSpace) -> SpaceHistory:
    """Refuse a space by which the study's trials would lose their meaning; nothing is written.

    Raises:
        InvalidSpecError: it has changed in a way that cannot be mapped; every such change is named.
    """
    history = space_history(study, space)
    if history.problems:
        raise InvalidSpecError(
            [*history.problems, "take the change back, or give the changed space a new study (--study)"],
            f"the changed search space of study '{study.name}'",
        )
    return history


def present_space(study: Study) -> SpaceHistory:
    """The space that the next run of a study would search, with the versions that were before.

    Raises:
        InvalidSpecError: other programs made the study, or its space is not on this machine or has changed too much.
    """
    name = study.specification.get("space")
    if name is None:
        raise InvalidSpecError(
            [f"study '{study.name}' has no search space; search it once: automl search --space .. --study .."],
            f"study '{study.name}'",
        )
    try:
        space = named_space(study, name)
    except (UnknownSearchSpaceError, SpaceNameClashError, InvalidSpaceError, PluginImportError) as error:
        raise InvalidSpecError([f"space: {error}"], f"study '{study.name}'") from error
    return check_space(study, space)


def named_space(study: Study, name: str) -> SearchSpace:
    """The space of a name without what the study's constants replace; one that no module defines, as the study has it.

    A program of another library may search a space that it has made itself.

    Raises:
        UnknownSearchSpaceError: nothing of that name exists, and the study has stored no version.
        InvalidSpaceError: what exists cannot be used, or the space has rules, which are not stored.
        SpaceNameClashError: two packages offer the name.
        PluginImportError: its module cannot be imported.
    """
    try:
        return searched_space(catalog.load(name, has_networks=False).SPACE, study.specification.get("set", {}))
    except UnknownSearchSpaceError:
        versions = study.space_versions()
        if not versions:
            raise
    if versions[-1]["has_refuse"] or versions[-1]["has_canonical"]:
        raise InvalidSpaceError(f"study '{study.name}' has stored its space without the rules; give the space itself")
    return SearchSpace.from_json(versions[-1])


def keep_space(study: Study, space: SearchSpace) -> SpaceHistory:
    """Store the space in its study: as version 1 of a new study, and as the next version where it has changed.

    What has changed is told in the log. It is not asked for: searches run where nobody sits.

    Raises:
        InvalidSpecError: as in `check_space`.
    """
    history = check_space(study, space)
    if history.earlier and not history.changes:
        return history
    version = study.add_space_version(space.to_json())
    for change in history.changes:
        _log.warning("study=%s space has changed: %s", study.name, change)
    if history.changes:
        trials = study.trials()
        fitting = usable_trials(history, trials)
        _log.warning("study=%s space version=%d; %d of %d trials fit it", study.name, version, fitting, len(trials))
        if unfinished := unfinished_trials(trials):
            _log.warning(
                "study=%s trials=%d go on with the configuration they were started with", study.name, unfinished
            )
    return history


def usable_trials(history: SpaceHistory, trials: Sequence[Trial]) -> int:
    """How many trials the present space can write, so that the samplers learn from them."""
    return sum(history.adopt(trial.configuration) is not None for trial in trials)


def unfinished_trials(trials: Sequence[Trial]) -> int:
    """How many trials were started and have not ended: they go on as they were, whatever the space has become."""
    return sum(trial.state in (TrialState.RUNNING, TrialState.PAUSED) for trial in trials)


def _without_place(name: str, value: object) -> object:
    """What is compared: of a file its name, and of a script its command, as both may lie elsewhere now."""
    if name == "script" and isinstance(value, str):
        return [PurePath(word).name for word in placed_command(value)]
    return PurePath(value).name if isinstance(value, str) and is_file_reference(value) else value


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    return repr(value)
