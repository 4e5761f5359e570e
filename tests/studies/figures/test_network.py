import re
from collections.abc import Iterable
from itertools import combinations
from xml.etree import ElementTree

import pytest

from search_spaces.genotype import CellGenotype
from search_spaces.graph import GraphEdge, GraphNode, NetworkGraph, cell_graph
from studies.figures.network import network_svg

OPERATIONS = ("skip", "conv1x1", "conv3x3", "avg_pool", "depthwise_separable_5x5")


def graph(count: int, edges: Iterable[tuple[int, int]]) -> NetworkGraph:
    return NetworkGraph(
        nodes=tuple(GraphNode(id=str(node), label=f"node {node}") for node in range(count)),
        edges=tuple(
            GraphEdge(source=str(a), target=str(b), label=OPERATIONS[(3 * a + b) % 5], live=(a + b) % 4 != 0)
            for a, b in edges
        ),
    )


def boxes(svg: str, kind: str) -> list[tuple[float, float, float, float]]:
    found = []
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect"):
        if (element.get("class") == "pill") == (kind == "label"):
            x, y, width, height = (float(element.get(name, "nan")) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def overlap(first: tuple[float, float, float, float], second: tuple[float, float, float, float]) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


@pytest.mark.parametrize("count", range(2, 9))
def test_labels_of_a_full_graph_overlap_neither_each_other_nor_a_node_and_lie_inside(count: int) -> None:
    svg = network_svg(graph(count, combinations(range(count), 2)))
    labels, nodes = boxes(svg, "label"), boxes(svg, "node")
    assert len(labels) == count * (count - 1) // 2
    assert len(nodes) == count
    assert not any(overlap(a, b) for a, b in combinations(labels + nodes, 2))
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())  # type: ignore[union-attr]  # it is there
    assert all(x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height for x0, y0, x1, y1 in labels + nodes)


def test_two_edges_between_the_same_nodes_do_not_overlap() -> None:
    svg = network_svg(graph(3, [(0, 1), (0, 1), (0, 1), (1, 2)]))
    labels = boxes(svg, "label")
    assert len(labels) == 4
    assert not any(overlap(a, b) for a, b in combinations(labels, 2))


def test_dead_edges_and_nodes_are_marked() -> None:
    genotype = CellGenotype.parse("|conv3x3~0|+|skip~0|none~1|+|none~0|conv1x1~1|none~2|")
    svg = network_svg(cell_graph(genotype))
    groups = [g for g in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}g")]
    dead = ["".join(g.itertext()) for g in groups if "dead" in (g.get("class") or "").split()]
    assert any("skip" in text and "not part of the network" in text for text in dead)
    assert not any("conv" in text for text in dead)
    assert any(text.endswith("2") for text in dead)  # node 2 leads nowhere


def test_text_is_escaped_and_description_tells_the_operations() -> None:
    nodes = (GraphNode(id="a", label="<in>", detail='"&"'), GraphNode(id="b", label="out"))
    svg = network_svg(NetworkGraph(nodes=nodes, edges=(GraphEdge(source="a", target="b", label="<op>"),)), title="<t>")
    root = ElementTree.fromstring(svg)
    assert "<op>" not in svg
    texts = [element.text for element in root.iter() if element.text]
    assert "<op> from <in> to out." in texts
    assert "<t>" in texts


def test_graph_without_edges_is_drawn() -> None:
    assert len(boxes(network_svg(graph(2, [])), "node")) == 2


def test_ids_of_two_drawings_differ() -> None:
    first, second = (network_svg(graph(2, [(0, 1)]), prefix=prefix) for prefix in ("a", "b"))
    assert not set(re.findall(r' id="([^"]+)"', first)) & set(re.findall(r' id="([^"]+)"', second))
