"""`automl search` and `automl resume`."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from automl.cli.options import DATA_FIELDS, StudyArgument, given_fields, joined_fields, with_fields
from automl.spec import SearchSpec, read_yaml

__all__ = ["QuietOption", "resume", "search"]

_RESUMABLE = (
    "space", "trainer", "script", "storage", "artifacts", "data", "test_source", "trials", "timeout", "target_value",
    "sampler", "sampler_option", "inherit_weights", "pruner", "pruner_option", "concurrency", "procs_per_trial",
    "parallel", "gpus_per_trial", "cpus_per_trial", "memory_per_trial", "spread", "precision", "max_params",
    "max_flops", "max_latency_ms", "max_memory_mib", "tensorboard", "profile", "executor", "ray_address",
    "wait_for_nodes", "trial_timeout", "stall_timeout", "max_retries", "max_failures",
)  # fmt: skip

ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="YAML file with the same fields; flags win.", metavar="FILE")
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", help="Say only how it ended.")]


@with_fields((*SearchSpec.model_fields, *DATA_FIELDS))
def search(config: ConfigOption = None, quiet: QuietOption = False, **options: Any) -> int:
    """Search for the best network and hyperparameters; a study that exists is continued.

    Nothing is needed but --space: `automl search --space nas_small`.
    """
    flags = given_fields(options)
    fields = joined_fields(read_yaml(config) if config is not None else {}, flags)
    origin = "the command line" if config is None else f"{config} and the command line" if flags else str(config)
    spec = SearchSpec.from_mapping(fields, origin)

    from automl.cli.outcome import observer_for, print_outcome
    from automl.session import run

    return print_outcome(run(spec, fields, observer_for(quiet=quiet)))


@with_fields(_RESUMABLE)
def resume(study: StudyArgument, quiet: QuietOption = False, **options: Any) -> int:
    """Go on with a study by its name, on this or another machine."""
    from automl import api
    from automl.cli.outcome import observer_for, print_outcome

    changes = given_fields(options)
    return print_outcome(api.resume(study, observer=observer_for(quiet=quiet), **changes))
