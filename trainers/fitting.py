"""Trains and measures one configuration: sets a learner up, resumes it, and names what goes wrong."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import PurePath
from typing import TypeAlias

import torch

from trainers.checkpoint import Checkpoint, read_checkpoint
from trainers.config import EvaluateTask, TrainTask
from trainers.distributed import Ranks, forget_frames
from trainers.early_stopping import BestEpoch
from trainers.errors import BadDataError, DamagedCheckpointError, DeviceMemoryError, is_out_of_memory
from trainers.learner import Learner
from trainers.loop import Progress, run_epochs
from trainers.memory_format import arrange, resolve_memory_format
from trainers.networks import build_network
from trainers.parallel.replicas import Replicas
from trainers.precision import MixedPrecision, float32_arithmetic, resolve_precision
from trainers.problem import Problem
from trainers.reporting import JsonValue, Reporter, TrialResult
from trainers.watching import Watch

__all__ = ["ProblemOn", "check_belongs", "evaluate", "fit"]

ProblemOn: TypeAlias = Callable[[torch.device], Problem]
"""Makes a problem on a device; may fail for want of memory there."""


def fit(task: TrainTask, problem_on: ProblemOn, ranks: Ranks, reporter: Reporter) -> TrialResult:
    """Train one configuration; see `trainers.trainer.Trainer.fit`. The test split is not touched.

    Torch's global generators are seeded on the way (random layers have no other) and restored at the end.
    """
    training = task.training
    with (
        _own_generators(ranks),
        _named_memory_errors(training.batch_size, ranks),
        _released(ranks),
        float32_arithmetic(resolve_precision(training.precision, ranks.device), ranks.device),
        closing(Watch(task, ranks)) as watch,
    ):
        progress = Progress(
            best=BestEpoch(direction=training.direction, patience=training.patience, min_change=training.min_change)
        )
        with ranks.together("setting up the training"):
            problem = problem_on(ranks.device)
            learner = Learner(task, problem, ranks, watch)
            if task.resume_from is not None:
                progress = _resume(learner, task, problem, progress, ranks)
            learner.open_watch(progress.epoch + 1)
        try:
            learner.connect()
            return run_epochs(learner, task, progress, ranks, reporter)
        finally:
            learner.disconnect()


def evaluate(task: EvaluateTask, problem_on: ProblemOn, ranks: Ranks) -> Mapping[str, float]:
    """Measure a checkpoint's weights on one split; see `trainers.trainer.Trainer.evaluate`."""
    used = resolve_precision(task.precision, ranks.device)
    with _own_generators(ranks), _named_memory_errors(None, ranks), float32_arithmetic(used, ranks.device):
        problem = problem_on(ranks.device)
        items = problem.items(task.split)
        precision = MixedPrecision(used, ranks.device)
        with ranks.together("loading the checkpoint"):
            checkpoint = read_checkpoint(f"{task.artifacts_root}/{task.checkpoint}")
            network = build_network(task.space, task.configuration, problem)
            _load_weights(network.load_state_dict, checkpoint, task.checkpoint)
            network.to(ranks.device)
        arrange(network, resolve_memory_format("auto", ranks.device, used, problem.has_images))
        parallel = Replicas(network, ranks, precision, problem.example(), problem.items_per_pass)
        return parallel.measure(items, problem.items_per_pass, problem.meter())


def _resume(learner: Learner, task: TrainTask, problem: Problem, progress: Progress, ranks: Ranks) -> Progress:
    assert task.resume_from is not None
    checkpoint = learner.read_checkpoint(f"{task.artifacts_root}/{task.resume_from}")
    check_belongs(checkpoint, task, problem.fingerprint)
    _load_weights(lambda weights: learner.load_state(weights, checkpoint.optimization), checkpoint, task.resume_from)
    return Progress(epoch=checkpoint.epoch, best=progress.best.restored(checkpoint.best), checkpoint=task.resume_from)


def check_belongs(checkpoint: Checkpoint, task: TrainTask, fingerprint: str) -> None:
    """Refuse to go on with a checkpoint of another trial or other data: the result would be neither's.

    A space in a file may have moved; its name counts.

    Raises:
        DamagedCheckpointError: the checkpoint is of another trial.
        BadDataError: the data are not those of this fingerprint.
    """
    stored = checkpoint.blueprint
    # Older releases wrote what the network is built with, and own code is told what was asked for.
    configuration = task.asked_for() if "built_with" in stored else dict(task.configuration)
    known = _mapping(stored["configuration"])
    compared = [
        ("space", PurePath(str(stored["space"])).name, PurePath(task.space).name),
        *((name, known.get(name), configuration.get(name)) for name in dict.fromkeys([*known, *configuration])),
        ("seed", checkpoint.seed, task.training.seed),
    ]
    differing = [f"{name}: checkpoint {theirs!r}, task {ours!r}" for name, theirs, ours in compared if theirs != ours]
    if differing:
        raise DamagedCheckpointError(f"checkpoint {task.resume_from} is of another trial; {'; '.join(differing)}")
    if stored["fingerprint"] != fingerprint:
        raise BadDataError(
            f"the data or their splits have changed since checkpoint {task.resume_from} was written: "
            f"fingerprint {stored['fingerprint']}, now {fingerprint}"
        )


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    assert isinstance(value, Mapping), "a blueprint's configuration has names"
    return value


def _load_weights(load: Callable[[Mapping[str, torch.Tensor]], object], checkpoint: Checkpoint, path: str) -> None:
    try:
        load(checkpoint.network)
    except (RuntimeError, ValueError, KeyError) as error:
        raise DamagedCheckpointError(f"checkpoint {path} does not fit the network: {error}") from error


@contextmanager
def _own_generators(ranks: Ranks) -> Iterator[None]:
    """Restore torch's global generators afterwards."""
    devices = [ranks.device] if ranks.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


@contextmanager
def _released(ranks: Ranks) -> Iterator[None]:
    """Let an error leave without holding the wrapper that would block the closing of the ranks' groups."""
    try:
        yield
    except BaseException as error:
        if ranks.world_size > 1:
            forget_frames(error)
        raise


@contextmanager
def _named_memory_errors(batch_size: int | None, ranks: Ranks) -> Iterator[None]:
    """Turn every way of running out of memory into DeviceMemoryError."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        size = f"batch_size={batch_size}, " if batch_size is not None else ""
        raise DeviceMemoryError(
            f"out of memory on {ranks.device} ({size}world_size={ranks.world_size}): {error}; "
            "use a smaller batch_size or more accumulate, or a smaller network"
        ) from error
    finally:
        if ranks.device.type == "cuda":
            torch.cuda.empty_cache()  # the next trial in this process may need blocks of other sizes
