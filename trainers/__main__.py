"""`python -m trainers`: trains one configuration on this machine, or on ranks of torchrun, and measures it."""

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from pydantic import ValidationError

from search_spaces.own_code import OWN_CODE_ERRORS
from search_spaces.strict_json import strict_json
from trainers.config import SEARCH_FIELDS, TrainConfig
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError, PeerFailedError, UnsupportedDeviceError
from trainers.failures import explain
from trainers.kept_checkpoints import UsedFolderError
from trainers.standalone import InvalidTrainingError, Trained, train
from trainers.world import world_in

__all__ = ["main"]

_BAD_USAGE = (BadDataError, InvalidTrainingError, UnsupportedDeviceError, UsedFolderError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when it has trained, 1 when the training failed, 2 for bad usage, 130 after Ctrl-C.

    Among the ranks of torchrun the first one tells what concerns them all, and each one what concerns it alone.
    """
    given = _parser().parse_args(arguments)
    if given.debug:
        logging.basicConfig(level=logging.DEBUG, format="%(levelname).1s %(name)s %(message)s")
    rank = _rank_in_world()
    is_first = not rank
    try:
        trained = _train(given, is_first)
    except _BAD_USAGE as error:
        problems = error.problems if isinstance(error, InvalidTrainingError) else (str(error),)
        return _ended(2, [f"error: {problem}" for problem in problems] if is_first else [], given.debug)
    except KeyboardInterrupt:
        advice = f"interrupted; go on by the same command with --resume (--folder {given.folder})"
        return _ended(130, [advice] if is_first else [], given.debug)
    except OWN_CODE_ERRORS as error:
        if given.json and is_first:
            explained = explain(error)
            print(strict_json({"outcome": "failed", "cause": explained.cause, "message": explained.message}))
        return _ended(1, _failed(error, rank), given.debug)
    if is_first:
        _print_outcome(trained, given.folder, as_json=given.json)
    return 0


def _train(given: argparse.Namespace, is_first: bool) -> Trained:
    return train(
        given.space,
        _data(given),
        settings=_settings(given),
        folder=given.folder,
        resume=given.resume,
        ranks=given.ranks,
        device=given.device,
        trainer=given.trainer,
        script=given.script,
        tensorboard=given.tensorboard,
        profile=given.profile,
        on_line=_print_line if is_first and not given.json else None,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainers", description=__doc__)
    add = parser.add_argument
    add("--space", required=True, help="search space: a name, an import path, or a .py file; it builds the network")
    add("--folder", required=True, type=Path, help="where the checkpoints go")
    setting = "a parameter of the space or of the training, such as learning_rate=0.01; may be given several times"
    add("--set", action="append", default=[], metavar="NAME=VALUE", help=setting)
    for name in SEARCH_FIELDS:
        add(_flag(name), help=_help(TrainConfig, name))
    own = "a name, module:Class, or a .py file with fit(context) or datasets(source)"
    add("--trainer", help=f"who trains: {own} (default: what the space says)")
    add("--script", help='a command that trains and prints its metrics, such as "python train.py"')
    add("--resume", action="store_true", help="go on from the newest checkpoint in the folder, if there is one")
    add("--ranks", type=int, default=1, help="processes that train together (default: 1; left out under torchrun)")
    add("--device", help="cpu, cuda (a GPU for each rank) or cuda:NUMBER (default: the GPUs, or else the CPU)")
    add("--tensorboard", action="store_true", help="write curves, histograms and the graph to FOLDER/tensorboard")
    add("--profile", action="store_true", help="profile a few steps; the files go beside the checkpoints")
    add("--json", action="store_true", help="print one JSON object at the end, also of a failure, and nothing else")
    add("--debug", action="store_true", help="show tracebacks and debug messages")
    add("--data", default=DataSpec.model_fields["source"].default, help=_help(DataSpec, "source"))
    for name, field in DataSpec.model_fields.items():
        if name == "source":
            continue
        if field.annotation is bool:
            add(_flag(name), action="store_true", default=None, help=_help(DataSpec, name))
        else:
            add(_flag(name), help=_help(DataSpec, name))
    return parser


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _help(model: type[DataSpec | TrainConfig], name: str) -> str:
    return " ".join((model.model_fields[name].description or "").split()).replace("%", "%%")


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


def _settings(given: argparse.Namespace) -> Mapping[str, str]:
    """Join the flags of the training with the words of --set; text becomes numbers where a parameter is one."""
    flags = {name: getattr(given, name) for name in SEARCH_FIELDS}
    settings = {name: value for name, value in flags.items() if value is not None}
    wrong = []
    for pair in given.set:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not (name and sign):
            wrong.append(f"--set {pair}: give NAME=VALUE")
        elif name in settings:
            wrong.append(f"--set {pair}: {name} is given twice")
        settings[name] = value
    if wrong:
        raise InvalidTrainingError(wrong)
    return settings


def _rank_in_world() -> int | None:
    """The place among the ranks that torchrun has started; None: this process is alone."""
    with suppress(ValueError):  # which is told as a mistake when it is asked for in earnest
        world = world_in(os.environ)
        return None if world is None else world.rank
    return None


def _failed(error: BaseException, rank: int | None) -> list[str]:
    explained = explain(error)
    if rank is None or isinstance(error, PeerFailedError):
        return [] if rank else [f"failed ({explained.cause}): {explained.message}"]
    if not explained.is_consequence:
        return [f"rank {rank} failed ({explained.cause}): {explained.message}"]
    return [] if rank else ["failed: another rank has ended before; what it said tells why"]


def _ended(code: int, words: Sequence[str], debug: bool) -> int:
    if debug:
        traceback.print_exc()
    for line in words:
        print(line, file=sys.stderr, flush=True)
    return code


def _print_line(line: str) -> None:
    print(line, flush=True)


def _print_outcome(trained: Trained, folder: Path, *, as_json: bool) -> None:
    result = trained.result
    if as_json:
        document = {
            "outcome": result.outcome,
            "epochs": result.epoch,
            "best": None if trained.best is None else str(trained.best),
            "last": None if trained.last is None else str(trained.last),
            "metrics": dict(trained.metrics),
            "test": None if trained.test is None else dict(trained.test),
            "facts": dict(result.facts),
        }
        print(strict_json(document))
        return
    epochs = "1 epoch" if result.epoch == 1 else f"{result.epoch} epochs"
    print(f"{result.outcome} after {epochs} in {result.facts.get('seconds', 0.0):.1f} s")
    print(f"best epoch {result.facts.get('best_epoch')}: {trained.best or 'no checkpoint'}")
    if trained.test is not None:
        print("test split:", " ".join(f"{name} {value:.4f}" for name, value in trained.test.items()))
    for name in ("profile", "tensorboard"):
        if name in result.facts:
            print(f"{name}: {folder / str(result.facts[name])}")


def _leave(code: int) -> NoReturn:
    """End the process; at once where a training on several ranks has failed, as torch's open groups may not end."""
    if code and _rank_in_world() is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    _leave(main())
