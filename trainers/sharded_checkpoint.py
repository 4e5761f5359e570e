"""The part of a checkpoint that is cut over ranks: every rank writes its tensors' parts into one folder.

The files are those of torch's distributed checkpoints, so that other tools can read them. They are written and read
beside the checkpoint's own file, which knows their digests; nothing that they say is run as code.
"""

import pickle
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from trainers.artifact_files import FileFacts, Location, facts_of, is_url, local_folder, move_in, remove_folder
from trainers.distributed import Ranks
from trainers.errors import ArtifactStoreError, DamagedCheckpointError, PeerFailedError

__all__ = ["read_shards", "write_shards"]

_METADATA = ".metadata"
"""Torch's name of the file that says which part lies where."""

_KNOWN = frozenset(
    {
        ("torch", "Size"),
        ("torch.serialization", "_get_layout"),
        ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
        *(
            ("torch.distributed.checkpoint.metadata", name)
            for name in (
                "ChunkStorageMetadata",
                "Metadata",
                "MetadataIndex",
                "StorageMeta",
                "TensorProperties",
                "TensorStorageMetadata",
                "_MEM_FORMAT_ENCODING",
            )
        ),
    }
)
"""What that file may name, besides number formats."""


def write_shards(tensors: Mapping[str, torch.Tensor], folder: Location, ranks: Ranks) -> dict[str, FileFacts]:
    """Write this rank's parts of tensors that are cut over the ranks; a collective.

    Args:
        tensors: by a name of their own, the same on all ranks.
        folder: where the files shall be, a folder that all ranks reach or a URL; what is there is replaced.
        ranks: over which the tensors are cut.

    Returns:
        The files of all ranks by their names, in the order of the names.

    Raises:
        OSError: this rank cannot write its file; nothing new is left behind. RuntimeError is torch's word for the same.
        PeerFailedError: another rank cannot.
        ArtifactStoreError: the store of a URL does not take it, or the machines do not share the folder.
    """
    with _unfinished(folder, ranks) as here:
        _save(tensors, here, ranks)
        with ranks.together("reading the parts of a checkpoint"):
            mine = {path.name: facts_of(path) for path in here.iterdir() if _is_of(path.name, ranks.rank)}
        parts = {name: facts for files in ranks.gather_objects(mine) for name, facts in files.items()}
        with ranks.together("removing older parts of a checkpoint"):
            if ranks.is_first:
                _check_seen(here, mine if is_url(folder) else parts)
                remove_folder(folder)
        with ranks.together("putting the parts of a checkpoint into their place"):
            if is_url(folder) or ranks.is_first:
                move_in(here, sorted(mine), folder)
    return dict(sorted(parts.items()))


def read_shards(tensors: dict[str, torch.Tensor], folder: Location, parts: Mapping[str, FileFacts]) -> None:
    """Fill tensors from a folder of parts, with every byte checked; communicates nothing.

    Args:
        tensors: by name; whole ones, or such that are cut over any number of ranks: of those this rank's part is read.
        folder: a folder or a URL.
        parts: the files by their names.

    Raises:
        DamagedCheckpointError: a file is missing or altered, or holds other tensors.
        OSError: a file cannot be read.
        ArtifactStoreError: the store of a URL does not give it.
    """
    with local_folder(folder, parts) as here:
        for name, facts in parts.items():
            if not (here / name).is_file():
                raise DamagedCheckpointError(f"part {name} of checkpoint {folder} is missing")
            if facts_of(here / name) != facts:
                raise DamagedCheckpointError(f"part {name} of checkpoint {folder} is cut short or altered")
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # which is the intent
                load(tensors, storage_reader=_Reader(here), no_dist=True)
        except CheckpointException as error:
            raise DamagedCheckpointError(f"{folder} holds other parts than its checkpoint says: {error}") from error


class _Writer(FileSystemWriter):
    """Remembers why this rank could not write, with all that led to it; the peers are told a copy without."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.failure: Exception | None = None

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        with self._remembered():
            return super().write_data(plan, planner)

    def finish(self, metadata: Metadata, results: Any) -> None:
        with self._remembered():
            super().finish(metadata, results)

    def storage_meta(self) -> None:
        """Leave out where the files were written: they may be moved."""

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failure = error
            raise


class _Reader(FileSystemReader):
    """Reads what lies where without running what the file names."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with Path(self.path, _METADATA).open("rb") as file:
            metadata = _Unpickler(file).load()
        if not isinstance(metadata, Metadata):
            raise pickle.UnpicklingError(f"{_METADATA} holds a {type(metadata).__name__}")
        metadata.storage_meta = StorageMeta(load_id=self.load_id)
        return metadata


class _Unpickler(pickle.Unpickler):
    """Makes nothing but descriptions of tensors."""

    def find_class(self, module: str, name: str) -> Any:
        is_format = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if is_format or (module, name) in _KNOWN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{_METADATA} names {module}.{name}")


@contextmanager
def _unfinished(folder: Location, ranks: Ranks) -> Iterator[Path]:
    """Hold a folder of this machine to write in: one beside the place, for all ranks, or one of this rank's own."""
    if is_url(folder):
        with tempfile.TemporaryDirectory(prefix="automl-") as own:
            yield Path(own)
        return
    token = ranks.gather_objects(secrets.token_hex(4))[0]
    beside = Path(folder).with_name(f".{Path(folder).name}.{token}.unfinished")
    try:
        yield beside
    finally:
        if ranks.is_first:
            shutil.rmtree(beside, ignore_errors=True)  # moved, or what is left of a failure


def _save(tensors: Mapping[str, torch.Tensor], here: Path, ranks: Ranks) -> None:
    writer = _Writer(here)
    try:
        save(dict(tensors), storage_writer=writer, process_group=ranks.side)
    except CheckpointException as error:
        if ranks.rank in error.failures:
            raise writer.failure or error.failures[ranks.rank][0] from error
        told = "; ".join(f"rank {rank}: {type(e).__name__}: {e}" for rank, (e, _) in error.failures.items())
        raise PeerFailedError(f"writing the parts of a checkpoint failed on {told}") from error


def _is_of(name: str, rank: int) -> bool:
    return name.startswith(f"__{rank}_") or (rank == 0 and name == _METADATA)


def _check_seen(here: Path, names: Mapping[str, object]) -> None:
    unseen = [name for name in names if not (here / name).is_file()]
    if unseen:
        raise ArtifactStoreError(
            f"rank 0 does not see {', '.join(unseen)} in {here}: fsdp writes one part for each rank, so all machines "
            "must share the folder of the artifacts; mount it everywhere, or give a URL"
        )
