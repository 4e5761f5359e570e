"""The machines of a cluster as one search sees them: which are there, what they hold, and who else wants them."""

import logging
import math
import time
from collections.abc import Collection, Mapping
from typing import Literal

import ray
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group

from automl.executors.ray.cluster import Cluster, ClusterError
from automl.executors.ray.placement import Request, capacity, demand_for, problem

__all__ = ["Machines"]

LOOK_S = 2.0
"""How often the machines are looked at."""
WAITS_S, WAITS_AGAIN_S = 20.0, 300.0
"""How long a trial may wait for its place before that is said, and before it is said again."""

_log = logging.getLogger(__name__)


class Machines:
    """Follows the machines of a cluster while they join and leave.

    Attributes:
        demand: what one trial occupies.
        hosts: identity of a machine -> its name, also of those that have left.
        shunned: identities of machines that cannot be used.
    """

    def __init__(
        self, cluster: Cluster, request: Request, concurrency: int | Literal["auto"], wait_for_nodes_s: float
    ) -> None:
        """Look for machines that can hold a trial, and wait for them if need be.

        Raises:
            ClusterError: there are none.
        """
        self._cluster, self._concurrency = cluster, concurrency
        self.hosts: dict[str, str] = {}
        self.shunned: set[str] = set()
        self._looked_at, self._warned_at = 0.0, -math.inf
        self._refresh()
        self.demand = demand_for(request, self._nodes, concurrency)
        if problem(self._nodes, self.demand) is not None and wait_for_nodes_s > 0:
            self._wait(wait_for_nodes_s)
            self.demand = demand_for(request, self._nodes, concurrency)
        why_not = problem(self._nodes, self.demand)
        if why_not is not None:
            waited = f" after {wait_for_nodes_s:g} s" if wait_for_nodes_s else ""
            raise ClusterError(f"{why_not}{waited}; {_advice(request)}")
        self._warn_of_fewer()

    @property
    def alive(self) -> frozenset[str]:
        """Identities of the machines that are there."""
        return frozenset(node.id for node in self._nodes)

    @property
    def fitting(self) -> int:
        """Trials that the usable machines hold at once, if nothing else runs on them."""
        return capacity([node for node in self._nodes if node.id not in self.shunned], self.demand)

    @property
    def wanted(self) -> int:
        """Trials that shall run at once; a number that a person gave may be more than fits, so that a cluster grows."""
        return self.fitting if self._concurrency == "auto" else self._concurrency

    def look(self, now: float) -> bool:
        """See which machines are there now, if the last look is long ago; return whether that was so."""
        if now - self._looked_at < LOOK_S:
            return False
        before = self.alive
        self._refresh()
        self._looked_at = now
        for word, changed in (("joined", self.alive - before), ("left", before - self.alive)):
            if changed:
                names = ", ".join(sorted(self.hosts[node] for node in changed))
                _log.info("machines %s: %s; the cluster now holds %d trials at once", word, names, self.fitting)
        return True

    def shun(self, nodes: Collection[str]) -> None:
        """Use these machines no more."""
        self.shunned |= set(nodes)

    def others_wait(self, own: Collection[str]) -> bool:
        """Whether anybody else on the cluster waits for a place.

        Args:
            own: the reservations of this search.
        """
        table = placement_group_table()
        return any(entry["state"] == "PENDING" for name, entry in table.items() if name not in own)

    def warn_of_waiting(self, waited_s: float, now: float) -> None:
        """Say what a trial waits for, now and then: the cluster is full of other work, or has lost a machine."""
        if waited_s < WAITS_S or now - self._warned_at < WAITS_AGAIN_S:
            return
        self._warned_at = now
        free = ray.available_resources()  # type: ignore[no-untyped-call]  # Ray's own
        _log.warning(
            "a trial waits for %s%s; free on all machines: %g CPUs and %g GPUs",
            "machines with room for " if self.demand.spread else "a machine with room for ",
            self.demand,
            free.get("CPU", 0.0),
            free.get("GPU", 0.0),
        )

    def _refresh(self) -> None:
        self._nodes = self._cluster.nodes()
        self.hosts.update({node.id: node.host for node in self._nodes})

    def _wait(self, seconds: float) -> None:
        """Wait until a trial has a place; asking for one also tells a cluster that can grow to do so."""
        _log.warning("%s; waiting %g s for more machines", problem(self._nodes, self.demand), seconds)
        wish = placement_group(
            [self.demand.bundle()] * self.demand.ranks, strategy="PACK" if self.demand.spread else "STRICT_PACK"
        )
        deadline = time.monotonic() + seconds
        while not wish.wait(min(1.0, max(0.0, deadline - time.monotonic()))) and time.monotonic() < deadline:
            continue  # in small steps, so that a signal is noticed
        remove_placement_group(wish)
        self._refresh()

    def _warn_of_fewer(self) -> None:
        if self._concurrency != "auto" and self.fitting < self._concurrency:
            _log.warning(
                "--concurrency %d, and the cluster holds %d trials of %s at once; more run when machines join",
                self._concurrency, self.fitting, self.demand,
            )  # fmt: skip


def _advice(request: Request) -> str:
    flags: Mapping[str, object] = {
        "--procs-per-trial": request.ranks > 1,
        "--gpus-per-trial": request.gpus,
        "--cpus-per-trial": request.cpus,
        "--memory-per-trial": request.memory,
    }
    given = " or ".join(flag for flag, value in flags.items() if value)
    return f"lower {given}, or let machines join with --wait-for-nodes" if given else "let machines join first"
