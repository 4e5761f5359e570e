"""The machines of a cluster as one search sees them: which are there, what they hold, and who else wants them."""

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import ray
from ray.autoscaler.v2.sdk import get_cluster_status
from ray.util.placement_group import placement_group_table

from automl.executors.ray.cluster import Cluster, ClusterError
from automl.executors.ray.placement import Request, capacity, demand_for, problem
from automl.executors.ray.reservation import Reservation

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
        fitting: trials that the usable machines hold at once, if nothing else runs on them.
    """

    def __init__(
        self,
        cluster: Cluster,
        request: Request,
        concurrency: int | Literal["auto"],
        wait_for_nodes_s: float,
        check: Callable[[], None],
    ) -> None:
        """Look for machines that can hold a trial, and wait for them if need be.

        Args:
            cluster: the cluster.
            request: what one trial asks for.
            concurrency: trials at once, as asked for.
            wait_for_nodes_s: how long to wait for machines.
            check: is called every second of that time; ends it by an exception.

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
            self._wait(wait_for_nodes_s, check)
            self.demand = demand_for(request, self._nodes, concurrency)
        why_not = problem(self._nodes, self.demand)
        if why_not is not None:
            waited = f" after {wait_for_nodes_s:g} s" if wait_for_nodes_s else ""
            raise ClusterError(f"{why_not}{waited}; {_advice(request)}")
        self._count()
        self._warn_of_fewer()
        most = max(node.cpus for node in self._nodes)
        if request.ranks > most and not request.spread:
            _log.warning("the %d ranks of a trial share %g CPUs; give fewer --procs-per-trial", request.ranks, most)

    @property
    def alive(self) -> frozenset[str]:
        """Identities of the machines that are there."""
        return frozenset(node.id for node in self._nodes)

    @property
    def are_all_shunned(self) -> bool:
        """Whether a trial would fit the machines that are there, but none that can be used."""
        return self.fitting == 0 and capacity(self._nodes, self.demand) > 0

    @property
    def wanted(self) -> int:
        """Trials that shall run at once; a number that a person gave may be more than fits, so that a cluster grows."""
        return self.fitting if self._concurrency == "auto" else self._concurrency

    def is_due(self, now: float) -> bool:
        """Whether the last look is long ago."""
        return now - self._looked_at >= LOOK_S

    def look(self, now: float) -> None:
        """See which machines are there now."""
        before = self.alive
        self._refresh()
        self._count()
        self._looked_at = now
        for word, changed in (("joined", self.alive - before), ("left", before - self.alive)):
            if changed:
                names = ", ".join(sorted(self.hosts[node] for node in changed))
                _log.info("machines %s: %s; the cluster now holds %d trials at once", word, names, self.fitting)

    def shun(self, nodes: Collection[str]) -> None:
        """Use these machines no more."""
        self.shunned |= set(nodes)
        self._count()

    def others_wait(self, own: Collection[str]) -> bool:
        """Whether anybody else on the cluster waits for a place that there is: for a group of them, a task or an actor.

        Args:
            own: the reservations of this search.
        """
        groups = placement_group_table().items()
        if any(_waits_for_room(entry) for name, entry in groups if name not in own):
            return True
        demands = get_cluster_status(ray.get_runtime_context().gcs_address).resource_demands.ray_task_actor_demand
        return any(self._has_place_for(asked.bundle) for demand in demands for asked in demand.bundles_by_count)

    def _has_place_for(self, bundle: Mapping[str, float]) -> bool:
        """Whether some machine could hold it; what belongs to a group of places waits for nobody but that group."""
        return bundle.keys() <= {"CPU", "GPU", "memory"} and any(
            all(amount <= node.offers[name] for name, amount in bundle.items()) for node in self._nodes
        )

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

    def _count(self) -> None:
        """Count once for all questions: they come with every message of every trial."""
        self.fitting = capacity([node for node in self._nodes if node.id not in self.shunned], self.demand)

    def _wait(self, seconds: float, check: Callable[[], None]) -> None:
        """Wait until machines can hold a trial; asking for a place also tells a cluster that can grow to do so."""
        _log.warning("%s; waiting %g s for more machines", problem(self._nodes, self.demand), seconds)
        wish = Reservation(self.demand, self.hosts)
        deadline = time.monotonic() + seconds
        try:
            while problem(self._nodes, self.demand) is not None and time.monotonic() < deadline:
                wish.wait(min(1.0, deadline - time.monotonic()))
                check()
                self._refresh()
        finally:
            wish.give_back()

    def _warn_of_fewer(self) -> None:
        if self._concurrency != "auto" and self.fitting < self._concurrency:
            _log.warning(
                "--concurrency %d, and a trial takes %s, of which the cluster holds %d; more run when machines join",
                self._concurrency, self.demand, self.fitting,
            )  # fmt: skip


def _waits_for_room(group: Mapping[str, Any]) -> bool:
    """Whether a placement group waits, and not for machines that the cluster does not have."""
    return bool(group["state"] == "PENDING" and group["stats"]["scheduling_state"] != "INFEASIBLE")


def _advice(request: Request) -> str:
    flags: Mapping[str, object] = {
        "--procs-per-trial": request.ranks > 1,
        "--gpus-per-trial": request.gpus,
        "--cpus-per-trial": request.cpus,
        "--memory-per-trial": request.memory,
    }
    given = " or ".join(flag for flag, value in flags.items() if value)
    return f"lower {given}, or let machines join with --wait-for-nodes" if given else "let machines join first"
