"""Studies to draw: an ordinary one, and the odd ones that break plots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from numpy.random import default_rng

from studies.figures.snapshot import StudySnapshot
from studies.trial import JsonScalar, Trial, TrialState

Direction = Literal["maximize", "minimize"]
START = datetime(2025, 3, 14, 9, 26, 53, tzinfo=UTC)
ENDED = {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.INFEASIBLE}
OPERATIONS = ("none", "skip", "conv1x1", "conv3x3", "avg_pool")


@dataclass(frozen=True, kw_only=True)
class StoredStudy:
    """A study as the database gives it, with the trials in memory."""

    name: str
    direction: Direction = "minimize"
    specification: Mapping[str, object] = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)
    stored: Sequence[Trial] = ()

    def trials(self) -> tuple[Trial, ...]:
        return tuple(self.stored)


def trial(
    number: int,
    state: TrialState = TrialState.COMPLETE,
    value: float | None = None,
    reports: Mapping[int, float] | None = None,
    cause: str | None = None,
    error: str | None = None,
    started_at: datetime | None = None,
    seconds: float = 5.0,
    **configuration: JsonScalar,
) -> Trial:
    started = (started_at or START + timedelta(seconds=3 * number)) if state is not TrialState.QUEUED else None
    return Trial(
        id=number + 1,
        number=number,
        state=state,
        configuration=configuration,
        reports=dict(reports or {}),
        value=value,
        cause=cause,
        attempt=1,
        started_at=started,
        ended_at=started + timedelta(seconds=seconds) if started is not None and state in ENDED else None,
        attributes={} if error is None else {"error": error},
    )


def ordinary_study(count: int = 60, epochs: int = 8, seed: int = 0) -> StoredStudy:
    """An architecture search as it should go: most trials pruned, a few failed, the best near the end."""
    rng = default_rng(seed)
    trials = []
    for number in range(count):
        configuration: dict[str, JsonScalar] = {
            f"edge_{a}_{b}": OPERATIONS[rng.integers(len(OPERATIONS))] for b in (1, 2, 3) for a in range(b)
        }
        rate = float(10 ** rng.uniform(-4, -1))
        channels = int(rng.choice([8, 16, 24, 32]))
        optimizer = str(rng.choice(["sgd", "adam", "adamw"]))
        configuration |= {"channels": channels, "learning_rate": rate, "optimizer": optimizer}
        configuration |= {"batch_size": 32, "dropout": float(rng.uniform(0, 0.4))}
        convolutions = sum(value == "conv3x3" for value in configuration.values())
        ceiling = 0.98 - 0.06 * abs(math.log10(rate) + 2.3) - 0.02 * (3 - min(convolutions, 3)) - 0.2 / channels
        curve = {
            e: round(float(ceiling * (1 - math.exp(-0.6 * e)) + rng.normal(0, 0.006)), 4) for e in range(1, epochs + 1)
        }
        lane = number % 4
        started = START + timedelta(seconds=22 * (number // 4) + 2 * lane)
        if number % 23 == 11:
            state = trial(number, TrialState.FAILED, None, {1: curve[1]}, "oom", "CUDA out of memory", started, 4)
        elif number % 29 == 17:
            state = trial(
                number,
                TrialState.INFEASIBLE,
                cause="infeasible",
                error="no path from input to output",
                started_at=started,
                seconds=0,
            )
        elif curve[2] < 0.62 and number > 8:
            state = trial(number, TrialState.PRUNED, None, {1: curve[1], 2: curve[2]}, started_at=started, seconds=6)
        else:
            state = trial(number, TrialState.COMPLETE, curve[epochs], curve, started_at=started, seconds=19 + lane)
        trials.append(with_configuration(state, configuration))
    return StoredStudy(
        name="digits",
        direction="maximize",
        specification={"metric": "accuracy"},
        attributes={"test": {"accuracy": 0.9694, "balanced accuracy": 0.9671}},
        stored=trials,
    )


def with_configuration(example: Trial, configuration: Mapping[str, JsonScalar]) -> Trial:
    return Trial(
        **{name: getattr(example, name) for name in Trial.__slots__ if name != "configuration"},
        configuration=dict(configuration),
    )


def snapshot(*trials: Trial, direction: Direction = "minimize") -> StudySnapshot:
    return StudySnapshot(name="odd", direction=direction, metric="loss", trials=trials)
