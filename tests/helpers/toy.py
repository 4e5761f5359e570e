"""A trainer and a space without a network: the objective is a formula, so that every outcome is known beforehand.

The loss after epoch e is (x - 0.3)**2 + 1 / e. A `mood` other than `fine` makes rank 0 or the last rank misbehave in
the second epoch, or in the one that `bad_epoch` names; `epoch_s` is how long an epoch takes (see the space in
`moody_toy`). A mood is one of the strange values, or a deed of `_DEEDS` and who does it: `hang_0`, `raise_last`,
`diverge_all`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Never

from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from trainers.artifact_files import local_copy, write_file
from trainers.config import Direction, EvaluateTask, TrainTask
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError, NonFiniteLossError
from trainers.reporting import CheckpointFile, Decision, Report, Reporter, TrialResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = ["MOODS", "ORPHAN", "SPACE", "ToyTrainer", "build_model", "loss_after"]

MOODS = ("fine", "raise_0", "raise_last", "exit_0", "exit_last", "nan", "inf", "-inf", "none", "text", "silent")


class _Unreadable:
    """Can be sent, and not be read."""

    def __reduce__(self) -> tuple[Callable[[], Never], tuple[()]]:
        return _refuse, ()


def _refuse() -> Never:
    raise LookupError("nobody can read what the toy has reported")


_STRANGE_VALUES: Mapping[str, Any] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "none": None,
    "text": "0.3",
    "unreadable": _Unreadable(),
    "unsendable": (letter for letter in "text"),
}
ORPHAN = "import time; time.sleep(3600)  # the child of a toy"
"""The program of a process that a toy has started, to find it by."""
_HOARD_STEP = 64 * 2**20
_HOARD_MOST = 8 * 2**30

SPACE = SearchSpace(
    "toy",
    {
        "x": Float(low=0.0, high=1.0, role="architecture"),
    },
    task="tests.helpers.toy:ToyTrainer",
    description="A formula instead of a training.",
)


def build_model(configuration: Mapping[str, Any], input_shape: tuple[int, int, int], num_classes: int) -> None:
    raise AssertionError("the toy trainer builds no network")


def loss_after(epoch: int, x: float) -> float:
    return (x - 0.3) ** 2 + 1 / epoch


class ToyTrainer(Trainer):
    hyperparameters: ClassVar[frozenset[str]] = frozenset({"x"})
    metrics: ClassVar[Mapping[str, Direction]] = {"loss": "minimize", "accuracy": "maximize"}

    def check(self, data: DataSpec) -> None:
        if data.source != "digits":
            raise BadDataError(f"the toy trainer has no data {data.source!r}; it knows 'digits'")

    def load(self, data: DataSpec) -> str:
        return data.source

    def fingerprint(self, data: Any) -> str:
        return f"toy-{data}"

    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        first = 1 + (0 if task.resume_from is None else _read(f"{task.artifacts_root}/{task.resume_from}"))
        epochs = task.training.epochs
        for epoch in range(first, epochs + 1):
            time.sleep(_number(task, "epoch_s"))
            decision = ranks.broadcast_decision(self._train(task, ranks, reporter, epoch))
            if decision is not Decision.CONTINUE:
                return TrialResult(outcome="stopped" if decision is Decision.STOP else "paused", epoch=epoch)
            if _mood(task) == "silent":
                break
        return TrialResult(outcome="completed", epoch=epochs, facts={"world_size": ranks.world_size})

    def evaluate(self, task: EvaluateTask, data: Any, ranks: "Ranks") -> Mapping[str, float]:
        return {"loss": float(_read(f"{task.artifacts_root}/{task.checkpoint}"))}

    def _train(self, task: TrainTask, ranks: "Ranks", reporter: Reporter, epoch: int) -> Decision | None:
        mood = _mood(task)
        is_bad = epoch == (_number(task, "bad_epoch") or 2)
        if is_bad:
            _misbehave(mood, ranks)
        if ranks.rank > 0:
            return None
        if mood == "silent":
            return Decision.CONTINUE
        loss = loss_after(epoch, _number(task, "x"))
        loss = _STRANGE_VALUES.get(mood, loss) if is_bad else loss
        accuracy = -loss if isinstance(loss, float) else loss
        checkpoint = _write(task, epoch)
        return reporter(Report(epoch=epoch, metrics={"loss": loss, "accuracy": accuracy}, checkpoint=checkpoint))


def _mood(task: TrainTask) -> str:
    return str(task.configuration.get("mood", "fine"))


def _number(task: TrainTask, name: str) -> float:
    value = task.configuration.get(name, 0.0)
    assert isinstance(value, float)
    return value


def _misbehave(mood: str, ranks: "Ranks") -> None:
    deed, _, who = mood.rpartition("_")
    place = {"0": 0, "last": ranks.world_size - 1, "all": ranks.rank}.get(who)
    if place == ranks.rank and deed in _DEEDS:
        _DEEDS[deed](ranks)


def _raise(ranks: "Ranks") -> Never:
    raise ZeroDivisionError(f"the toy of rank {ranks.rank} divides by zero")


def _diverge(ranks: "Ranks") -> Never:
    raise NonFiniteLossError(f"the loss of rank {ranks.rank} is nan")


def _exit(ranks: "Ranks") -> Never:
    os._exit(3)


def _quit(ranks: "Ranks") -> Never:
    sys.exit("the toy has had enough")


def _hang(ranks: "Ranks") -> None:
    time.sleep(3600)


def _hoard(ranks: "Ranks") -> None:
    """Take memory, and use it, until somebody ends this."""
    hoard: list[bytearray] = []
    while len(hoard) * _HOARD_STEP < _HOARD_MOST:
        hoard.append(bytearray(b"x" * _HOARD_STEP))
        time.sleep(0.02)
    raise AssertionError("nobody has ended the toy that takes all the memory")


def _beget(ranks: "Ranks") -> None:
    """Start a process that outlives the toy, if it may."""
    subprocess.Popen([sys.executable, "-c", ORPHAN])


def _beget_and_exit(ranks: "Ranks") -> Never:
    _beget(ranks)
    os._exit(3)


def _beget_and_hang(ranks: "Ranks") -> None:
    _beget(ranks)
    _hang(ranks)


_DEEDS: Mapping[str, Callable[["Ranks"], None]] = {
    "beget": _beget,
    "beget+exit": _beget_and_exit,
    "beget+hang": _beget_and_hang,
    "diverge": _diverge,
    "exit": _exit,
    "hang": _hang,
    "hoard": _hoard,
    "quit": _quit,
    "raise": _raise,
}


def _write(task: TrainTask, epoch: int) -> CheckpointFile:
    path = f"{task.checkpoint_dir}/epoch-{epoch:04d}.json"
    content = json.dumps({"epoch": epoch}).encode()
    facts = write_file(f"{task.artifacts_root}/{path}", lambda file: file.write(content))
    return CheckpointFile(path=path, epoch=epoch, digest=facts.digest, size_bytes=facts.size_bytes)


def _read(location: str) -> int:
    with local_copy(location) as file:
        return int(json.loads(file.read_bytes())["epoch"])
