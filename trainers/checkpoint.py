"""Checkpoint files: all that a training needs to go on exactly where it stood, in one file per epoch.

What is cut over ranks lies in a folder beside it, `PARTS` behind its name; whoever reads a checkpoint gets it whole, or
his own parts. Which files are kept is decided elsewhere; this module only writes, reads and removes them.
"""

import hashlib
import pickle
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from trainers.artifact_files import FileFacts, Location, local_copy, remove_file, remove_folder, write_file
from trainers.errors import DamagedCheckpointError
from trainers.optimizers.sharded import is_sharded
from trainers.reporting import CheckpointFile, JsonValue

if TYPE_CHECKING:
    from trainers.distributed import Ranks

__all__ = [
    "PARTS",
    "Checkpoint",
    "Room",
    "checkpoint_name",
    "combined_digest",
    "read_checkpoint",
    "remove_checkpoint",
    "write_checkpoint",
    "write_parts",
]

FORMAT = "automl checkpoint 1"
FORMAT_WITH_PARTS = "automl checkpoint 2"
PARTS = ".parts"
"""What the name of the folder has that the file's has not."""

Room: TypeAlias = Callable[[torch.Size, torch.dtype], torch.Tensor]
"""Makes the tensor that something cut over ranks is read into: a whole one, or one that is cut over present ranks."""


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
        blueprint: what builds and feeds the network, as plain JSON: `space`, `configuration` as it was asked for, in
            `built_with` those of its values that the network is built with instead, `precision`, the `fingerprint` of
            the data, and what the problem says of its inputs and answers (`Problem.blueprint`).
    """

    epoch: int
    seed: int
    network: Mapping[str, torch.Tensor]
    optimization: Mapping[str, Any]
    best: Mapping[str, JsonValue]
    metrics: Mapping[str, float]
    blueprint: Mapping[str, JsonValue]


def checkpoint_name(epoch: int) -> str:
    """Return the file name of an epoch's checkpoint; names sort like epochs."""
    return f"epoch-{epoch:04d}.pt"


def write_parts(checkpoint: Checkpoint, root: Location, relative: str, ranks: "Ranks") -> Mapping[str, FileFacts]:
    """Write what of a checkpoint is cut over the ranks, each rank its own; a collective, unless nothing is cut.

    `write_checkpoint` must follow on one rank.

    Args:
        checkpoint: this rank's; its tensors may be in use.
        root: the artifacts root, a folder that all ranks reach or a URL.
        relative: POSIX path of the checkpoint below `root`.
        ranks: over which it is cut.

    Returns:
        The files of all ranks by name; none where nothing is cut.

    Raises:
        OSError: this rank cannot write its file; nothing new is left behind. RuntimeError is torch's word for the same.
        PeerFailedError: another rank cannot.
        ArtifactStoreError: the store of a URL does not take it, or the machines do not share the folder.
    """
    cut: dict[str, torch.Tensor] = {}
    _replace_tensors(_state(checkpoint), lambda t: cut.setdefault(str(len(cut)), t) if is_sharded(t) else t)
    if not cut:
        return {}
    from trainers.sharded_checkpoint import write_shards  # takes half a second to load

    return write_shards(cut, f"{root}/{relative}{PARTS}", ranks)


def write_checkpoint(
    checkpoint: Checkpoint, root: Location, relative: str, parts: Mapping[str, FileFacts] | None = None
) -> CheckpointFile:
    """Write a checkpoint so that its name never shows an unfinished file, not even after a power cut.

    Args:
        checkpoint: tensors may live on any device and be in use; they are copied.
        root: the artifacts root, a folder or a URL.
        relative: POSIX path of the file below `root`; folders are made.
        parts: what `write_parts` returned, where tensors are cut over ranks.

    Returns:
        What the checkpoint can be recognised by: the size of all files, and the digest of the file, or of the list of
        all files' digests (`combined_digest`).

    Raises:
        OSError: the file cannot be written; nothing is left behind.
        RuntimeError: torch's word for the same; the OSError is its context.
        ArtifactStoreError: the store of a URL does not take it.
    """
    state = _replace_tensors(_state(checkpoint), lambda t: _hollow(t) if is_sharded(t) else t)
    content: dict[str, Any] = {"format": FORMAT, **_packed(state)}
    if parts:
        known = {name: (part.digest, part.size_bytes) for name, part in parts.items()}
        content |= {"format": FORMAT_WITH_PARTS, "parts": known}
    facts = write_file(f"{root}/{relative}", lambda file: torch.save(content, file))
    return CheckpointFile(
        path=relative,
        epoch=checkpoint.epoch,
        digest=combined_digest(facts.digest, {name: part.digest for name, part in parts.items()} if parts else {}),
        size_bytes=facts.size_bytes + sum(part.size_bytes for part in (parts or {}).values()),
    )


def combined_digest(digest: str, parts: Mapping[str, str]) -> str:
    """Return the digest of a checkpoint: its file's, or the SHA-256 of that and the parts' as `sha256sum` lists them.

    The ledger of a study does the same sum.

    Args:
        digest: of the file.
        parts: digests by name.
    """
    lines = [digest, *(f"{parts[name]}  {name}" for name in sorted(parts))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest() if parts else digest


def read_checkpoint(location: Location, device: torch.device | str = "cpu", room: Room | None = None) -> Checkpoint:
    """Read a checkpoint, with every byte checked and no code run.

    Args:
        location: the file or the URL.
        device: where its tensors shall be, wherever they were when it was written.
        room: makes the tensors that what was cut over ranks is read into; None: whole ones on `device`.

    Raises:
        DamagedCheckpointError: the file is missing, cut short, altered, or no checkpoint of this version.
        ArtifactStoreError: the store of a URL does not give it.
    """
    try:
        with local_copy(location) as path:
            content = _read_checked(path, device)
        _check_format(content, location)
        state = {field.name: content[field.name] for field in fields(Checkpoint)}
        if content["format"] == FORMAT_WITH_PARTS:
            state = _filled(state, f"{location}{PARTS}", content["parts"], room or _whole_on(device))
    except FileNotFoundError as error:
        raise DamagedCheckpointError(f"checkpoint {location} is missing") from error
    except (OSError, EOFError, zipfile.BadZipFile, RuntimeError, pickle.UnpicklingError) as error:
        raise DamagedCheckpointError(f"checkpoint {location} is cut short or damaged: {error}") from error
    return Checkpoint(**state)


def remove_checkpoint(location: Location) -> None:
    """Remove a checkpoint with its parts; what is gone already is no error.

    Raises:
        OSError: a file cannot be removed.
        ArtifactStoreError: the store does not remove it.
    """
    remove_file(location)
    remove_folder(f"{location}{PARTS}")


def _state(checkpoint: Checkpoint) -> dict[str, Any]:
    return {field.name: getattr(checkpoint, field.name) for field in fields(checkpoint)}


def _check_format(content: Any, location: Location) -> None:
    names = {field.name for field in fields(Checkpoint)}
    known = (FORMAT, FORMAT_WITH_PARTS)
    if not isinstance(content, dict) or content.get("format") not in known or not names <= set(content):
        raise DamagedCheckpointError(f"{location} is no {FORMAT!r} file")


def _whole_on(device: torch.device | str) -> Room:
    return lambda shape, dtype: torch.empty(shape, dtype=dtype, device=device)


def _hollow(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor without values, in the place of one whose values lie in the parts."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def _filled(state: dict[str, Any], folder: str, parts: Mapping[str, Any], room: Room) -> dict[str, Any]:
    """Return a state with its hollow tensors replaced by those in the parts, where they have the numbers 0, 1, ..."""
    from trainers.sharded_checkpoint import read_shards  # takes half a second to load

    read: dict[str, torch.Tensor] = {}

    def take(tensor: torch.Tensor) -> torch.Tensor:
        return read.setdefault(str(len(read)), room(tensor.shape, tensor.dtype)) if tensor.is_meta else tensor

    filled: dict[str, Any] = _replace_tensors(state, take)
    read_shards(read, folder, {name: FileFacts(digest=part[0], size_bytes=part[1]) for name, part in parts.items()})
    return filled


def _read_checked(path: Path, device: torch.device | str) -> Any:
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
    _replace_tensors(tree, lambda t: None if t.is_meta else found.setdefault(_kind(t), []).append(t))
    rest = {kind: torch.cat([t.detach().reshape(-1) for t in tensors]).cpu() for kind, tensors in found.items()}

    def take(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta:
            return tensor
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
