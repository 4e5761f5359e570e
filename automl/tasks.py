"""From a configuration to a task for the workers."""

from automl.artifacts import Artifacts
from automl.inheritance import Origin
from automl.randomness import training_seed
from automl.spec import SearchSpec
from search_spaces.configuration import Configuration, JsonScalar
from studies.trial import Lease
from trainers.config import TrainConfig, TrainTask
from trainers.replaced_parameters import stand_ins
from trainers.settings import full_configuration, train_config

__all__ = ["train_task", "training_of"]


def train_task(
    spec: SearchSpec,
    artifacts: Artifacts,
    lease: Lease,
    configuration: Configuration,
    origin: Origin,
    *,
    accumulate: int = 1,
) -> TrainTask:
    """The task that trains one attempt of a trial; its seed depends on the study's seed and its number alone.

    A trial of an older version of the space goes on as it was started: with hyperparameters that the space has not any
    more, and without those that have come since.

    Args:
        spec: what is searched.
        artifacts: where its files lie.
        lease: the attempt.
        configuration: the trial's.
        origin: what it goes on from, or whose weights it begins with.
        accumulate: micro-batches per step that the trial needs at least, because it ran out of memory with fewer.
    """
    training = training_of(spec, configuration, seed=training_seed(spec.seed, lease.number))
    if training.accumulate < accumulate:
        training = training.model_copy(update={"accumulate": accumulate})
    whole = full_configuration(spec.set, configuration, spec.whole_space, spec.make_trainer())
    return TrainTask(
        space=spec.space,
        configuration=whole,
        stand_ins=stand_ins(whole, configuration, spec.set, spec.whole_space),
        data=spec.data,
        training=training,
        artifacts_root=artifacts.root,
        checkpoint_dir=artifacts.checkpoint_dir(lease.number, lease.attempt),
        resume_from=None if origin.own is None else origin.own.path,
        inherit=None if origin.parent is None else origin.parent.path,
        tensorboard=artifacts.tensorboard_dir(lease.number) if spec.tensorboard else None,
        profile=spec.profile,
    )


def training_of(spec: SearchSpec, configuration: Configuration, *, seed: int) -> TrainConfig:
    """Return how a configuration is trained.

    Raises:
        ValueError: the space allows values that the training does not.

    Args:
        spec: what is searched.
        configuration: the trial's.
        seed: of its training.
    """
    fixed: dict[str, JsonScalar] = {
        "epochs": spec.epochs,
        "metric": spec.metric,
        "direction": spec.objective_direction,
        "precision": spec.precision,
        "parallel": spec.parallel,
        "seed": seed,
    }
    return train_config(spec.set, configuration, fixed, spec.search_space, spec.make_trainer())
