"""What Ray's own tools need for the trials of `trial_startup`: Ray Train's TorchTrainer, and Ray Tune in two forms.

They write as little as they can: no checkpoints, and Tune, where it is not said otherwise, no files of results.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from ray import train, tune
from ray.train.torch import TorchTrainer
from ray.tune.search.optuna import OptunaSearch

from benchmarks.startup.trainings import loss_after, toy_data, train_toy

__all__ = ["SEED", "SPACE", "FitTimes", "ReusedTrial", "fit_with_ray_train", "function_trial", "search_with_tune"]

SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(0.0, 1.0)}
SEED = 0
"""Of the random sampler, which proposes the same to all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitTimes:
    """One `TorchTrainer.fit`; seconds.

    Attributes:
        to_first_step_s: from the call of `fit` until rank 0 begins its first step.
        to_return_s: from the end of rank 0's training until `fit` has returned.
        total_s: the whole call.
    """

    to_first_step_s: float
    to_return_s: float
    total_s: float


def fit_with_ray_train(ranks: int, epochs: int, folder: Path) -> FitTimes:
    """Train the toy once on new workers, one CPU each, as Ray Train always does."""
    trainer = TorchTrainer(
        _train_in_ray,  # type: ignore[arg-type]  # it may return what `fit` gives back; the annotation is older
        train_loop_config={"epochs": epochs},
        scaling_config=train.ScalingConfig(num_workers=ranks, resources_per_worker={"CPU": 1}),
        torch_config=train.torch.TorchConfig(backend="gloo"),
        run_config=train.RunConfig(storage_path=str(folder)),
    )
    began = time.monotonic_ns()
    result = trainer.fit()
    ended = time.monotonic_ns()
    moments = result.return_value  # type: ignore[attr-defined]  # the type is that of the older Result
    return FitTimes(
        to_first_step_s=(moments["first_step_ns"] - began) / 1e9,
        to_return_s=(ended - moments["trained_ns"]) / 1e9,
        total_s=(ended - began) / 1e9,
    )


def _train_in_ray(config: dict[Any, Any]) -> Mapping[str, int]:
    import torch.distributed as dist

    def go_on(epoch: int, loss: float) -> bool:
        train.report({"loss": loss})
        return True

    group = dist.group.WORLD if dist.is_initialized() else None
    return train_toy(toy_data(), group, config["epochs"], go_on)


class ReusedTrial(tune.Trainable):
    """A trial without a training, in an actor that takes the next one."""

    def setup(self, config: dict[str, Any]) -> None:
        """Import torch, as every training does, once per actor."""
        import torch  # noqa: F401

        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Begin the next trial."""
        self._x = new_config["x"]
        self._epochs = new_config["epochs"]
        self._epoch = 0
        return True

    def step(self) -> dict[str, Any]:
        """Report an epoch."""
        self._epoch += 1
        return {"loss": loss_after(self._epoch, self._x), "done": self._epoch == self._epochs}


def function_trial(config: dict[str, Any]) -> None:
    """Report the same trial from a function, in a process of its own."""
    import torch  # noqa: F401

    for epoch in range(1, config["epochs"] + 1):
        tune.report({"loss": loss_after(epoch, config["x"])})


class _Ends(tune.Callback):
    def __init__(self) -> None:
        self.ended_ns: list[int] = []

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self.ended_ns.append(time.monotonic_ns())

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        raise RuntimeError(f"{trial} failed: {trial.get_error()}")


def search_with_tune(
    trainable: type[tune.Trainable] | Callable[[dict[str, Any]], None],
    *,
    trials: int,
    epochs: int,
    at_once: int,
    cpus: float,
    reuse: bool,
    folder: Path,
    files: bool = False,
) -> Sequence[int]:
    """Run trials with random proposals of Optuna, in memory.

    Args:
        trainable: one of the two above.
        trials: how many.
        epochs: reports of a trial.
        at_once: trials that run at the same time.
        cpus: logical ones of a trial.
        reuse: whether an actor takes the next trial.
        folder: where Tune keeps the state of the search.
        files: whether Tune writes each trial's results in its three forms (CSV, JSON, TensorBoard), as by default.

    Returns:
        When the search began, and when the driver knew the end of each trial; nanoseconds.
    """
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "0" if files else "1"
    ends = _Ends()
    sampler = optuna.samplers.RandomSampler(seed=SEED)
    tuner = tune.Tuner(
        tune.with_resources(trainable, {"cpu": cpus}),
        param_space={"epochs": epochs},
        tune_config=tune.TuneConfig(
            search_alg=OptunaSearch(space=SPACE, metric="loss", mode="min", sampler=sampler),
            metric="loss",
            mode="min",
            num_samples=trials,
            max_concurrent_trials=at_once,
            reuse_actors=reuse,
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder),
            callbacks=[ends],
            verbose=0,
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
        ),
    )
    began = time.monotonic_ns()
    tuner.fit()
    return [began, *ends.ended_ns]
