"""Options that several verbs share, and options made from the fields of a specification."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import typer

from automl.spec import SearchSpec

__all__ = ["JsonOption", "StorageOption", "StudyArgument", "given_fields", "with_fields"]

StorageOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--storage", help="Database URL. Default: where the study was last used.", metavar="URL"),
]
StudyArgument: TypeAlias = Annotated[str, typer.Argument(help="Name of the study.", metavar="STUDY")]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON; numbers that it lacks are the texts nan, inf and -inf.")
]


def with_fields(names: Sequence[str]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command one option for each of these fields of `SearchSpec`.

    All are text here: the specification turns them into numbers, so that every mistake is found at once.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
        options = [_option(name) for name in names]
        command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]  # read by typer
        command.__annotations__ = {p.name: p.annotation for p in (*own, *options)} | {"return": int}
        return command

    return decorate


def given_fields(options: Mapping[str, Any]) -> dict[str, object]:
    """The options that were given; the others keep their defaults or stored values."""
    return {name: value for name, value in options.items() if value is not None}


def _option(name: str) -> inspect.Parameter:
    field = SearchSpec.model_fields[name]
    text = " ".join((field.description or "").split())
    flag = f"--{name.replace('_', '-')}"
    if field.annotation is bool:
        annotation: Any = Annotated[bool | None, typer.Option(flag, help=text)]
    else:
        if isinstance(field.default, str | int | float) and field.default != "":
            default = f"{field.default:g}" if isinstance(field.default, float) else field.default
            text += f" Default: {default}."
        annotation = Annotated[str | None, typer.Option(flag, help=text, metavar=_METAVARS.get(name, "TEXT"))]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_METAVARS = {
    "artifacts": "FOLDER|URL",
    "concurrency": "N|auto",
    "cpus_per_trial": "N",
    "data": "DATA",
    "direction": "maximize|minimize",
    "epochs": "N",
    "executor": "ray|inline",
    "gpus_per_trial": "N",
    "max_failures": "N",
    "max_params": "N",
    "max_retries": "N",
    "memory_per_trial": "SIZE",
    "metric": "NAME",
    "precision": "auto|fp32|bf16|fp16",
    "procs_per_trial": "N",
    "pruner": "NAME",
    "ray_address": "HOST:PORT|auto",
    "sampler": "NAME",
    "seed": "N",
    "space": "NAME",
    "stall_timeout": "SECONDS",
    "storage": "URL",
    "study": "NAME",
    "target_value": "VALUE",
    "timeout": "SECONDS",
    "trial_timeout": "SECONDS",
    "trials": "N",
    "wait_for_nodes": "SECONDS",
    "warm_start": "STUDY|FILE",
}
