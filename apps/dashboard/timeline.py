"""The waterfall of a trace: which rows are drawn at first, and where their bars stand.

A trace may have 10,000 spans or be 2,000 levels deep. A page draws a bounded number of rows; the children of a folded
row are asked for when it is unfolded, and any step can be made the top of the view.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.dashboard.formats import compact, duration
from apps.dashboard.previews import first_line
from apps.tracing.trajectory import Node, Tree, descendants

FIRST_ROWS = 160
CHILDREN = 100
FLAT_ROWS = 400
# Levels beyond this are not indented further; the row says its level instead.
INDENT_LEVELS = 8
MISSING = "missing:"


def key_of(node: Node) -> str:
    """The name of a node in addresses: its row's id, or that of the span that was never stored."""
    return node.row.id if node.row is not None else f"{MISSING}{node.span_id}"


@dataclass(frozen=True)
class Row:
    """One row of the waterfall. Positions are percent of the view's extent."""

    node: Node
    key: str
    level: int
    expanded: bool | None
    x: float
    width: float
    first_token: float | None
    note: str

    @property
    def kind(self) -> str:
        """The span's kind; a missing span has none."""
        return self.node.row.kind if self.node.row is not None else ""

    @property
    def name(self) -> str:
        """The span's name."""
        return self.node.row.name if self.node.row is not None else _("Missing span")

    @property
    def failed(self) -> bool:
        """Whether the span carries an error."""
        return self.node.row is not None and bool(self.node.row.error)

    @property
    def holds(self) -> bool:
        """Whether the span's bar is thin: it holds other steps."""
        return bool(self.node.children)

    @property
    def indent(self) -> int:
        """How far the name is moved in."""
        return min(self.level - 1, INDENT_LEVELS)

    @property
    def deep(self) -> bool:
        """Whether the level has to be said in words."""
        return self.level - 1 > INDENT_LEVELS

    @property
    def starts(self) -> str:
        """When the span begins, in words."""
        return _("starts at %(offset)s") % {"offset": duration(self.node.offset_ms)}


@dataclass(frozen=True)
class More:
    """The place of children that are not drawn yet: `rest` of them, from index `start` of the parent's children."""

    key: str
    level: int
    rest: int
    start: int


@dataclass(frozen=True)
class View:
    """What a waterfall is drawn of: the top nodes and the time they cover."""

    tops: list[Node]
    begin: float
    extent: float
    base: int

    def place(self, node: Node) -> tuple[float, float]:
        """(x, width) in percent; a bar is never invisible and never leaves the chart."""
        x = (node.offset_ms - self.begin) / self.extent * 100
        width = node.duration_ms / self.extent * 100
        x = min(max(x, 0.0), 99.8)
        return round(x, 3), round(min(max(width, 0.2), 100 - x), 3)

    def ticks(self) -> list[tuple[float, str]]:
        """(position, text) of three to six round times."""
        rough = self.extent / 4
        power = 10 ** len(str(int(rough))) / 10 if rough >= 1 else 0.1
        step = next((power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough * 0.8), power * 10)
        count = int(self.extent / step)
        return [(round(n * step / self.extent * 100, 3), duration(n * step)) for n in range(count + 1)]


def view_of(tree: Tree, top: Node | None = None) -> View:
    """The whole tree, or the part below `top`."""
    if top is None:
        return View(tree.roots, tree.begin_ms, tree.extent_ms, 0)
    begin, end = top.offset_ms, top.end_ms
    stack = [top]
    while stack:
        node = stack.pop()
        begin, end = min(begin, node.offset_ms), max(end, node.end_ms)
        stack.extend(node.children)
    return View([top], begin, max(end - begin, 0.001), top.depth)


def index(tree: Tree) -> dict[str, Node]:
    """Nodes by their key."""
    return {key_of(node): node for node in tree.walk()}


def ancestors(node: Node) -> list[Node]:
    """The node's parents, the nearest first."""
    found = []
    step = node.parent
    while step is not None:
        found.append(step)
        step = step.parent
    return found


def first_rows(
    view: View, selected: Node | None, first_tokens: dict[str, float], budget: int = FIRST_ROWS
) -> list[Row | More]:
    """The rows of the first drawing: levels are unfolded from the top until the budget is spent; the path to the
    selected row is open in any case."""
    must = {id(node) for node in ancestors(selected)} if selected is not None else set()
    opened: set[int] = set()
    shown = len(view.tops[:CHILDREN])
    queue = deque(view.tops[:CHILDREN])
    while queue:
        node = queue.popleft()
        children = node.children[:CHILDREN]
        if not children:
            continue
        if id(node) in must or shown + len(children) <= budget:
            opened.add(id(node))
            shown += len(children)
            queue.extend(children)
    on_path = must | ({id(selected)} if selected is not None else set())
    rows: list[Row | More] = []
    stack: list[tuple[Node, int] | More] = [(node, 1) for node in reversed(view.tops[:CHILDREN])]
    while stack:
        item = stack.pop()
        if isinstance(item, More):
            rows.append(item)
            continue
        node, level = item
        is_open = id(node) in opened
        rows.append(row_of(view, node, level, is_open, first_tokens))
        if not is_open:
            continue
        children = node.children[:CHILDREN]
        hidden = [child for child in node.children[CHILDREN:] if id(child) in on_path]
        rest = len(node.children) - len(children)
        if rest:
            stack.append(More(key_of(node), level + 1, rest, CHILDREN))
        stack.extend((child, level + 1) for child in reversed([*children, *hidden]))
    return rows


def row_of(view: View, node: Node, level: int, is_open: bool, first_tokens: dict[str, float]) -> Row:
    """One row; `expanded` is None for a step without children."""
    x, width = view.place(node)
    token = first_tokens.get(node.row.id) if node.row is not None else None
    at = None
    if token is not None and 0 < token < node.duration_ms:
        at = round(x + token / view.extent * 100, 3)
    return Row(
        node,
        key_of(node),
        level,
        is_open if node.children else None,
        x,
        width,
        at,
        note_of(node),
    )


def children_rows(view: View, parent: Node, level: int, start: int, first_tokens: dict[str, float]) -> list[Row | More]:
    """A parent's direct children from `start` on, folded, and the place of those that follow."""
    part = parent.children[start : start + CHILDREN]
    rows: list[Row | More] = [row_of(view, node, level, False, first_tokens) for node in part]
    rest = len(parent.children) - start - len(part)
    if rest > 0:
        rows.append(More(key_of(parent), level, rest, start + len(part)))
    return rows


def of_kinds(view: View, kinds: Iterable[str], first_tokens: dict[str, float], start: int = 0) -> tuple[list[Row], int]:
    """(rows, total) of the steps of these kinds in order of time, without their tree."""
    wanted = set(kinds)
    nodes = []
    stack = list(reversed(view.tops))
    while stack:
        node = stack.pop()
        if (node.row.kind if node.row is not None else "missing") in wanted:
            nodes.append(node)
        stack.extend(reversed(node.children))
    nodes.sort(key=lambda node: node.offset_ms)
    rows = [row_of(view, node, 1, False, first_tokens) for node in nodes[start : start + FLAT_ROWS]]
    return [_leaf(row) for row in rows], len(nodes)


def _leaf(row: Row) -> Row:
    return Row(row.node, row.key, 1, None, row.x, row.width, row.first_token, row.note)


def errors_in_order(view: View) -> list[str]:
    """Keys of the failed steps in the order of the tree, at most 200."""
    found: list[str] = []
    stack = list(reversed(view.tops))
    while stack and len(found) < 200:
        node = stack.pop()
        if node.row is not None and node.row.error:
            found.append(node.row.id)
        stack.extend(reversed(node.children))
    return found


def kind_counts(view: View) -> list[tuple[str, int]]:
    """(kind, steps) of what the view holds, in the fixed order of kinds."""
    order = (
        "agent", "llm", "tool", "retrieval", "embedding", "reranker", "memory", "guardrail", "evaluator", "prompt", "chain",
    )  # fmt: skip
    counts: Counter[str] = Counter()
    stack = list(view.tops)
    while stack:
        node = stack.pop()
        if node.row is not None:
            counts[node.row.kind] += 1
        stack.extend(node.children)
    known = [(kind, counts.pop(kind)) for kind in order if kind in counts]
    return known + sorted(counts.items())


def note_of(node: Node) -> str:
    """What a row says beside its name: model and tokens, the error, how many run side by side, what is missing."""
    row = node.row
    if row is None:
        return _("never sent; %(n)s below") % {"n": descendants(node)}
    if row.error:
        return first_line(row.error, 80)
    notes = []
    if row.model:
        notes.append(row.model)
    tokens = (row.input_tokens or 0) + (row.output_tokens or 0)
    if tokens:
        notes.append(_("%(n)s tok") % {"n": compact(tokens)})
    side_by_side = parallel(node.children)
    if side_by_side > 1:
        notes.append(_("%(n)s in parallel") % {"n": side_by_side})
    elif len(node.children) > CHILDREN:
        n = len(node.children)
        notes.append(ngettext("%(n)s step", "%(n)s steps", n) % {"n": n})
    if node.in_cycle:
        notes.append(_("its parents form a circle"))
    return " · ".join(notes)


def parallel(children: list[Node]) -> int:
    """The most children that run at one moment; short overlaps of neighbours do not count."""
    if len(children) < 2 or len(children) > 2_000:
        return 0
    events: list[tuple[float, int]] = []
    for child in children:
        if child.duration_ms > 0:
            margin = child.duration_ms * 0.1
            events.append((child.offset_ms + margin, 1))
            events.append((child.end_ms - margin, -1))
    most = now = 0
    for _at, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def first_token_ms(metadata: str | None, summary: str | None = None) -> float | None:
    """Time to the first token that a streamed call recorded, in milliseconds."""
    for text in (metadata, summary):
        if not text or "irst" not in text or len(text) > 500_000:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict):
            continue
        for key in ("timeToFirstTokenMs", "time_to_first_token_ms", "ttft_ms", "ttftMs"):
            found = value.get(key)
            if isinstance(found, int | float) and not isinstance(found, bool) and found >= 0:
                return float(found)
    return None
