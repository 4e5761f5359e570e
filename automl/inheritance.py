"""Whose weights a new trial begins with, and where they lie. What of them fits is the trainers' to find out."""

from collections.abc import Sequence
from dataclasses import dataclass

from automl.objective import loss_of
from search_spaces.configuration import Configuration
from search_spaces.space import SearchSpace
from studies.checkpoints import CheckpointLedger
from studies.study import Study
from studies.trial import CheckpointRecord, Lease, Trial
from trainers.config import Direction

__all__ = ["INHERITED_FROM", "Origin", "find_origin", "nearest", "parent_number", "parents_of_unfinished"]

INHERITED_FROM = "inherited_from"
"""The attribute of a trial that begins with another one's weights: that one's number. It is stored with the trial's
birth, so that every attempt without a checkpoint of its own begins with the same weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What an attempt begins with.

    Attributes:
        own: the checkpoint of the trial itself that it goes on from; None: it starts anew.
        parent: the checkpoint whose weights it begins with when it starts anew; None: weights are drawn.
    """

    own: CheckpointRecord | None = None
    parent: CheckpointRecord | None = None


def nearest(
    space: SearchSpace, configuration: Configuration, trials: Sequence[Trial], direction: Direction
) -> Trial | None:
    """The trial that most weights fit of: it differs in the fewest parameters of the architecture.

    Among equals the one that differs least in the other parameters, then the best, then the oldest.

    Args:
        space: says which parameters are the architecture's.
        configuration: the child's.
        trials: to choose from; None is the answer when there is none.
        direction: of the objective.
    """
    architecture = frozenset(space.names("architecture"))

    def distance(trial: Trial) -> tuple[int, int, float, int]:
        theirs = trial.configuration
        names = {*configuration, *theirs}
        missing = object()
        different = {name for name in names if configuration.get(name, missing) != theirs.get(name, missing)}
        inside = len(different & architecture)
        return inside, len(different) - inside, loss_of(trial, direction), trial.number

    return min(trials, key=distance, default=None)


def parent_number(trial: Trial) -> int | None:
    """The number of the trial whose weights a trial begins with; None: its own are drawn."""
    number = trial.attributes.get(INHERITED_FROM)
    return number if isinstance(number, int) else None


def parents_of_unfinished(trials: Sequence[Trial]) -> frozenset[int]:
    """The keys of the trials that others, which have not ended, began with, and may have to begin with again.

    Args:
        trials: the whole study in order of the numbers.
    """
    numbers = {parent_number(trial) for trial in trials if not trial.state.is_ended}
    return frozenset(trials[number].id for number in numbers if number is not None)


def find_origin(ledger: CheckpointLedger, study: Study, lease: Lease, parent: int | None) -> Origin:
    """Find what an attempt begins with; reads files, which may take long.

    Args:
        ledger: knows the files.
        study: knows the parent.
        lease: the attempt.
        parent: number of the parent; None: there is none. Its best checkpoint counts. Where that is missing or damaged,
            which the log then says, the attempt's weights are drawn.

    Raises:
        CheckpointStoreError: the files cannot be reached.
    """
    own = ledger.latest(lease)
    if own is not None or parent is None:
        return Origin(own=own)
    return Origin(parent=ledger.best(study.trials()[parent]))
