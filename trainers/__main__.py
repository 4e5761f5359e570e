"""`python -m trainers`: trains one configuration on this machine and measures it."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from search_spaces.discovery import PluginImportError
from search_spaces.errors import InvalidSpaceError, SpaceNameClashError, UnknownSearchSpaceError
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError, InvalidTrainerError, TrialError, UnknownTrainerError
from trainers.kept_checkpoints import UsedFolderError
from trainers.reporting import Report
from trainers.standalone import InvalidTrainingError, Trained, train

__all__ = ["main"]

_BAD_USAGE = (
    BadDataError, InvalidSpaceError, InvalidTrainerError, InvalidTrainingError, PluginImportError, SpaceNameClashError,
    UnknownSearchSpaceError, UnknownTrainerError, UsedFolderError,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when it has trained, 1 when the training failed, 2 for bad usage, 130 after Ctrl-C."""
    given = _parser().parse_args(arguments)
    try:
        trained = train(
            given.space,
            _data(given),
            settings=_settings(given.set),
            folder=given.folder,
            resume=given.resume,
            ranks=given.ranks,
            device=given.device,
            trainer=given.trainer,
            on_report=None if given.json else _print_report,
        )
    except _BAD_USAGE as error:
        return _refused(error.problems if isinstance(error, InvalidTrainingError) else [str(error)])
    except TrialError as error:
        print(f"failed ({error.cause}): {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; go on with --resume --folder {given.folder}", file=sys.stderr)
        return 130
    _print_outcome(trained, as_json=given.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainers", description=__doc__)
    parser.add_argument("--space", required=True, help="search space that builds the network")
    parser.add_argument("--folder", required=True, type=Path, help="where the checkpoints go")
    setting = "a parameter of the space or of the training, such as epochs=12; may be repeated"
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=setting)
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in the folder")
    parser.add_argument("--ranks", type=int, default=1, help="processes that train together (default: 1)")
    parser.add_argument("--device", help="of every rank, such as cpu (default: the GPUs, or else the CPU)")
    parser.add_argument("--trainer", help="who trains (default: what the space says)")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end, and nothing else")
    parser.add_argument("--data", default=DataSpec.model_fields["source"].default, help=_help("source"))
    for name, field in DataSpec.model_fields.items():
        if name == "source":
            continue
        if field.annotation is bool:
            parser.add_argument(_flag(name), action="store_true", default=None, help=_help(name))
        else:
            parser.add_argument(_flag(name), help=_help(name))
    return parser


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _help(name: str) -> str:
    return " ".join((DataSpec.model_fields[name].description or "").split()).replace("%", "%%")


def _data(given: argparse.Namespace) -> DataSpec:
    values = {name: getattr(given, name) for name in DataSpec.model_fields if name != "source"}
    values = {name: value for name, value in values.items() if value is not None}
    if "ignore" in values:
        values["ignore"] = tuple(part.strip() for part in values["ignore"].split(","))
    try:
        return DataSpec(source=given.data, **values)
    except ValidationError as error:
        raise InvalidTrainingError(
            [
                f"{_flag(str(details['loc'][0])) if details['loc'] else 'data'}: {details['msg']}"
                for details in error.errors(include_url=False)
            ]
        ) from None


def _settings(pairs: Sequence[str]) -> Mapping[str, Any]:
    """Read NAME=VALUE; a value is read as YAML reads it, so that 3 is a number and true is a truth value."""
    wrong = [f"--set {pair}: give NAME=VALUE" for pair in pairs if "=" not in pair]
    if wrong:
        raise InvalidTrainingError(wrong)
    split = (pair.partition("=") for pair in pairs)
    return {name.strip(): _value(text) for name, _, text in split}


def _value(text: str) -> Any:
    try:
        return float(text) if "e" in text.lower() and not text.strip().isalpha() else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return text


def _refused(problems: Sequence[str]) -> int:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 2


def _print_report(report: Report) -> None:
    shown = " ".join(f"{name} {value:.4g}" for name, value in report.metrics.items())
    print(f"epoch {report.epoch} {shown}", flush=True)


def _print_outcome(trained: Trained, *, as_json: bool) -> None:
    result = trained.result
    if as_json:
        document = {
            "outcome": result.outcome,
            "epochs": result.epoch,
            "best": str(trained.best),
            "last": str(trained.last),
            "metrics": dict(trained.metrics),
            "test": None if trained.test is None else dict(trained.test),
            "facts": dict(result.facts),
        }
        print(json.dumps(document, allow_nan=False))
        return
    print(f"{result.outcome} after {result.epoch} epochs in {result.facts.get('seconds', 0.0):.1f} s")
    print(f"best epoch {result.facts.get('best_epoch')}: {trained.best}")
    if trained.test is not None:
        print("test split:", " ".join(f"{name} {value:.4f}" for name, value in trained.test.items()))


if __name__ == "__main__":
    sys.exit(main())
