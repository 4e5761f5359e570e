"""The Ray cluster a search runs on: joined where it exists, otherwise private and ended with the search."""

import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import ray

import automl
from automl.errors import AutomlError
from automl.executors.ray.guard import Guard

__all__ = ["Cluster", "ClusterError", "Node"]

PROBE_TIMEOUT_S = 5.0
"""How long a cluster's head may take to accept a connection."""

_log = logging.getLogger(__name__)


class ClusterError(AutomlError):
    """The cluster cannot be joined, or can never hold what a trial asks for."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What one machine of a cluster offers.

    Attributes:
        id: Ray's identity of it.
        host: its name.
        cpus: logical CPUs.
        gpus: GPUs.
        memory: bytes that trials may reserve.
    """

    id: str
    host: str
    cpus: float
    gpus: float
    memory: float


class Cluster:
    """A connection to Ray for the life of a search."""

    def __init__(self, address: str | None) -> None:
        """Join the cluster at `address`, use the one this process is connected to, or start a private one.

        Args:
            address: HOST:PORT, `auto`, or None.

        Raises:
            ClusterError: the cluster does not answer, or its versions do not fit.
        """
        _check_working_folder()
        self._is_ours = not ray.is_initialized()
        self._guard: Guard | None = None
        if not self._is_ours:
            return
        if address not in (None, "auto"):
            _probe(address)
        own = set(psutil.Process().children(recursive=True))
        try:
            ray.init(
                address=address or "local",
                include_dashboard=False if address is None else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            target = address or "a private cluster on this machine"
            raise ClusterError(f"Ray: cannot use {target}: {str(error).splitlines()[0]}") from error
        if address is None:
            self._guard = Guard(set(psutil.Process().children(recursive=True)) - own)

    def nodes(self) -> Sequence[Node]:
        """The machines that are alive now."""
        return [
            Node(
                id=node["NodeID"],
                host=node["NodeManagerHostname"],
                cpus=node["Resources"].get("CPU", 0.0),
                gpus=node["Resources"].get("GPU", 0.0),
                memory=node["Resources"].get("memory", 0.0),
            )
            for node in ray.nodes()  # type: ignore[no-untyped-call]  # Ray's own
            if node["Alive"]
        ]

    def close(self) -> None:
        """Leave the cluster; a private one ends with all its processes."""
        if self._is_ours and ray.is_initialized():
            ray.shutdown()
        if self._guard is not None:
            self._guard.dismiss()


def _check_working_folder() -> None:
    """Refuse a folder whose own package `automl` Ray's workers would import instead of ours."""
    foreign = Path.cwd() / "automl"
    if foreign.is_dir() and foreign != Path(automl.__file__).parent and next(foreign.glob("*.py"), None):
        raise ClusterError(
            f"the working folder has a package of its own, {foreign}, which Ray's workers would take for ours; "
            "run from another folder, or rename it"
        )


def _probe(address: str) -> None:
    """Fail soon when nobody listens; Ray alone would try for more than a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ClusterError(f"--ray-address {address!r} is not HOST:PORT or auto")
    try:
        socket.create_connection((host, int(port)), timeout=PROBE_TIMEOUT_S).close()
    except OSError as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({error}); start one there with `ray start --head --port {port}`, "
            "or leave out --ray-address for a private one"
        ) from error
