"""The Ray cluster a search runs on: joined where it exists, otherwise private and ended with the search."""

import atexit
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

import automl
from automl.env import ray_temp_folder
from automl.executors.ray.errors import ClusterError
from automl.executors.ray.joining import address_to_join, lifeline_of_joined
from automl.executors.ray.servers import Servers
from automl.executors.ray.undisturbed import undisturbed

__all__ = ["Cluster", "ClusterError", "Node"]

LEAVE_S = 2.0
"""How long to wait for Ray to take leave of a cluster whose head does not answer."""
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


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

    @property
    def offers(self) -> Mapping[str, float]:
        """All of it, in Ray's names."""
        return {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory}


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
        self._servers: Servers | None = None
        self._has_joined = False
        if ray.is_initialized():
            self._lifeline = lifeline_of_joined()
            return
        if address is not None:
            address = address_to_join(address)
        try:
            if address is None:
                self._servers = Servers(**_QUIET)
                self._lifeline = self._servers.lifeline
            else:
                with undisturbed():
                    ray.init(address=address, **_QUIET)
                self._has_joined = True
                self._lifeline = lifeline_of_joined()
        except (OSError, RuntimeError, ValueError) as error:
            raise ClusterError(_in_words(error, address)) from error

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

    def is_alive(self) -> bool:
        """Whether the head and this machine's part are there, without which each of Ray's calls may wait for a minute.

        Takes at most about a second. Ray aborts the program itself when it has missed the head for a minute, so that
        one has to `close` before.
        """
        return self._lifeline.is_whole()

    def close(self) -> None:
        """Leave the cluster: a private one ends with all its processes, a joined one goes on.

        It may be dead; that is found out here, and takes no more than three seconds.
        """
        if self._servers is not None:
            self._servers.end()
            self._servers = None
        elif self._has_joined:
            if self.is_alive():
                ray.shutdown()
            else:
                _leave_dead_cluster()
            self._has_joined = False


def _leave_dead_cluster() -> None:
    """Take leave as far as that is possible soon: Ray may ask a head that does not answer, and nothing can stop it."""
    leaving = threading.Thread(target=ray.shutdown, name="leaves a dead cluster", daemon=True)
    leaving.start()
    leaving.join(LEAVE_S)
    if leaving.is_alive():
        atexit.unregister(ray.shutdown)  # the program shall not wait for it at its end


def _in_words(error: Exception, address: str | None) -> str:
    """Why Ray could not be used, in its first line."""
    if "AF_UNIX path" in str(error):
        return (
            f"Ray cannot put its sockets below {ray_temp_folder()}, whose path is too long for the system; set "
            "RAY_TMPDIR to a folder with a short path, such as /tmp"
        )
    reason = str(error).partition("\n")[0] or type(error).__name__
    return f"Ray: cannot use {address or 'a private cluster on this machine'}: {reason}"


def _check_working_folder() -> None:
    """Refuse a folder whose own package `automl` Ray's workers would import instead of ours."""
    foreign = Path.cwd() / "automl"
    if foreign.is_dir() and foreign != Path(automl.__file__).parent and next(foreign.glob("*.py"), None):
        raise ClusterError(
            f"the working folder has a package of its own, {foreign}, which Ray's workers would take for ours; "
            "run from another folder, or rename it"
        )
