"""Which trials a figure shows when all of them would make it unreadable, and how that is said."""

from collections.abc import Sequence

from studies.figures.snapshot import StudySnapshot
from studies.trial import Trial

__all__ = ["left_out", "representative"]


def representative(snapshot: StudySnapshot, trials: Sequence[Trial], most: int) -> tuple[Trial, ...]:
    """Return at most `most` trials: the best half of them, the rest spread evenly over the study.

    Args:
        snapshot: gives the ranking.
        trials: the trials to choose from.
        most: at least 2.
    """
    if len(trials) <= most:
        return tuple(trials)
    among = {trial.number for trial in trials}
    best = [trial.number for trial in snapshot.ranking if trial.number in among][: most // 2]
    others = [trial for trial in trials if trial.number not in set(best)]
    places = most - len(best)
    spread = {others[index * len(others) // places].number for index in range(places)}
    return tuple(trial for trial in trials if trial.number in spread.union(best))


def left_out(shown: int, all_of_them: int, kind: str = "trials") -> str:
    """Return the sentence that says how many of the trials are drawn; empty when all are."""
    if shown == all_of_them:
        return ""
    return f"Drawn: {shown:,} of {all_of_them:,} {kind}, the best ones and others spread evenly."
