"""A person's folder with a study of toys in it, searched by the command line on a private or an existing cluster."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import select

from search_spaces.space import SearchSpace
from studies.errors import StudyNotFoundError
from studies.schema.tables import automl_reports
from studies.storage import Storage
from studies.trial import Trial, TrialState
from tests.helpers.commands import Command, environment_of

__all__ = ["Home"]

NAME = "sought"


class Home:
    """Where searches are started.

    Args:
        folder: holds the database and everything else.
        address: the cluster to join; None: a private one.
        environment: what is set beside the usual.
    """

    def __init__(self, folder: Path, address: str | None = None, **environment: str) -> None:
        self.folder, self.address = folder, address
        self.storage = f"sqlite:///{folder}/studies.db"
        self._environment: Mapping[str, str] = environment_of(folder, **environment)

    def search(self, *more: str | int) -> Command:
        joined = () if self.address is None else ("--ray-address", self.address)
        arguments = (
            "search", "--study", NAME, "--storage", self.storage, "--metric", "loss", "--sampler", "random",
            "--pruner", "none", *joined, *more,
        )  # fmt: skip
        return self._command(*arguments)

    def resume(self) -> Command:
        return self._command("resume", NAME)

    def enqueue(self, space: SearchSpace, *moods: str) -> None:
        """Make the study, with a queued trial for each mood."""
        study = Storage(self.storage).create_study(NAME, direction="minimize")
        for index, mood in enumerate(moods):
            configuration = space.validate({"x": index / len(moods), "mood": mood})
            study.enqueue([configuration], space.distributions())

    def trials(self, *states: TrialState) -> tuple[Trial, ...]:
        try:
            with Storage(self.storage) as storage:
                return storage.open_study(NAME).trials(list(states) or None)
        except StudyNotFoundError:
            return ()  # not begun yet

    def running_at(self, epoch: int) -> list[Trial]:
        return [trial for trial in self.trials(TrialState.RUNNING) if trial.last_epoch >= epoch]

    def epochs_of(self, trial: Trial) -> list[tuple[int, int]]:
        """Each stored epoch with the attempt that trained it."""
        table = automl_reports.c
        query = select(table.epoch, table.attempt).where(table.trial_id == trial.id).order_by(table.epoch)
        with Storage(self.storage) as storage, storage.engine.connect() as connection:
            return [(row.epoch, row.attempt) for row in connection.execute(query)]

    def _command(self, *arguments: str | int) -> Command:
        return Command(*arguments, folder=self.folder, environment=self._environment)
