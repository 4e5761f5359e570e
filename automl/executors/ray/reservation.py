"""A place for the ranks of one trial after the other: a placement group, and the machines it lies on."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from automl.executors.ray.placement import Demand

__all__ = ["Reservation"]


class Reservation:
    """Is asked for when it is made, and is there some time later, when the machines have room.

    Attributes:
        demand: what it holds.
        is_placed: whether it was there at the last look.
        requested_at: when it was asked for, by the monotonic clock.
    """

    def __init__(self, demand: Demand, hosts: Mapping[str, str], shunned: Collection[str] = ()) -> None:
        """Ask for it; nothing waits.

        Args:
            demand: what it shall hold.
            hosts: identity of a machine -> its name, kept up to date by the caller.
            shunned: identities of machines that it shall not lie on.
        """
        selector = {"ray.io/node-id": f"!in({','.join(sorted(shunned))})"}
        self._placement = placement_group(
            [demand.bundle()] * demand.ranks,
            strategy="PACK" if demand.spread else "STRICT_PACK",
            bundle_label_selector=[selector] * demand.ranks if shunned else None,
        )
        self._hosts = hosts
        self._nodes: Mapping[int, str] = {}
        self.demand = demand
        self.is_placed = False
        self.requested_at = time.monotonic()

    @property
    def id(self) -> str:
        """Ray's name of it."""
        return str(self._placement.id.hex())

    @property
    def nodes(self) -> frozenset[str]:
        """Identities of the machines that it lies on; empty before it is placed."""
        return frozenset(self._nodes.values())

    def look(self) -> bool:
        """Ask Ray whether it is there by now."""
        if not self.is_placed:
            entry = placement_group_table(self._placement)
            self.is_placed = entry["state"] == "CREATED"
            self._nodes = dict(entry["bundles_to_node_id"]) if self.is_placed else {}
        return self.is_placed

    def look_again(self) -> None:
        """Look where it is: Ray moves it when one of its machines has gone."""
        self.is_placed = False
        self.look()

    def wait(self, seconds: float) -> None:
        """Wait until it is there, but no longer than that."""
        self._placement.wait(max(0.0, seconds))

    def node_of(self, rank: int) -> str | None:
        """Identity of the machine of a rank; None while it is not known."""
        return self._nodes.get(rank)

    def host_of(self, rank: int) -> str:
        """Name of the machine of a rank; empty while it is not known."""
        return self._hosts.get(self._nodes.get(rank, ""), "")

    def options(self, rank: int) -> dict[str, Any]:
        """What Ray needs to put the process of a rank there."""
        return {
            "num_cpus": self.demand.cpus,
            "num_gpus": self.demand.gpus,
            "memory": self.demand.memory or None,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(self._placement, rank),
        }

    def give_back(self) -> None:
        """Free what it occupies, also when it was never there."""
        remove_placement_group(self._placement)
