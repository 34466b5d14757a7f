"""The Graph view: what called what, with repeated steps merged, laid out in layers and drawn as SVG by the template."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from apps.dashboard.timeline import View, key_of
from apps.tracing.trajectory import Node

MAX_NODES = 60
WIDTH, HEIGHT, GAP_X, GAP_Y, PAD = 188, 46, 28, 44, 24
_COUNTER = re.compile(r"[\s#_-]*\d+$")


@dataclass(eq=False)
class Box:
    """One kind of step: every span of this kind and name under the same merged parent."""

    key: str
    kind: str
    name: str
    order: int
    count: int = 0
    failed: int = 0
    total_ms: float = 0.0
    hidden: int = 0
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def label(self) -> str:
        """The name, short enough for its box."""
        return self.name if len(self.name) <= 22 else f"{self.name[:21]}…"

    @property
    def mid_x(self) -> float:
        """Middle of the box."""
        return self.x + WIDTH / 2


@dataclass(frozen=True)
class Edge:
    """A way between two boxes: what came after, what stands `inside` (a step and those it holds), or `back` up again
    (a loop)."""

    path: str
    form: str
    count: int
    text_x: float
    text_y: float


@dataclass(frozen=True)
class Graph:
    """Boxes and edges with the size of the drawing."""

    boxes: list[Box]
    edges: list[Edge]
    width: float
    height: float
    cut: bool


@dataclass
class _Merged:
    boxes: dict[tuple[int, str, str], Box] = field(default_factory=dict)
    edges: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    inside: set[tuple[int, int]] = field(default_factory=set)


def graph_of(view: View) -> Graph:
    """The graph of a view, as deep as MAX_NODES boxes allow."""
    depth = 1
    best = _merge(view, depth)
    while depth < 12:
        deeper = _merge(view, depth + 1)
        if len(deeper.boxes) > MAX_NODES or len(deeper.boxes) == len(best.boxes):
            break
        best, depth = deeper, depth + 1
    return _laid_out(best)


def _plain(name: str) -> str:
    return _COUNTER.sub("", name) or name


def _merge(view: View, max_depth: int) -> _Merged:
    merged = _Merged()
    boxes: list[Box] = []

    def box_for(parent: int, node: Node) -> Box:
        kind = node.row.kind if node.row is not None else "missing"
        name = _plain(node.row.name) if node.row is not None else "?"
        key = (parent, kind, name)
        box = merged.boxes.get(key)
        if box is None:
            box = merged.boxes[key] = Box(key_of(node), kind, name, len(boxes))
            boxes.append(box)
        box.count += 1
        box.failed += bool(node.row is not None and node.row.error)
        box.total_ms += node.duration_ms
        return box

    # (nodes that follow one another, the box they start from, its depth)
    stack: list[tuple[list[Node], Box | None, int]] = [(view.tops, None, 0)]
    while stack:
        children, parent, depth = stack.pop()
        if depth > max_depth:
            if parent is not None:
                parent.hidden += len(children)
            continue
        before: list[Box] = [parent] if parent is not None else []
        for layer in _layers(children):
            now: list[Box] = []
            for node in layer:
                box = box_for(parent.order if parent is not None else -1, node)
                if box not in now:
                    now.append(box)
                if node.children:
                    stack.append((node.children, box, depth + 1))
            for source in before:
                for target in now:
                    if source is not target:
                        merged.edges[source.order, target.order] += 1
                        if source is parent:
                            merged.inside.add((source.order, target.order))
            before = now
    return merged


def _layers(children: list[Node]) -> list[list[Node]]:
    """Steps that run side by side stand together; who begins after all others ended begins a new layer."""
    layers: list[list[Node]] = []
    end = float("-inf")
    for node in sorted(children, key=lambda child: child.offset_ms):
        slack = min(5.0, node.duration_ms * 0.1)
        if layers and node.offset_ms + slack < end:
            layers[-1].append(node)
        else:
            layers.append([node])
        end = max(end, node.end_ms)
    return layers


def _laid_out(merged: _Merged) -> Graph:
    boxes = sorted(merged.boxes.values(), key=lambda box: box.order)
    forward: dict[int, list[int]] = defaultdict(list)
    into: dict[int, list[int]] = defaultdict(list)
    back: list[tuple[int, int]] = []
    for source, target in merged.edges:
        # A step seen before is returned to: that is the loop of an agent, not another layer.
        if target > source:
            forward[source].append(target)
            into[target].append(source)
        else:
            back.append((source, target))
    for box in boxes:  # sources come before targets in this order
        box.layer = max((boxes[source].layer + 1 for source in into[box.order]), default=0)
    layers: dict[int, list[Box]] = defaultdict(list)
    for box in boxes:
        layers[box.layer].append(box)
    widest = max((len(layer) for layer in layers.values()), default=1)
    full = widest * WIDTH + (widest - 1) * GAP_X
    for number in sorted(layers):
        layer = layers[number]
        layer.sort(key=lambda box: (_middle([boxes[i].mid_x for i in into[box.order]]), box.order))
        start = PAD + (full - (len(layer) * WIDTH + (len(layer) - 1) * GAP_X)) / 2
        for place, box in enumerate(layer):
            box.x = start + place * (WIDTH + GAP_X)
            box.y = PAD + number * (HEIGHT + GAP_Y)
    edges = [
        _down(boxes[source], boxes[target], merged.edges[source, target], (source, target) in merged.inside)
        for source, targets in forward.items()
        for target in targets
    ]
    loops = [_up(boxes[source], boxes[target], merged.edges[source, target]) for source, target in back]
    side = 60 if loops else 0
    return Graph(
        boxes,
        edges + loops,
        full + 2 * PAD + side,
        2 * PAD + (max(layers, default=0) + 1) * (HEIGHT + GAP_Y) - GAP_Y,
        any(box.hidden for box in boxes),
    )


def _middle(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _down(source: Box, target: Box, count: int, inside: bool) -> Edge:
    x1, y1, x2, y2 = source.mid_x, source.y + HEIGHT, target.mid_x, target.y
    bend = min(GAP_Y / 2 + 4, (y2 - y1) / 2)
    path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    return Edge(path, "inside" if inside else "then", count, (x1 + x2) / 2, (y1 + y2) / 2)


def _up(source: Box, target: Box, count: int) -> Edge:
    x1, y1 = source.x + WIDTH, source.y + HEIGHT / 2
    x2, y2 = target.x + WIDTH, target.y + HEIGHT / 2
    out = max(x1, x2) + 44
    path = f"M{x1:.0f} {y1:.0f}C{out:.0f} {y1:.0f} {out:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    return Edge(path, "back", count, out - 8, (y1 + y2) / 2)
