"""An Optuna study in memory for its samplers to be asked on, made of trials that it does not copy."""

from collections.abc import Container, Sequence

import optuna
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, TrialState

from studies.names import Direction
from studies.optuna_chatter import without_chatter

__all__ = ["study_of"]


def study_of(trials: Sequence[FrozenTrial], direction: Direction, sampler: optuna.samplers.BaseSampler) -> optuna.Study:
    """Return an Optuna study of these trials, to be asked once.

    Args:
        trials: made for this, since they are numbered anew in their order.
        direction: whether larger or smaller objectives are better.
        sampler: who is asked.
    """
    for place, trial in enumerate(trials, start=1):
        trial.number = place  # the one that is asked for has number 0
    storage = _Shelf(trials)
    with without_chatter():
        storage.create_new_study([optuna.study.StudyDirection[direction.upper()]], "snapshot")
    return optuna.load_study(study_name="snapshot", storage=storage, sampler=sampler)


class _Shelf(InMemoryStorage):
    """Optuna's storage in memory, which would copy every trial that it is given, and every one that it gives."""

    def __init__(self, trials: Sequence[FrozenTrial]) -> None:
        super().__init__()
        self._shelf = trials

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return what is on the shelf, and what was begun since."""
        own = super().get_all_trials(study_id, deepcopy=deepcopy, states=states)
        return [trial for trial in self._shelf if states is None or trial.state in states] + own
