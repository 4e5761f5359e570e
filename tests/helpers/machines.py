"""A Ray cluster of several machines on this one, whose machines can be added and killed while searches use it."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from tests.helpers.commands import REPOSITORY

__all__ = ["OPEN_CLUSTER", "Machines", "machines"]

OPEN_CLUSTER = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
"""What a person who uses the cluster has set."""


class Machines:
    """The machines of a cluster, the head first; this process itself does not connect to it."""

    def __init__(self, cpus: Sequence[int]) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self.nodes = [self.add(count) for count in cpus]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, cpus: int) -> Any:
        """Let a machine join; Ray's object of it."""
        return self._cluster.add_node(
            num_cpus=cpus,
            include_dashboard=False,
            env_vars={**OPEN_CLUSTER, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "SPT_NOENV": "1"},
        )

    def ranks_on(self, node: Any) -> list[psutil.Process]:
        """The processes of ranks on a machine, whatever they do."""
        children = psutil.Process(self._raylet(node)).children(recursive=True)
        return [process for process in children if _name(process) == "ray::Rank"]

    def kill(self, node: Any) -> None:
        """End a machine without a word, as a power cut does."""
        pid = self._raylet(node)
        victims = psutil.Process(pid).children(recursive=True)
        os.kill(pid, signal.SIGKILL)
        for victim in victims:
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                continue
        self._cluster.remove_node(node, allow_graceful=False)

    def known_alive(self) -> int:
        """How many machines Ray takes for alive."""
        from ray._raylet import GcsClient  # type: ignore[attr-defined]  # its stub has only some of the names

        nodes = GcsClient(address=self.address).get_all_node_info(timeout=10.0)
        return sum(node.state == node.ALIVE for node in nodes.values())

    def close(self) -> None:
        from ray._common.utils import reset_ray_address

        for node in reversed(self._cluster.list_all_nodes()):  # type: ignore[no-untyped-call]  # Ray's own
            self._cluster.remove_node(node)
        reset_ray_address()  # no later `auto` shall look for this cluster

    @staticmethod
    def _raylet(node: Any) -> int:
        (server,) = node.all_processes["raylet"]
        return int(server.process.pid)


@contextmanager
def machines(*cpus: int) -> Iterator[Machines]:
    """A cluster of machines with so many CPUs each, the head first."""
    cluster = Machines(cpus)
    try:
        yield cluster
    finally:
        cluster.close()


def _name(process: psutil.Process) -> str:
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else process.name()
    except psutil.NoSuchProcess:
        return ""
