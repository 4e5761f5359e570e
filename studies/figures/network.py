"""A network's cell as a picture: nodes on one line, operations as lines above and below it.

The picture is one `<svg>` element for inside a page: light and dark, readable by a screen reader, no script.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from search_spaces.graph import GraphEdge, GraphNode, NetworkGraph

__all__ = ["network_svg"]

_NODE_HEIGHT = 46
_LANE_HEIGHT = 50
_MARGIN = 18
_CHARACTER = 7.4  # width of a letter at 13 px, generously
_LONGEST_LABEL = 22
_CORNER = 22
_PILL_HEIGHT = 24

_STYLE = """
.net{--net-ink:#1d232e;--net-line:#3f83c9;--net-node:#ffffff;--net-edge:#c5ccd6;--net-tint:#e8f0fa;
--net-page:#ffffff;--net-faint:#9aa3b0;font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}
@media(prefers-color-scheme:dark){.net{--net-ink:#e6e9ee;--net-line:#6aa7e6;--net-node:#20262f;--net-edge:#46505e;
--net-tint:#23344a;--net-page:#191d24;--net-faint:#717c8b}}
.net text{fill:var(--net-ink);text-anchor:middle;dominant-baseline:central}
.net .node rect{fill:var(--net-node);stroke:var(--net-edge);stroke-width:1.5}
.net .end rect{fill:var(--net-tint);stroke:var(--net-line)}
.net .node text{font-weight:600}
.net .line{fill:none;stroke:var(--net-line);stroke-width:2.2}
.net .tip{fill:var(--net-line)}
.net .pill{fill:var(--net-page);stroke:var(--net-line);stroke-width:1}
.net .dead .line{stroke:var(--net-faint);stroke-width:1.2;stroke-dasharray:4 4;opacity:.75}
.net .dead .tip{fill:var(--net-faint);opacity:.75}
.net .dead .pill{stroke:none}
.net .node.dead rect{stroke-dasharray:4 4}
.net .dead text{fill:var(--net-faint)}
""".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Route:
    """Where an edge runs: `side` -1 above, +1 below; `lane` 0 is the straight line between neighbours."""

    edge: GraphEdge
    start: int
    end: int
    side: int
    lane: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """All measures of a picture, in pixels."""

    routes: Sequence[_Route]
    centres: Sequence[float]
    node_width: float
    middle: float
    width: float
    height: float


def network_svg(graph: NetworkGraph, *, title: str = "Cell of the network", prefix: str = "net") -> str:
    """Return a drawing of a graph as an `<svg>` element.

    Dead edges are faint and dashed. No two labels overlap: lines that share a stretch run in different lanes.

    Args:
        graph: nodes in topological order, about 2 to 8 of them.
        title: what a screen reader says first; escaped.
        prefix: start of the element ids; two drawings in one page need different ones.
    """
    plan = _plan(graph)
    ports = _ports(plan)
    lines = "".join(_edge_line(plan, route, ports) for route in plan.routes)
    labels = "".join(_edge_label(plan, route, ports) for route in plan.routes)
    nodes = "".join(_node(plan, graph, index) for index in range(len(graph.nodes)))
    return (
        f'<svg class="net" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-labelledby="{escape(prefix)}-title {escape(prefix)}-desc" '
        f'viewBox="0 0 {plan.width:g} {plan.height:g}" width="{plan.width:g}" height="{plan.height:g}">'
        f'<title id="{escape(prefix)}-title">{escape(title)}</title>'
        f'<desc id="{escape(prefix)}-desc">{escape(_in_words(graph))}</desc>'
        f"<style>{_STYLE}</style>{lines}{labels}{nodes}</svg>"
    )


def _plan(graph: NetworkGraph) -> _Plan:
    routes = _routes(graph)
    node_width = max([72.0, *(_text_width(node.label) + 26 for node in graph.nodes)])
    pitch = node_width + max([40.0, *(_text_width(edge.label) + 62 for edge in graph.edges)])
    centres = [_MARGIN + node_width / 2 + pitch * index for index in range(len(graph.nodes))]
    above = max([route.lane for route in routes if route.side < 0], default=0)
    below = max([route.lane for route in routes if route.side > 0], default=0)
    middle = _MARGIN + above * _LANE_HEIGHT + _NODE_HEIGHT / 2
    return _Plan(
        routes=routes,
        centres=centres,
        node_width=node_width,
        middle=middle,
        width=(centres[-1] if centres else 0.0) + node_width / 2 + _MARGIN,
        height=middle + _NODE_HEIGHT / 2 + below * _LANE_HEIGHT + _MARGIN,
    )


def _routes(graph: NetworkGraph) -> list[_Route]:
    """Give short edges the inner lanes, and each edge the side on which it crosses the fewest others."""
    place = {node.id: index for index, node in enumerate(graph.nodes)}
    spans = sorted(
        ((place[edge.source], place[edge.target], edge) for edge in graph.edges),
        key=lambda span: (span[1] - span[0], not span[2].live, span[0]),
    )
    routes: list[_Route] = []
    straight: set[int] = set()
    for start, end, edge in spans:
        if end - start == 1 and start not in straight:
            straight.add(start)
            routes.append(_Route(edge=edge, start=start, end=end, side=0, lane=0))
            continue
        options = [_option(routes, edge, start, end, side) for side in (-1, 1)]
        routes.append(min(options, key=lambda option: (option[0], option[1].lane))[1])
    return routes


def _option(routes: Sequence[_Route], edge: GraphEdge, start: int, end: int, side: int) -> tuple[int, _Route]:
    """Return how many lines an edge would cross on a side, and its way there."""
    beside = [r for r in routes if r.side == side and r.start < end and start < r.end]
    crossings = sum(r.start < start < r.end < end or start < r.start < end < r.end for r in beside)
    lane = 1 + max((route.lane for route in beside), default=0)
    return crossings, _Route(edge=edge, start=start, end=end, side=side, lane=lane)


def _ports(plan: _Plan) -> dict[tuple[int, str], float]:
    """Return where each line leaves and enters its nodes: (index of the route, `out` or `in`) -> x.

    On the edge of a node the entering lines stand left of the leaving ones; of the entering lines the outer
    lanes stand further right, of the leaving ones further left: then no two of them cross near the node.
    """
    touching: dict[tuple[int, int], list[tuple[tuple[int, int], int, str]]] = defaultdict(list)
    for index, route in enumerate(plan.routes):
        if route.lane:
            touching[route.end, route.side].append(((0, route.lane), index, "in"))
            touching[route.start, route.side].append(((1, -route.lane), index, "out"))
    ports = {}
    for (node, _), lines in touching.items():
        left = plan.centres[node] - plan.node_width / 2
        for position, (_, index, way) in enumerate(sorted(lines), start=1):
            ports[index, way] = left + plan.node_width * position / (len(lines) + 1)
    return ports


def _edge_line(plan: _Plan, route: _Route, ports: dict[tuple[int, str], float]) -> str:
    if route.lane == 0:
        start = plan.centres[route.start] + plan.node_width / 2
        end = plan.centres[route.end] - plan.node_width / 2
        path = f"M{start:g} {plan.middle:g}H{end - 7:g}"
        tip = f"M{end:g} {plan.middle:g}l-9 -5v10z"
    else:
        start, end = _ends(plan, route, ports)
        rim = plan.middle + route.side * _NODE_HEIGHT / 2
        lane, turn = _lane_y(plan, route), -route.side * _CORNER
        path = (
            f"M{start:g} {rim:g}V{lane + turn:g}Q{start:g} {lane:g} {start + _CORNER:g} {lane:g}"
            f"H{end - _CORNER:g}Q{end:g} {lane:g} {end:g} {lane + turn:g}V{rim + route.side * 7:g}"
        )
        tip = f"M{end:g} {rim:g}l-5 {9 * route.side:g}h10z"
    return f'<g{_dead(route)}><path class="line" d="{path}"/><path class="tip" d="{tip}"/></g>'


def _edge_label(plan: _Plan, route: _Route, ports: dict[tuple[int, str], float]) -> str:
    text = _short(route.edge.label)
    width = _text_width(text) + 18
    x, y = _label_x(plan, route, ports, width), _lane_y(plan, route)
    state = "" if route.edge.live else ", not part of the network"
    return (
        f"<g{_dead(route)}><title>{escape(f'{route.edge.label}{state}')}</title>"
        f'<rect class="pill" x="{x - width / 2:g}" y="{y - _PILL_HEIGHT / 2:g}" width="{width:g}" '
        f'height="{_PILL_HEIGHT}" rx="{_PILL_HEIGHT // 2}"/>'
        f'<text x="{x:g}" y="{y:g}">{escape(text)}</text></g>'
    )


def _label_x(plan: _Plan, route: _Route, ports: dict[tuple[int, str], float], width: float) -> float:
    """Return the place nearest the middle of the line where no line of an outer lane passes."""
    if route.lane == 0:
        return (plan.centres[route.start] + plan.centres[route.end]) / 2
    start, end = _ends(plan, route, ports)
    passing = [
        x
        for index, other in enumerate(plan.routes)
        if other.side == route.side and other.lane > route.lane
        for x in (ports[index, "out"], ports[index, "in"])
    ]
    stretch = plan.centres[route.start : route.end + 1]
    middle = (start + end) / 2
    places = sorted([(a + b) / 2 for a, b in pairwise(stretch)], key=lambda x: abs(x - middle))
    free = [x for x in (middle, *places) if all(abs(x - other) > width / 2 + 6 for other in passing)]
    return free[0] if free else middle


def _ends(plan: _Plan, route: _Route, ports: dict[tuple[int, str], float]) -> tuple[float, float]:
    index = next(i for i, other in enumerate(plan.routes) if other is route)
    return ports[index, "out"], ports[index, "in"]


def _lane_y(plan: _Plan, route: _Route) -> float:
    return plan.middle + route.side * (_NODE_HEIGHT / 2 + route.lane * _LANE_HEIGHT - 12) if route.lane else plan.middle


def _node(plan: _Plan, graph: NetworkGraph, index: int) -> str:
    node: GraphNode = graph.nodes[index]
    is_used = any(edge.live and node.id in (edge.source, edge.target) for edge in graph.edges)
    kind = "node end" if index in (0, len(graph.nodes) - 1) else "node" if is_used else "node dead"
    x, y = plan.centres[index] - plan.node_width / 2, plan.middle - _NODE_HEIGHT / 2
    tooltip = f"<title>{escape(node.detail)}</title>" if node.detail else ""
    return (
        f'<g class="{kind}">{tooltip}<rect x="{x:g}" y="{y:g}" width="{plan.node_width:g}" '
        f'height="{_NODE_HEIGHT}" rx="10"/>'
        f'<text x="{plan.centres[index]:g}" y="{plan.middle:g}">{escape(_short(node.label))}</text></g>'
    )


def _in_words(graph: NetworkGraph) -> str:
    names = {node.id: node.label for node in graph.nodes}
    live = [f"{e.label} from {names[e.source]} to {names[e.target]}" for e in graph.edges if e.live]
    dead = sum(not edge.live for edge in graph.edges)
    unused = f" {dead} further operations are not part of the network." if dead else ""
    return f"{'; '.join(live) or 'No operation'}.{unused}"


def _dead(route: _Route) -> str:
    return "" if route.edge.live else ' class="dead"'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _text_width(text: str) -> float:
    return _CHARACTER * len(_short(text))
