"""What a trial occupies, and how many of them the machines of a cluster hold: arithmetic without a cluster."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from automl.byte_sizes import in_words

if TYPE_CHECKING:
    from automl.executors.ray.cluster import Node

__all__ = ["Demand", "Request", "capacity", "demand_for", "problem"]

_ROUNDING = 1e-9
_DECIMALS = 10_000
"""Ray counts fractions of four decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asks for one trial; None: whatever suits the machines.

    Attributes:
        ranks: processes of the trial, at least 1.
        gpus: 0, one per rank, or for a single rank a share of one.
        cpus: CPUs that the ranks share; may be a fraction.
        memory: bytes to reserve.
        spread: whether the ranks may run on several machines.
    """

    ranks: int = 1
    gpus: float | None = None
    cpus: float | None = None
    memory: int | None = None
    spread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one trial occupies: `ranks` equal bundles.

    Attributes:
        ranks: processes of the trial.
        cpus: CPUs of one rank; may be a fraction.
        gpus: GPUs of one rank: 0, 1, or a share of one, which never lies on two cards.
        memory: bytes that one rank reserves; 0: none.
        spread: whether the ranks may run on several machines.
    """

    ranks: int
    cpus: float
    gpus: float
    memory: int
    spread: bool

    def bundle(self) -> dict[str, float]:
        """What one rank reserves, in Ray's names; CPUs last, as they are the easiest to do with less of."""
        amounts = {"GPU": self.gpus, "memory": self.memory, "CPU": self.cpus}
        return {name: amount for name, amount in amounts.items() if amount}

    def __str__(self) -> str:
        """Return the whole trial's needs in words: `2 GPUs, 4.0 GiB of memory and 2 CPUs`."""
        words = [_amount(name, self.ranks * share) for name, share in self.bundle().items()]
        return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

    def ranks_on(self, node: "Node") -> int:
        """How many ranks a machine holds, if nothing else runs on it."""
        return min(_times(name, node.offers[name], share) for name, share in self.bundle().items())


def demand_for(request: Request, nodes: "Sequence[Node]", concurrency: int | Literal["auto"]) -> Demand:
    """Complete a request by what suits the machines.

    GPUs: one per rank where there are as many, else none. CPUs: the largest equal share with which as many trials as
    wanted fit at once, at least one per rank where that is possible.

    Args:
        request: what was asked for.
        nodes: the machines that are there now.
        concurrency: trials that shall run at once.
    """
    gpus = request.gpus
    if gpus is None:
        has_gpus = [node.gpus for node in nodes]
        within = sum(has_gpus) if request.spread else max(has_gpus, default=0.0)
        gpus = float(request.ranks if within >= request.ranks else 0)
    whole = Demand(
        ranks=request.ranks,
        cpus=1.0 if request.cpus is None else _rounded_down(request.cpus / request.ranks),
        gpus=gpus / request.ranks,
        memory=math.ceil((request.memory or 0) / request.ranks),
        spread=request.spread,
    )
    if request.cpus is not None:
        return whole
    return replace(whole, cpus=_share_of_cpus(whole, nodes, concurrency))


def capacity(nodes: "Sequence[Node]", demand: Demand) -> int:
    """How many trials the machines hold at once, if nothing else runs on them."""
    ranks = [demand.ranks_on(node) for node in nodes]
    if demand.spread:
        return sum(ranks) // demand.ranks
    return sum(count // demand.ranks for count in ranks)


def problem(nodes: "Sequence[Node]", demand: Demand) -> str | None:
    """Why no trial fits the machines, in words; None: one does."""
    if capacity(nodes, demand) > 0:
        return None
    for name, share in demand.bundle().items():
        needed, offers = demand.ranks * share, [node.offers[name] for node in nodes]
        if needed > sum(offers) + _ROUNDING:
            return f"a trial needs {_amount(name, needed)}, and the cluster has {_amount(name, sum(offers))}"
        if not demand.spread and needed > max(offers) + _ROUNDING:
            return (
                f"a trial needs {_amount(name, needed)}, and no single machine has them: the largest one has "
                f"{_amount(name, max(offers))}, all together {_amount(name, sum(offers))}; "
                "let its ranks run on several machines with --spread, or lower --procs-per-trial"
            )
    where = "the machines have" if demand.spread else "a single machine has"
    return f"a trial needs {demand}, more than {where} at the same time"


def _share_of_cpus(demand: Demand, nodes: "Sequence[Node]", concurrency: int | Literal["auto"]) -> float:
    """The largest equal share of CPUs with which as many trials as wanted fit.

    Returns:
        Whole CPUs, or, where ranks share one, a fraction. One, when the ranks would have to share although the machines
        have enough CPUs all together: whether to spread is a person's choice.
    """
    if _fits_only_when_spread(demand, nodes):
        return 1.0
    without_cpus = replace(demand, cpus=1 / _DECIMALS)
    fitting = max(1, capacity(nodes, without_cpus if demand.gpus else demand))
    wanted = fitting if concurrency == "auto" else concurrency
    offers = {node.cpus for node in nodes if node.cpus > 0}
    shares = sorted({cpus / parts for cpus in offers for parts in range(1, wanted * demand.ranks + 1)}, reverse=True)
    # The smaller the share, the more trials fit: the first one with which enough do is found by bisection.
    enough = bisect_left(
        shares, True, key=lambda share: capacity(nodes, replace(demand, cpus=_rounded_down(share))) >= wanted
    )
    share = shares[enough] if enough < len(shares) else 1.0
    return float(math.floor(share + _ROUNDING)) if share >= 1 else _rounded_down(share)


def _fits_only_when_spread(demand: Demand, nodes: "Sequence[Node]") -> bool:
    return not demand.spread and not capacity(nodes, demand) and capacity(nodes, replace(demand, spread=True)) > 0


def _times(name: str, offer: float, share: float) -> int:
    if name == "GPU" and share < 1:
        return math.floor(offer + _ROUNDING) * math.floor(1 / share + _ROUNDING)  # no share lies on two cards
    return math.floor(offer / share + _ROUNDING)


def _rounded_down(share: float) -> float:
    return max(1, math.floor(share * _DECIMALS + _ROUNDING)) / _DECIMALS


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        return f"{in_words(amount)} of memory"
    return f"{round(amount, 4):g} {name}" if amount == 1 else f"{round(amount, 4):g} {name}s"
