"""Search spaces in words and as drawings of text."""

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.conditions import is_same
from search_spaces.graph import NetworkGraph
from search_spaces.parameters import Categorical, Parameter
from search_spaces.space import SearchSpace

__all__ = ["NO_NETWORK", "builds_or_trains", "count_in_words", "drawing", "parameter_rows", "values_in_words"]

NO_NETWORK = "it builds no network: it is searched with --script or --trainer"


def builds_or_trains(module: Any) -> bool:
    """Whether the module of a space says itself what is trained; else its task means nothing."""
    from trainers.custom.references import defines_training

    return callable(getattr(module, "build_model", None)) or defines_training(module)


def parameter_rows(space: SearchSpace) -> Sequence[Sequence[object]]:
    """A row for each parameter: its name, role, values, default, and when it is there."""
    defaults: Mapping[str, object] = space.defaults or {}
    return [
        (name, parameter.role, values_in_words(parameter), defaults.get(name, "-"), _condition(parameter))
        for name, parameter in space.parameters.items()
    ]


def values_in_words(parameter: Parameter) -> str:
    """What a parameter may be, as a person writes it: `adam | sgd`, `0.001 to 0.1 (log)`, `8 to 32 in steps of 8`."""
    if isinstance(parameter, Categorical):
        return " | ".join(map(str, parameter.choices))
    scale = " (log)" if parameter.log else ""
    step = f" in steps of {parameter.step:g}" if parameter.step not in (None, 1) else ""
    bounds = [
        f", {words} {bound}"
        for words, bound in (("at least", parameter.at_least), ("at most", parameter.at_most))
        if bound is not None
    ]
    return f"{parameter.low:g} to {parameter.high:g}{step}{scale}{''.join(bounds)}"


def count_in_words(count: int | None, *, none: str = "infinitely many") -> str:
    """A number of configurations or networks, rounded where it is long: `15,625`, `about 2.1e+12`."""
    if count is None:
        return none
    return f"{count:,}" if count < 10**9 else f"about {count:.2g}" if count < 10**300 else "more than 1e+300"


def drawing(graph: NetworkGraph) -> Sequence[str]:
    """A line for each edge of a cell, by the node that it leads to; dead ones are marked."""
    labels = {node.id: node.label for node in graph.nodes}
    width = max((len(labels[edge.source]) for edge in graph.edges), default=0)
    return [
        f"{labels[edge.source]:>{width}} --{edge.label}--> {labels[edge.target]}{'' if edge.live else '  (dead)'}"
        for node in graph.nodes
        for edge in graph.edges
        if is_same(edge.target, node.id)
    ]


def _condition(parameter: Parameter) -> str:
    return f"when {parameter.condition}" if parameter.when is not None else ""
