"""What a trace did, read off its rows: the tree, its metrics, the steps of a flat trace, tool quality.

Pure functions over `SpanRow`s without any query. Nothing recurses, so a tree may be thousands of levels deep; missing
parents and rows that are each other's parent still give a tree in which every row stands exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from apps.tracing.store.reads import SpanRow

NS_PER_MS = 1_000_000


# --- Order


def starts_ns(rows: Sequence[SpanRow]) -> dict[str, int]:
    """When each row (by id) began, in nanoseconds since 1970 (TRC-043).

    A row without a start of its own sits at its parent's start; without a stored parent, at its `createdAt`.
    """
    by_span = {row.span_id: row for row in rows if row.span_id is not None}
    known: dict[str, int] = {}
    for row in rows:
        chain: list[SpanRow] = []
        seen: set[str] = set()
        current: SpanRow | None = row
        value: int | None = None
        while current is not None and current.id not in seen:
            if current.id in known:
                value = known[current.id]
                break
            if current.start_ns is not None:
                value = known[current.id] = current.start_ns
                break
            seen.add(current.id)
            chain.append(current)
            current = by_span.get(current.parent_span_id) if current.parent_span_id is not None else None
        if value is None:
            value = chain[-1].created_ms * NS_PER_MS
        for item in chain:
            known[item.id] = value
    return known


def in_order(rows: Sequence[SpanRow]) -> list[SpanRow]:
    """The rows oldest start first; of equal starts a parent stands before its children, then the older id."""
    if len(rows) < 2:
        return list(rows)
    starts = starts_ns(rows)
    depths = _depths(rows)
    return sorted(rows, key=lambda row: (starts[row.id], depths[row.id], row.id))


def _depths(rows: Sequence[SpanRow]) -> dict[str, int]:
    """How many stored ancestors each row (by id) has; a cycle counts from where it was entered."""
    by_span = {row.span_id: row for row in rows if row.span_id is not None}
    depths: dict[str, int] = {}
    for row in rows:
        chain: list[SpanRow] = []
        seen: set[str] = set()
        current: SpanRow | None = row
        while current is not None and current.id not in depths and current.id not in seen:
            seen.add(current.id)
            chain.append(current)
            current = by_span.get(current.parent_span_id) if current.parent_span_id is not None else None
        depth = depths[current.id] + 1 if current is not None and current.id in depths else 0
        for item in reversed(chain):
            depths[item.id] = depth
            depth += 1
    return depths


# --- Tree


@dataclass(eq=False)
class Node:
    """A row in its place; `row` is None for a parent that was never stored ("missing span").

    `offset_ms` counts from the start of the tree's first root (it may be negative: a child can begin before its root)
    and `duration_ms` is 0 when unknown.
    """

    row: SpanRow | None
    span_id: str | None
    depth: int = 0
    offset_ms: float = 0.0
    duration_ms: float = 0.0
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None
    in_cycle: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether this node stands for a span that was never stored."""
        return self.row is None

    @property
    def end_ms(self) -> float:
        """Offset of the end."""
        return self.offset_ms + self.duration_ms


@dataclass(frozen=True)
class Tree:
    """The roots in order (stored roots, then missing parents and broken cycles), and the span of time they cover."""

    roots: list[Node]
    start_ns: int = 0
    begin_ms: float = 0.0
    end_ms: float = 0.0

    def walk(self) -> Iterator[Node]:
        """Every node, parents before children, siblings by their start."""
        stack = list(reversed(self.roots))
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    @property
    def extent_ms(self) -> float:
        """How long the whole waterfall is; never 0, so that a share of it can be computed."""
        return max(self.end_ms - self.begin_ms, 0.001)


def build_tree(rows: Sequence[SpanRow], *, adopt: bool = True) -> Tree:
    """The rows as a tree.

    Rows whose parent is not among them hang under one "missing span" node for each such parent; with `adopt` these
    nodes stand below the only root (they belong to its trace), else, or with several roots, at the top. Of rows that
    are each other's ancestors the one that began first is put where its missing parent would be.
    """
    if not rows:
        return Tree([])
    rows = in_order(rows)
    starts = starts_ns(rows)
    nodes = {row.id: Node(row, row.span_id) for row in rows}
    by_span = {row.span_id: nodes[row.id] for row in rows if row.span_id is not None}
    tops: list[Node] = []
    missing: dict[str, Node] = {}
    for row in rows:
        node = nodes[row.id]
        if row.parent_span_id is None:
            tops.append(node)
            continue
        parent = by_span.get(row.parent_span_id)
        if parent is None:
            parent = missing.get(row.parent_span_id)
            if parent is None:
                parent = missing[row.parent_span_id] = Node(None, row.parent_span_id)
        if parent is node:
            node.in_cycle = True
        else:
            node.parent = parent
            parent.children.append(node)
    loose = list(missing.values()) + _break_cycles(rows, nodes, [*tops, *missing.values()])
    if adopt and len(tops) == 1:
        for node in loose:
            node.parent = tops[0]
            tops[0].children.append(node)
    else:
        tops = tops + loose
    return _timed(tops, starts)


def _break_cycles(rows: Sequence[SpanRow], nodes: dict[str, Node], tops: Iterable[Node]) -> list[Node]:
    """Cut every cycle at its earliest row and return the rows that were freed. `rows` come in order."""
    position = {row.id: index for index, row in enumerate(rows)}
    reached: set[int] = set()

    def reach(start: Node) -> None:
        stack = [start]
        while stack:
            node = stack.pop()
            if id(node) not in reached:
                reached.add(id(node))
                stack.extend(node.children)

    for top in tops:
        reach(top)
    freed: list[Node] = []
    for row in rows:
        node = nodes[row.id]
        if id(node) in reached:
            continue
        # Climb until a node repeats: that one is in the cycle itself, not merely below it.
        seen: set[int] = set()
        while node.parent is not None and id(node) not in seen:
            seen.add(id(node))
            node = node.parent
        cycle = [node]
        step = node.parent
        while step is not None and step is not node:
            cycle.append(step)
            step = step.parent
        first = min(cycle, key=lambda item: position[item.row.id] if item.row is not None else -1)
        if first.parent is not None:
            first.parent.children.remove(first)
            first.parent = None
        for item in cycle:
            item.in_cycle = True
        freed.append(first)
        reach(first)
    return freed


def _timed(tops: list[Node], starts: dict[str, int]) -> Tree:
    """Fill in depths, offsets and durations, sort siblings, and measure the whole."""
    origin = next((starts[node.row.id] for node in tops if node.row is not None), min(starts.values()))
    ordered: list[Node] = []
    stack: list[tuple[Node, int]] = [(node, 0) for node in tops]
    while stack:
        node, depth = stack.pop()
        node.depth = depth
        ordered.append(node)
        if node.row is not None:
            node.offset_ms = (starts[node.row.id] - origin) / NS_PER_MS
            node.duration_ms = max(node.row.latency_ms or 0.0, 0.0)
        stack.extend((child, node.depth + 1) for child in node.children)
    for node in reversed(ordered):  # children before their parents
        if node.row is None and node.children:
            node.offset_ms = min(child.offset_ms for child in node.children)
            node.duration_ms = max(child.end_ms for child in node.children) - node.offset_ms
        node.children.sort(key=lambda child: child.offset_ms)
    return Tree(
        tops,
        origin,
        min(node.offset_ms for node in ordered),
        max(node.end_ms for node in ordered),
    )


def descendants(node: Node) -> int:
    """How many nodes stand below this one."""
    count = -1
    stack = [node]
    while stack:
        count += 1
        stack.extend(stack.pop().children)
    return count


def critical_path(tree: Tree) -> list[Node]:
    """The chain of nodes that decided how long the first root took, from the root down: at each level the child that
    ended last."""
    path: list[Node] = []
    node = tree.roots[0] if tree.roots else None
    while node is not None:
        path.append(node)
        node = max(node.children, key=lambda child: child.end_ms, default=None)
    return path


# --- Metrics


@dataclass(frozen=True)
class Metrics:
    """The performance strip of a trace. `latency_ms` is the root's; counts are of stored rows, the root left out."""

    spans: int = 0
    steps: int = 0
    depth: int = 0
    llm_calls: int = 0
    retrievals: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    failures: int = 0
    missing: int = 0
    latency_ms: float | None = None
    llm_ms: float = 0.0
    tool_ms: float = 0.0
    retrieval_ms: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    kinds: dict[str, int] = field(default_factory=dict)


def metrics(tree: Tree) -> Metrics:
    """The figures of one trace's tree. Tokens and cost are sums of own counts, so no level is counted twice."""
    root = next((node.row for node in tree.roots if node.row is not None), None)
    kinds: dict[str, int] = defaultdict(int)
    time_of: dict[str, float] = defaultdict(float)
    spans = depth = failures = missing = 0
    cost: float | None = None
    for node in tree.walk():
        row = node.row
        depth = max(depth, node.depth + 1)
        if row is None:
            missing += 1
            continue
        spans += 1
        if row.error:
            failures += 1
        if row.own_cost_usd is not None:
            cost = (cost or 0.0) + row.own_cost_usd
        if row is root:
            continue
        kinds[row.kind] += 1
        time_of[row.kind] += node.duration_ms
    tokens_in, tokens_out = token_totals([node.row for node in tree.walk() if node.row is not None])
    calls = tool_calls_of(root) if root is not None else []
    failed = sum(call.get("success") is False for call in calls)
    return Metrics(
        spans=spans,
        steps=max(spans - 1, 0) if root is not None else spans,
        depth=depth,
        llm_calls=kinds["llm"] or (1 if root is not None and root.kind == "llm" else 0),
        retrievals=kinds["retrieval"] or len(_summary_steps(root, "retrieval_steps")),
        tool_calls=len(calls) or kinds["tool"],
        tool_failures=failed,
        failures=failures,
        missing=missing,
        latency_ms=root.latency_ms if root is not None else None,
        llm_ms=time_of["llm"],
        tool_ms=time_of["tool"],
        retrieval_ms=time_of["retrieval"],
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost_usd=cost,
        kinds={kind: count for kind, count in kinds.items() if count},
    )


def token_totals(rows: Sequence[SpanRow]) -> tuple[int | None, int | None]:
    """(input, output) tokens of the rows together, each count once (TRC-123); None when no row recorded any.

    A row stands for what it recorded or, where that is more, for what its children stand for: levels that repeat the
    counts below them add nothing, levels without counts hide nothing (apps.tracing.store.counts keeps the same sums).
    """
    children: dict[str, list[SpanRow]] = defaultdict(list)
    known = {row.span_id for row in rows if row.span_id is not None}
    tops: list[SpanRow] = []
    for row in rows:
        if row.parent_span_id in known and row.parent_span_id != row.span_id:
            children[row.parent_span_id or ""].append(row)
        else:
            tops.append(row)
    covered: dict[str, tuple[int, int]] = {}
    total_in = total_out = 0
    # Rows of a cycle hang below no top: the first of them gets its turn as one.
    for top in (*tops, *rows):
        if top.id in covered:
            continue
        order = [top]
        seen = {top.id}
        for row in order:
            for child in children.get(row.span_id or "", ()):
                if child.id not in seen and child.id not in covered:
                    seen.add(child.id)
                    order.append(child)
        for row in reversed(order):
            below = [covered.get(child.id, (0, 0)) for child in children.get(row.span_id or "", ())]
            covered[row.id] = (
                max(row.input_tokens or 0, sum(counts[0] for counts in below)),
                max(row.output_tokens or 0, sum(counts[1] for counts in below)),
            )
        total_in += covered[top.id][0]
        total_out += covered[top.id][1]
    return (
        total_in if any(row.input_tokens is not None for row in rows) else None,
        total_out if any(row.output_tokens is not None for row in rows) else None,
    )


# --- Flat traces


@dataclass(frozen=True)
class Step:
    """One step of a trace that has no finer rows: from its performance summary, its tool calls, or itself."""

    name: str
    kind: str
    input: Any = None
    output: Any = None
    duration_ms: float | None = None
    offset_ms: float | None = None
    error: str | None = None
    doc_count: int | None = None


def parsed(text: str | None) -> Any:
    """The value of a JSON payload; the text itself when it cannot be parsed (cut, or nested too deep)."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _summary_steps(row: SpanRow | None, key: str) -> list[dict[str, Any]]:
    summary = parsed(row.performance_summary) if row is not None else None
    steps = summary.get(key) if isinstance(summary, dict) else None
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _first(step: dict[str, Any], *keys: str) -> Any:
    return next((step[key] for key in keys if step.get(key) is not None), None)


def _step(step: dict[str, Any], default_name: str, kind: str) -> Step:
    count = _number(_first(step, "doc_count", "docCount"))
    error = _first(step, "error")
    return Step(
        name=str(_first(step, "name", "tool", "model") or default_name),
        kind=str(_first(step, "span_kind", "spanKind", "kind") or kind),
        input=_first(step, "query", "input", "prompt"),
        output=_first(step, "output", "result", "response"),
        duration_ms=_number(_first(step, "duration_ms", "durationMs", "latency_ms", "latencyMs")),
        offset_ms=_number(_first(step, "start_ms", "startMs", "offset_ms", "offsetMs")),
        error=None if error is None else str(error),
        doc_count=None if count is None else int(count),
    )


def flat_steps(row: SpanRow) -> list[Step]:
    """The steps of a trace without children: `retrieval_steps` and `execution_steps` of its performance summary and
    its tool calls; with none of them one step made from its own input and output (UI-026, UI-027)."""
    steps = [
        _step(item, f"Retrieval {n}", "retrieval") for n, item in enumerate(_summary_steps(row, "retrieval_steps"), 1)
    ]
    steps += [_step(item, f"LLM Call {n}", "llm") for n, item in enumerate(_summary_steps(row, "execution_steps"), 1)]
    steps += [_step(item, f"Tool {n}", "tool") for n, item in enumerate(tool_calls_of(row), 1)]
    if steps:
        return steps
    return [Step(row.name, row.kind, parsed(row.input), parsed(row.output), row.latency_ms, 0.0, row.error)]


# --- Tools


def tool_calls_of(row: SpanRow) -> list[dict[str, Any]]:
    """The entries of a row's flat list of tool calls."""
    calls = parsed(row.tool_calls)
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def call_failed(call: dict[str, Any]) -> bool | None:
    """Whether a tool call failed, for the Tool quality column: `success` says it, else an output that begins with
    `ERROR:` or an `error` says it failed; None when nothing tells (MON-018). Outcomes count `success: false` only."""
    success = call.get("success")
    if isinstance(success, bool):
        return not success
    if call.get("error"):
        return True
    output = call.get("output")
    if isinstance(output, str) and output.strip():
        return output.lstrip().upper().startswith("ERROR:")
    return None


@dataclass(frozen=True)
class ToolQuality:
    """How one tool did in a trace: calls, of which failed, passed, or with nothing to tell by."""

    name: str
    calls: int
    failed: int
    passed: int
    unknown: int
    latency_ms: float | None = None

    @property
    def pass_rate(self) -> float | None:
        """Passed among those that can be told, 0..1; None when none can."""
        known = self.failed + self.passed
        return self.passed / known if known else None


def tool_quality(row: SpanRow) -> list[ToolQuality]:
    """Quality by tool from the root's own list of calls, tools in the order they were first called (TRC-087)."""
    by_tool: dict[str, list[dict[str, Any]]] = {}
    for call in tool_calls_of(row):
        by_tool.setdefault(str(call.get("name") or "tool"), []).append(call)
    result = []
    for name, calls in by_tool.items():
        verdicts = [call_failed(call) for call in calls]
        times = [t for t in (_number(_first(call, "latency_ms", "latencyMs")) for call in calls) if t is not None]
        result.append(
            ToolQuality(
                name=name,
                calls=len(calls),
                failed=verdicts.count(True),
                passed=verdicts.count(False),
                unknown=verdicts.count(None),
                latency_ms=sum(times) if times else None,
            )
        )
    return result
