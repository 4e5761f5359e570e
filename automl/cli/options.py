"""Options that several verbs share, and options made from the fields of a specification."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import typer

from automl.configuration_text import row_of_words
from automl.spec import SearchSpec
from trainers.data.spec import DataSpec

__all__ = [
    "DATA_FIELDS",
    "JsonOption",
    "StorageOption",
    "StudyArgument",
    "given_fields",
    "joined_fields",
    "with_fields",
]

DATA_FIELDS = tuple(name for name in DataSpec.model_fields if name != "source")
"""Fields of `DataSpec` with an option of their own; `source` is `--data`."""

StorageOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--storage", help="Database URL. Default: where the study was last used.", metavar="URL"),
]
StudyArgument: TypeAlias = Annotated[str, typer.Argument(help="Name of the study.", metavar="STUDY")]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON; numbers that it lacks are the texts nan, inf and -inf.")
]


def with_fields(names: Sequence[str]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command one option for each of these fields of `SearchSpec`, or of its `data`.

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
    """The options that were given; the others keep their defaults or stored values.

    What describes the data comes together as `data`: a source alone, or a mapping.

    Raises:
        InvalidSpecError: a word of `--set`, or of an option like it, is not NAME=VALUE.
    """
    given = {name: value for name, value in options.items() if value is not None and value != []}
    data = {name: given.pop(name) for name in DATA_FIELDS if name in given}
    if data:
        given["data"] = data | ({"source": given["data"]} if "data" in given else {})
    for name in _PAIRS:
        if name in given:
            given[name] = dict(row_of_words(given[name]).parameters)
    return given


def joined_fields(file: Mapping[str, object], flags: Mapping[str, object]) -> dict[str, object]:
    """The fields of a file with those of the command line, which win; data and constants are joined name by name."""
    joined = {**file, **flags}
    for name in ("data", *_PAIRS):
        if name in file and name in flags:
            both = [_as_mapping(name, fields[name]) for fields in (file, flags)]
            joined[name] = {**both[0], **both[1]} if all(isinstance(part, Mapping) for part in both) else flags[name]
    return joined


def _as_mapping(name: str, value: Any) -> Any:
    return {"source": value} if name == "data" and isinstance(value, str) else value


def _option(name: str) -> inspect.Parameter:
    field = (SearchSpec if name in SearchSpec.model_fields else DataSpec).model_fields[name]
    text = " ".join((field.description or "").split())
    flag = f"--{name.replace('_', '-')}"
    if field.annotation is bool:
        annotation: Any = Annotated[bool | None, typer.Option(flag, help=text)]
    elif name in _REPEATED:
        annotation = Annotated[list[str] | None, typer.Option(flag, help=text, metavar=_METAVARS[name])]
    else:
        if isinstance(field.default, str | int | float) and field.default != "":
            default = f"{field.default:g}" if isinstance(field.default, float) else field.default
            text += f" Default: {default}."
        annotation = Annotated[str | None, typer.Option(flag, help=text, metavar=_METAVARS.get(name, "TEXT"))]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_PAIRS = ("set", "sampler_option", "pruner_option")
"""Fields that are names with their values."""
_REPEATED = (*_PAIRS, "ignore")
"""Fields whose options may be given several times."""

_METAVARS = {
    "artifacts": "FOLDER|URL",
    "concurrency": "N|auto",
    "cpus_per_trial": "N",
    "data": "DATA",
    "direction": "maximize|minimize",
    "epochs": "N",
    "executor": "ray|inline",
    "gpus_per_trial": "N",
    "ignore": "COLUMN",
    "image_size": "PIXELS",
    "max_failures": "N",
    "max_flops": "N",
    "max_latency_ms": "MS",
    "max_memory_mib": "MIB",
    "max_params": "N",
    "max_retries": "N",
    "max_length": "N",
    "memory_per_trial": "SIZE",
    "metric": "NAME",
    "parallel": "auto|ddp|fsdp|pipeline",
    "precision": "auto|fp32|tf32|bf16|fp16",
    "procs_per_trial": "N",
    "pruner": "NAME",
    "pruner_option": "NAME=VALUE",
    "ray_address": "HOST:PORT|auto",
    "sampler": "NAME",
    "sampler_option": "NAME=VALUE",
    "script": "COMMAND",
    "seed": "N",
    "set": "NAME=VALUE",
    "space": "NAME",
    "split_seed": "N",
    "stall_timeout": "SECONDS",
    "storage": "URL",
    "study": "NAME",
    "target": "COLUMN",
    "target_value": "VALUE",
    "test_fraction": "SHARE",
    "test_source": "DATA",
    "text": "COLUMN",
    "timeout": "SECONDS",
    "tokens": "auto|character|word",
    "trainer": "NAME|FILE",
    "trial_timeout": "SECONDS",
    "trials": "N",
    "validation_fraction": "SHARE",
    "vocabulary": "N",
    "wait_for_nodes": "SECONDS",
    "warm_start": "STUDY|FILE",
}
