import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from search_spaces.cell_forms import Operations, exact_form, first_of_each_form, published_form
from search_spaces.genotype import EDGES, OPERATIONS, CellGenotype, Edge
from search_spaces.networks import CellNetwork
from tests.search_spaces.cells import CELL_WITH_PATH, cell, uniform_cell

CELLS = list(product(OPERATIONS, repeat=6))
Term: TypeAlias = tuple[str, tuple["Term", ...]]
Labels: TypeAlias = Mapping[Edge, str]


def output_terms(genotype: CellGenotype, labels: Labels) -> tuple[Term, ...]:
    """What the output is the sum of, each operation with the label of its edge: slow, and plainly right."""
    nodes: list[tuple[Term, ...]] = [(("input", ()),)]
    for target in (1, 2, 3):
        terms: list[Term] = []
        for source in range(target):
            operation, read = genotype.operations[source, target], nodes[source]
            if operation == "skip":
                terms += read
            elif operation != "none" and read:
                terms.append((operation + labels.get((source, target), ""), read))
        nodes.append(tuple(sorted(terms)))
    return nodes[3]


def labellings(genotype: CellGenotype) -> list[Labels]:
    """Every way to number the convolutions that are live; those without weights are not told apart."""
    edges = [edge for edge in genotype.live_edges() if genotype.operations[edge].startswith("conv")]
    return [
        {edge: f"#{number}" for edge, number in zip(edges, order, strict=True)}
        for order in permutations(range(len(edges)))
    ]


def correspondence(first: CellGenotype, second: CellGenotype) -> dict[Edge, Edge] | None:
    """Return which convolution of the first cell is which of the second, so that both compute the same; None: never."""
    ours = labellings(first)[0]
    wanted = output_terms(first, ours)
    for theirs in labellings(second):
        if len(ours) == len(theirs) and output_terms(second, theirs) == wanted:
            edges = {label: edge for edge, label in ours.items()}
            return {edges[label]: edge for edge, label in theirs.items()}
    return None


def partition(forms: Sequence[object]) -> list[int]:
    """Number the forms in the order of their appearance."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(form, len(numbers)) for form in forms]


def test_there_are_5260_networks_and_6466_published_expressions() -> None:
    assert len(set(map(exact_form, CELLS))) == 5260
    assert len(set(map(published_form, CELLS))) == 6466


@pytest.mark.slow
def test_exact_form_is_equal_exactly_where_some_numbering_of_the_weights_is() -> None:
    plain = [min(output_terms(c, labels) for labels in labellings(c)) for c in map(_genotype, CELLS)]
    assert partition(plain) == partition(list(map(exact_form, CELLS)))


@pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="AUTOML_BENCH_DATA names no folder of data sets")
def test_expression_tells_apart_what_the_benchmark_does() -> None:
    with np.load(Path(os.environ["AUTOML_BENCH_DATA"]) / "nb201.npz") as table:
        rows, classes = table["ops"].tolist(), table["iso_class"].tolist()
    ours = [published_form([OPERATIONS[digit] for digit in row]) for row in rows]
    assert partition(ours) == partition(classes)
    assert len(set(classes)) == 6466


def test_first_of_each_form_has_no_dead_edge_and_stands_for_itself() -> None:
    first = first_of_each_form(OPERATIONS)
    for operations, canonical in first.items():
        assert first[canonical] == canonical
        assert exact_form(canonical) == exact_form(operations)
    for genotype in map(_genotype, set(first.values())):
        assert genotype.pruned() == genotype


def test_first_of_each_form_has_as_many_live_operations_with_weights() -> None:
    for operations, canonical in first_of_each_form(OPERATIONS).items():
        if operations != canonical:
            assert _live_convolutions(_genotype(operations)) == _live_convolutions(_genotype(canonical))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (cell(e01="conv3x3", e13="skip"), cell(e03="conv3x3")),
        (cell(e01="skip", e13="conv3x3"), cell(e03="conv3x3")),
        (cell(e01="conv3x3", e13="conv1x1"), cell(e02="conv3x3", e23="conv1x1")),
        (cell(e01="conv3x3", e02="conv1x1", e13="skip", e23="skip"), cell(e01="conv1x1", e03="conv3x3", e13="skip")),
        (
            cell(e01="avg_pool", e02="avg_pool", e13="skip", e23="skip"),
            cell(e01="avg_pool", e12="skip", e13="skip", e23="skip"),
        ),
        (cell(e03="conv3x3", e12="conv1x1", e23="skip"), cell(e03="conv3x3")),
    ],
    ids=["skip_after", "skip_before", "renumbered", "sum", "pooled_twice", "dead"],
)
def test_equal_networks_have_one_canonical_cell(first: CellGenotype, second: CellGenotype) -> None:
    assert first.canonical() == second.canonical()


def test_one_convolution_used_twice_is_not_two() -> None:
    once = cell(e01="conv3x3", e12="skip", e13="conv1x1", e23="conv1x1")
    twice = cell(e01="conv3x3", e02="conv3x3", e13="conv1x1", e23="conv1x1")
    assert once.canonical() != twice.canonical()
    assert _live_convolutions(twice)["conv3x3"] == 2 * _live_convolutions(once)["conv3x3"]
    assert once.expression() == twice.expression()


def test_expressions_of_equal_networks_may_differ() -> None:
    direct, by_node_2 = cell(e03="conv3x3"), cell(e02="conv3x3", e23="skip")
    assert direct.canonical() == by_node_2.canonical()
    assert direct.expression() != by_node_2.expression()


@given(CELL_WITH_PATH.filter(lambda genotype: genotype.canonical() != genotype.pruned()))
@settings(max_examples=15, deadline=None)
def test_networks_of_one_canonical_cell_answer_alike(genotype: CellGenotype) -> None:
    same = correspondence(genotype, genotype.canonical())
    assert same is not None
    first, second = _network(genotype), _network(genotype.canonical())
    second.load_state_dict({_renamed(name, same): value for name, value in first.state_dict().items()})
    images_NCHW = torch.rand(4, 1, 4, 4)
    for is_training in (True, False):
        answers = [model.train(is_training)(images_NCHW) for model in (first, second)]
        torch.testing.assert_close(answers[0], answers[1], rtol=1e-4, atol=1e-4)


def test_cells_of_as_many_convolutions_and_other_forms_are_other_functions() -> None:
    alike = defaultdict(list)
    for genotype in map(_genotype, sorted(set(first_of_each_form(OPERATIONS).values()))):
        alike[tuple(sorted(_live_convolutions(genotype).items()))].append(genotype)
    rng = np.random.default_rng(0)
    for group in (group for group in alike.values() if len(group) > 1):
        first, second = (group[int(place)] for place in rng.choice(len(group), size=2, replace=False))
        assert correspondence(first, second) is None


def test_canonical_of_a_cell_without_a_path_has_no_operation() -> None:
    assert cell(e01="conv3x3", e12="skip").canonical() == uniform_cell("none")


def _genotype(operations: Operations) -> CellGenotype:
    return CellGenotype(dict(zip(EDGES, operations, strict=True)))


def _live_convolutions(genotype: CellGenotype) -> Counter[str]:
    names = (genotype.operations[edge] for edge in genotype.live_edges())
    return Counter(name for name in names if name.startswith("conv"))


def _network(genotype: CellGenotype) -> CellNetwork:
    return CellNetwork(genotype, (1, 4, 4), 3, channels=2, cells_per_stage=1)


def _renamed(name: str, same: Mapping[Edge, Edge]) -> str:
    """Return the name of a weight in the other network: `...operations.0_1...` by the edge that is the same."""
    before, found, after = name.partition(".operations.")
    if not found:
        return name
    edge, rest = after.split(".", 1)
    source, target = same[int(edge[0]), int(edge[2])]
    return f"{before}{found}{source}_{target}.{rest}"
