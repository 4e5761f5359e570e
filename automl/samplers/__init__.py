"""The samplers: one file, one method; the file's name is the name that people give."""

from typing import TYPE_CHECKING

from search_spaces.configuration import JsonScalar

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

__all__ = ["as_optuna"]


def as_optuna(name: str, *, seed: int | None = None, **options: JsonScalar) -> "BaseSampler":
    """Return one of our samplers for a plain Optuna program, as `optuna.create_study(sampler=...)`.

    Args:
        name: as for `automl search --sampler`, such as `surrogate_evolution`.
        seed: of all proposals, with each trial's number; None: a random one.
        options: settings of the sampler, such as `population_size=20`.

    Raises:
        UnknownPluginError: there is no such sampler.
        ValueError: a setting is unknown, its value is not allowed, or it needs networks.
    """
    from automl.samplers.optuna_adapter import OptunaAdapter

    return OptunaAdapter(name, seed=seed, **options)
