"""Tune's searcher on a study: every proposal is a trial of the study."""

import json
import logging
from pathlib import Path
from typing import Any, cast

from ray.tune.search import Searcher

from automl.errors import InvalidSpecError
from automl.integrations.ray_tune.study import TuneStudy
from automl.scheduler import Done, Wait

__all__ = ["StudySearcher"]

_log = logging.getLogger(__name__)


class StudySearcher(Searcher):
    """Proposes what the study's scheduler wants; goes together with a `StudyScheduler` of the same study.

    The state is in the database. Tune's checkpoint of the experiment holds only which of Tune's names belongs to which
    trial of the study.

    Args:
        study: the joined study.
    """

    def __init__(self, study: TuneStudy) -> None:
        super().__init__()
        self._study = study

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The configuration of the next trial; None: not now; FINISHED: never again.

        Raises:
            InvalidSpecError: the scheduler that belongs to it is missing.
        """
        if not self._study.has_scheduler:
            raise InvalidSpecError(
                ["scheduler: without StudyScheduler a trial that was stopped early cannot be told from a complete one"],
                "TuneConfig: give search_alg=StudySearcher(study) and scheduler=StudyScheduler(study)",
            )
        answer = self._study.asking.ask(trial_id)
        if isinstance(answer, Wait):
            return None
        if isinstance(answer, Done):
            _log.info("study=%s nothing more to start: %s", self._study.name, answer.reason)
            return cast(None, Searcher.FINISHED)  # a text, which Ray's own annotation lacks
        return dict(answer)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Nothing to do: the scheduler has stored and judged it."""

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Tell what the scheduler was not asked about: an error that is final, and a trial that Tune has removed."""
        if trial_id not in self._study.held:
            return
        if error:
            self._study.telling.fail_as_noted(trial_id)
        else:
            self._study.telling.give_back(trial_id)

    def save(self, checkpoint_path: str) -> None:
        """Write Tune's names of the unfinished trials."""
        state = {"study": self._study.name, "token": self._study.token, "trials": dict(self._study.held.names())}
        Path(checkpoint_path).write_text(json.dumps(state), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Read the names again; their trials are taken back when Tune wants to go on with them.

        Raises:
            InvalidSpecError: the file is of another study.
        """
        state = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        if state["token"] != self._study.token:
            raise InvalidSpecError(
                [f"study '{self._study.name}' is not the one that the experiment has joined ('{state['study']}')"],
                f"Tune's checkpoint {checkpoint_path}",
            )
        self._study.held.restore(state["trials"])
