"""Who stands where among the trials, kept in order from one look at a study to the next.

A study gives the same object for a trial that has not changed, so that of 50,000 trials only the few that have are read
anew. What is kept never changes an answer: a pruner with it and one that has just been made say the same.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from studies.trial import Trial

__all__ = ["Entry", "Losses", "Standings"]

Entry: TypeAlias = tuple[float, int, int]
"""Loss, number and key of a trial; the order of these is the order of the trials, a tie going to the older one."""
Losses: TypeAlias = "Callable[[Trial], Mapping[Any, float] | None]"
"""Trial -> contest, mostly an epoch -> its loss there; None: it does not take part."""

_BLOCK = 512
_NOTHING: Mapping[Any, float] = {}


@dataclass(slots=True)
class _Part:
    trial: Trial
    losses: Mapping[Any, float]
    takes_part: bool


class Standings:
    """The losses of a study's trials in the contests where they count: at epochs, or what else a pruner compares.

    Args:
        losses: what of a trial counts; a pure function.

    Attributes:
        count: trials that take part, also before their first report.
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._seen: tuple[Trial, ...] = ()
        self._parts: dict[int, _Part] = {}
        self._at: dict[Hashable, list[Entry]] = {}
        self.count = 0

    def look(self, trials: Sequence[Trial]) -> None:
        """Take over what has changed since the last look."""
        new = tuple(trials)
        if not self._take_changes(new):
            self._seen, self._parts, self._at, self.count = (), {}, {}, 0
            self._take_changes(new)
        self._seen = new

    def at(self, contest: Hashable) -> Sequence[Entry]:
        """Those that take part in a contest, the best first."""
        return self._at.get(contest, ())

    def others_at(self, contest: Hashable, trial: Trial, loss: float, *, by_age: bool = False) -> tuple[int, int]:
        """How many others take part in a contest, and how many of them are better than a trial.

        Args:
            contest: where they are compared.
            trial: whether it was looked at or not.
            loss: what it has there.
            by_age: whether of those with equal losses the older ones are better.
        """
        entries, own = self.at(contest), self._parts.get(trial.id)
        mark: Entry | tuple[float] = (loss, trial.number, trial.id) if by_age else (loss,)
        better = bisect_left(entries, mark)
        if own is None or contest not in own.losses:
            return len(entries), better
        return len(entries) - 1, better - ((own.losses[contest], trial.number, trial.id) < mark)

    @property
    def contests(self) -> Collection[Hashable]:
        """All contests that somebody takes part in, or did."""
        return self._at.keys()

    def trial(self, entry: Entry) -> Trial:
        """The trial of an entry, as it was looked at last."""
        return self._parts[entry[2]].trial

    def place(self, contest: Hashable, entry: Entry) -> int:
        """How many are before an entry in a contest."""
        return bisect_left(self.at(contest), entry)

    def _take_changes(self, new: tuple[Trial, ...]) -> bool:
        """Whether these are the trials of the last look, changed or with new ones after them."""
        for start in range(0, max(len(new), len(self._seen)), _BLOCK):
            block, known = new[start : start + _BLOCK], self._seen[start : start + _BLOCK]
            if block == known:  # tuples compare the same objects at once
                continue
            if len(block) < len(known) or any(
                trial.id != before.id for trial, before in zip(block, known, strict=False)
            ):
                return False
            for at, trial in enumerate(block):
                if at >= len(known) or known[at] is not trial:
                    self._leave(trial.id)
                    self._join(trial)
        return True

    def _join(self, trial: Trial) -> None:
        losses = self._losses(trial)
        self._parts[trial.id] = _Part(trial, losses or _NOTHING, losses is not None)
        self.count += losses is not None
        for contest, loss in (losses or _NOTHING).items():
            insort(self._at.setdefault(contest, []), (loss, trial.number, trial.id))

    def _leave(self, key: int) -> None:
        part = self._parts.pop(key, None)
        if part is None:
            return
        self.count -= part.takes_part
        for contest, loss in part.losses.items():
            entries = self._at[contest]
            del entries[bisect_left(entries, (loss, part.trial.number, key))]
