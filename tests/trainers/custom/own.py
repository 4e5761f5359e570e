"""Short ways to try a person's own training in tests."""

import textwrap
from pathlib import Path
from typing import Any

from search_spaces.configuration import JsonScalar
from trainers.config import TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.distributed import Ranks
from trainers.reporting import Decision, Report, TrialResult
from trainers.tasks import load_trainer

__all__ = ["Reports", "own_task", "train", "write"]


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


class Reports(list[Report]):
    """A reporter that remembers, and answers what it was told to; otherwise CONTINUE."""

    def __init__(self, decisions: dict[int, Decision] | None = None) -> None:
        super().__init__()
        self._decisions = decisions or {}

    def __call__(self, report: Report) -> Decision:
        self.append(report)
        return self._decisions.get(report.epoch, Decision.CONTINUE)


def own_task(
    root: Path,
    space: str = "tests.trainers.tiny_space",
    configuration: dict[str, JsonScalar] | None = None,
    **training: Any,
) -> TrainTask:
    resume_from = training.pop("resume_from", None)
    return TrainTask(
        space=space,
        configuration={"x": 0.5} if configuration is None else configuration,
        training=TrainConfig(**{"epochs": 3, "seed": 5, **training}),
        artifacts_root=str(root / "artifacts"),
        checkpoint_dir="trial-0",
        resume_from=resume_from,
    )


def train(
    reference: str | Path, task: TrainTask, reports: Reports | None = None, source: str = "digits"
) -> tuple[TrialResult, Reports]:
    trainer = load_trainer(str(reference))
    reports = Reports() if reports is None else reports
    data = trainer.load(DataSpec(source=source))
    return trainer.fit(task, data, Ranks.alone("cpu"), reports), reports
