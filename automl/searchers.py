"""Who searches a study now: the processes that hold a lease of a running trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from studies.identity import host_and_pid
from studies.study import View
from studies.trial import TrialState

__all__ = ["Searcher", "owner_in_words", "processes", "searchers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """A process that works on a study.

    Attributes:
        owner: its name as leases hold it.
        trials: numbers of the trials that it trains.
    """

    owner: str
    trials: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its name for people."""
        return owner_in_words(self.owner)

    def to_json(self) -> Mapping[str, object]:
        """Return a JSON-safe description; host and pid are null for an owner of another program."""
        host, pid = host_and_pid(self.owner) or (None, None)
        return {"host": host, "pid": pid, "trials": list(self.trials)}


def searchers(view: View) -> Sequence[Searcher]:
    """The processes that train something now, by their first trials; one that waits for a place cannot be seen."""
    gone = {trial.id for trial in view.claimable}
    trials: dict[str, list[int]] = {}
    for trial in view.trials:
        if trial.state is TrialState.RUNNING and trial.owner is not None and trial.id not in gone:
            trials.setdefault(trial.owner, []).append(trial.number)
    return [Searcher(owner=owner, trials=tuple(numbers)) for owner, numbers in trials.items()]


def processes(searching: Sequence[Searcher]) -> str:
    """How many they are: `1 process`, `2 processes`."""
    return f"{len(searching)} process{'' if len(searching) == 1 else 'es'}"


def owner_in_words(owner: str) -> str:
    """Host and pid of an owner; the name itself where it is not one of ours."""
    found = host_and_pid(owner)
    return owner if found is None else f"{found[0]} pid {found[1]}"
