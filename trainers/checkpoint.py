"""Checkpoint files: all that a training needs to go on exactly where it stood, in one file per epoch.

Which files are kept is decided elsewhere; this module only writes and reads them.
"""

import pickle
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from trainers.artifact_files import Location, local_copy, write_file
from trainers.errors import DamagedCheckpointError
from trainers.reporting import CheckpointFile, JsonValue

__all__ = ["Checkpoint", "checkpoint_name", "read_checkpoint", "write_checkpoint"]

FORMAT = "automl checkpoint 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state of a training after an epoch.

    The order of the data, augmentation and the random states of all ranks follow from (seed, epoch, rank)
    alone, see `trainers.seeds`; so the seed and the epoch are the random state, for any number of ranks.

    Attributes:
        epoch: number of finished epochs, at least 1; training goes on with the first item of the next one.
        seed: the seed of the trial.
        network: weights and buffers by name.
        optimization: optimizer, gradient scaler, steps made (the position of the schedule), skipped steps.
        best: history of the objective, for early stopping.
        metrics: what was measured after this epoch.
        blueprint: what builds and feeds the network: `space`, `configuration`, `input_shape`, `class_names`,
            `mean`, `std`, `precision`, and the `fingerprint` of the data (plain JSON).
    """

    epoch: int
    seed: int
    network: Mapping[str, torch.Tensor]
    optimization: Mapping[str, Any]
    best: Mapping[str, float | int | None]
    metrics: Mapping[str, float]
    blueprint: Mapping[str, JsonValue]


def checkpoint_name(epoch: int) -> str:
    """Return the file name of an epoch's checkpoint; names sort like epochs."""
    return f"epoch-{epoch:04d}.pt"


def write_checkpoint(checkpoint: Checkpoint, root: Location, relative: str) -> CheckpointFile:
    """Write a checkpoint so that its name never shows an unfinished file, not even after a power cut.

    Args:
        checkpoint: tensors may live on any device and be in use; they are copied.
        root: the artifacts root, a folder or a URL.
        relative: POSIX path of the file below `root`; folders are made.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
        RuntimeError: torch's word for the same; the OSError is its context.
        ArtifactStoreError: the store of a URL does not take it.
    """
    state = {field.name: getattr(checkpoint, field.name) for field in fields(checkpoint)}
    content = {"format": FORMAT, **_packed(state)}
    facts = write_file(f"{root}/{relative}", lambda file: torch.save(content, file))
    return CheckpointFile(path=relative, epoch=checkpoint.epoch, digest=facts.digest, size_bytes=facts.size_bytes)


def read_checkpoint(location: Location, device: torch.device | str = "cpu") -> Checkpoint:
    """Read a checkpoint, with every byte checked and no code run.

    Args:
        location: the file or the URL.
        device: where its tensors shall be, wherever they were when it was written.

    Raises:
        DamagedCheckpointError: the file is missing, cut short, altered, or no checkpoint of this version.
        ArtifactStoreError: the store of a URL does not give it.
    """
    try:
        with local_copy(location) as path:
            content = _read_checked(path, device)
    except FileNotFoundError as error:
        raise DamagedCheckpointError(f"checkpoint {location} is missing") from error
    except (OSError, EOFError, zipfile.BadZipFile, RuntimeError, pickle.UnpicklingError) as error:
        raise DamagedCheckpointError(f"checkpoint {location} is cut short or damaged: {error}") from error
    names = {field.name for field in fields(Checkpoint)}
    if not isinstance(content, dict) or content.get("format") != FORMAT or not names <= set(content):
        raise DamagedCheckpointError(f"{location} is no {FORMAT!r} file")
    return Checkpoint(**{name: content[name] for name in names})


def _read_checked(path: Path, device: torch.device | str) -> object:
    with zipfile.ZipFile(path) as archive:
        broken = archive.testzip()  # torch.load itself does not compare the checksums
    if broken is not None:
        raise zipfile.BadZipFile(f"{broken} fails its checksum")
    return torch.load(path, map_location=device, weights_only=True)


def _packed(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of nested dicts and lists whose tensors are views of one CPU tensor per dtype.

    `torch.save` writes each storage as a file of its own inside the archive, and a transfer from a device has
    a fixed cost; a small network has hundreds of tensors, so packing makes writing several times faster.
    """
    found: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    _replace_tensors(tree, lambda tensor: found.setdefault(_kind(tensor), []).append(tensor))
    rest = {kind: torch.cat([t.detach().reshape(-1) for t in tensors]).cpu() for kind, tensors in found.items()}

    def take(tensor: torch.Tensor) -> torch.Tensor:
        flat = rest[_kind(tensor)]
        rest[_kind(tensor)] = flat[tensor.numel() :]
        return flat[: tensor.numel()].view(tensor.shape)

    packed: dict[str, Any] = _replace_tensors(tree, take)
    return packed


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, torch.device]:
    return tensor.dtype, tensor.device


def _replace_tensors(tree: Any, replace: Callable[[torch.Tensor], Any]) -> Any:
    """Return a copy of nested containers with every tensor replaced, always in the same order."""
    if isinstance(tree, torch.Tensor):
        return replace(tree)
    if isinstance(tree, Mapping):
        return {key: _replace_tensors(value, replace) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_replace_tensors(value, replace) for value in tree)
    return tree
