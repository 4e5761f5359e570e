"""Peers that are too slow to run each time, or whose figures were published: quoted, with version and seeds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FrozenPeer", "frozen_peers"]

_FILE = Path(__file__).with_name("frozen_peers.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPeer:
    """Figures that were measured once, on the same tables with the same noise, by other seeds.

    Attributes:
        peer: who.
        version: of the program, or where it was published.
        suite: which one.
        seeds: task -> how many runs the mean is of.
        regrets: task -> mean regret at the checkpoints; None: not known.
        checkpoints: those of the suite.
    """

    peer: str
    version: str
    suite: str
    seeds: Mapping[str, int]
    regrets: Mapping[str, Sequence[float | None]]
    checkpoints: Sequence[float]

    def line(self, task: str) -> str:
        """What is printed beside the figures of a run."""
        values = " / ".join("-" if value is None else f"{value:.3g}" for value in self.regrets[task])
        return f"{self.peer} {self.version}, {self.seeds[task]} runs, quoted: {values}"


def frozen_peers(suite: str, task: str) -> Iterator[FrozenPeer]:
    """Those that are known for a task."""
    for fields in json.loads(_FILE.read_text()):
        peer = FrozenPeer(**fields)
        if peer.suite == suite and task in peer.regrets:
            yield peer
