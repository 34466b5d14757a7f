"""What the trace page shows, put together from the selectors and the pure functions of the trajectory."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from apps.dashboard import jsonview, messages, texts, timeline
from apps.dashboard.previews import first_line
from apps.projects.models import Project
from apps.tracing import browse, selectors, trajectory
from apps.tracing.api.wire import estimated_cost
from apps.tracing.store.reads import SpanRow
from apps.tracing.trajectory import Node, Tree

STEP = "step:"
# Payload members a page can show and a client can fetch whole.
FIELDS = ("input", "output", "tool_calls", "metadata", "performance_summary", "error")
# A person who walks through a tree of thousands of spans asks for its parts again and again: it is built once and kept
# for some seconds, as long as no row below the root arrives or goes.
_LARGE = 500
_TREE_SECONDS = 20.0
_TREES_MOST = 4
_trees: dict[tuple[int, str], tuple[tuple[int, str | None], float, Tree]] = {}
_CHUNK_BREAK = "\n\n---\n\n"


def flat_tree(root: SpanRow) -> Tree:
    """A trace without finer rows, with the steps its summary and tool calls tell of as children (UI-026)."""
    tree = trajectory.build_tree([root])
    steps = trajectory.flat_steps(root)
    if not tree.roots or (len(steps) == 1 and steps[0].name == root.name and steps[0].offset_ms == 0.0):
        return tree
    top = tree.roots[0]
    at = 0.0
    for number, step in enumerate(steps):
        length = max(step.duration_ms or 0.0, 0.0)
        offset = step.offset_ms if step.offset_ms is not None else at
        at = offset + length
        row = msgspec.structs.replace(
            root,
            id=f"{STEP}{number}",
            span_id=None,
            name=step.name,
            kind=step.kind,
            latency_ms=step.duration_ms,
            error=step.error,
            status=int(step.error is not None),
            model=None,
            input_tokens=None,
            output_tokens=None,
            cache_read_tokens=None,
            cache_write_tokens=None,
            cost_usd=None,
            own_cost_usd=None,
            tool_count=0,
            tool_failures=0,
            input=None if step.input is None else json.dumps(step.input),
            output=None if step.output is None else json.dumps(step.output),
            tool_calls=None,
            metadata=None if step.doc_count is None else json.dumps({"doc_count": step.doc_count}),
            performance_summary=None,
        )
        top.children.append(Node(row, None, 1, top.offset_ms + offset, length, [], top))
    end = max([tree.end_ms, *(child.end_ms for child in top.children)])
    return Tree(tree.roots, tree.start_ns, tree.begin_ms, end)


@dataclass
class TraceDetail:
    """One trace: its root in full, its tree without payloads."""

    project: Project
    root: SpanRow

    @cached_property
    def tree(self) -> Tree:
        """The span tree; steps of the summary stand in for children of a flat trace."""
        key = (self.project.pk, self.root.id)
        known = _trees.get(key)
        # Asked before the rows are read: what arrives between makes the kept tree look old, never new.
        version = browse.tree_version(self.project, self.root.id)
        if known is not None and known[0] == version and time.monotonic() < known[1]:
            return known[2]
        rows = selectors.trace_tree(self.project, self.root.id, payloads=False)
        if len(rows) <= 1:
            return flat_tree(self.root)
        rows = [self.root if row.id == self.root.id else row for row in rows]
        tree = trajectory.build_tree(rows)
        if len(rows) >= _LARGE:
            if len(_trees) >= _TREES_MOST:
                _trees.clear()
            _trees[key] = (version, time.monotonic() + _TREE_SECONDS, tree)
        return tree

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Nodes by key."""
        return timeline.index(self.tree)

    @cached_property
    def metrics(self) -> trajectory.Metrics:
        """The performance strip."""
        return trajectory.metrics(self.tree)

    @property
    def steps(self) -> int:
        """Steps of the trace; one that has nothing finer is one step itself."""
        return max(1, self.metrics.steps)

    @cached_property
    def first_tokens(self) -> dict[str, float]:
        """Time to the first token by row id, of the streamed calls of this trace."""
        found = {}
        for row in [self.root, *browse.streamed_calls(self.project, self.root.id)]:
            value = timeline.first_token_ms(row.metadata, row.performance_summary)
            if value is not None:
                found[row.id] = value
        return found

    @cached_property
    def first_token_ms(self) -> float | None:
        """The trace's time to its first token: what the root says, else when the first streamed call spoke."""
        if self.root.id in self.first_tokens:
            return self.first_tokens[self.root.id]
        moments = [self.nodes[key].offset_ms + value for key, value in self.first_tokens.items() if key in self.nodes]
        return min(moments, default=None)

    @cached_property
    def cache_tokens(self) -> tuple[int | None, int | None]:
        """(read, written) of the whole tree: the root's own record, else the sum of what its model calls say."""
        if self.root.cache_read_tokens is not None or self.root.cache_write_tokens is not None:
            return self.root.cache_read_tokens, self.root.cache_write_tokens
        rows = [node.row for node in self.tree.walk() if node.row is not None and not node.children]
        read = [row.cache_read_tokens for row in rows if row.cache_read_tokens is not None]
        write = [row.cache_write_tokens for row in rows if row.cache_write_tokens is not None]
        return (sum(read) if read else None, sum(write) if write else None)

    @cached_property
    def cost_usd(self) -> float | None:
        """Estimated cost of the whole tree, each level once; a price known by now counts for rows stored without."""
        if self.metrics.cost_usd is not None:
            return self.metrics.cost_usd
        return estimated_cost(self.project, self.root)

    @cached_property
    def title(self) -> str:
        """What was asked, else the trace's name."""
        return first_line(texts.asked(self.root.input), 160) or self.root.name

    @property
    def failed(self) -> bool:
        """Whether the root carries an error."""
        return bool(self.root.error)


@dataclass
class Payload:
    """One payload of a span as the rail shows it: a conversation, chunks, or JSON; never more than a page can hold."""

    name: str
    label: str
    text: str | None
    kind: str = ""

    @cached_property
    def value(self) -> Any:
        """The parsed payload."""
        return jsonview.parse(self.text)

    @cached_property
    def messages(self) -> list[messages.Message] | None:
        """The conversation it holds, if any."""
        return messages.conversation(self.value)

    @cached_property
    def chunks(self) -> list[str] | None:
        """The documents of a retrieval's output."""
        if self.kind != "retrieval" or self.name != "output":
            return None
        value = self.value
        if isinstance(value, dict):
            value = next(
                (
                    value[key]
                    for key in ("documents", "chunks", "results", "output")
                    if isinstance(value.get(key), list)
                ),
                value,
            )
        if isinstance(value, str) and _CHUNK_BREAK in value:
            value = value.split(_CHUNK_BREAK)
        if not isinstance(value, list) or not value:
            return None
        return [_chunk(item) for item in value[:50]]

    @property
    def is_text(self) -> bool:
        """Whether it is plain text, which wraps as prose."""
        return isinstance(self.value, str)

    @property
    def size(self) -> str:
        """How much was stored."""
        return jsonview.readable_size(len(self.text or ""))

    @property
    def is_large(self) -> bool:
        """Whether the page shows only its beginning."""
        return len(self.text or "") > 20_000


def _chunk(item: Any) -> str:
    if isinstance(item, dict):
        for key in ("page_content", "content", "text", "chunk", "document"):
            if isinstance(item.get(key), str):
                item = item[key]
                break
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    shown, left = jsonview.cut(text, 3_000)
    return f"{shown} … {jsonview.readable_size(left)}" if left else shown


@dataclass
class SpanDetail:
    """One selected step for the rail."""

    trace: TraceDetail
    key: str
    node: Node
    row: SpanRow | None

    @property
    def is_step(self) -> bool:
        """Whether it comes from the trace's summary and is no row of its own."""
        return self.key.startswith(STEP)

    @property
    def share(self) -> float | None:
        """Part of the trace's duration, 0..1."""
        whole = self.trace.root.latency_ms
        return min(1.0, self.node.duration_ms / whole) if whole and self.key != self.trace.root.id else None

    @cached_property
    def payloads(self) -> list[Payload]:
        """Input and output."""
        if self.row is None:
            return []
        row = self.row
        return [Payload("input", _("Input"), row.input, row.kind), Payload("output", _("Output"), row.output, row.kind)]

    @cached_property
    def extras(self) -> list[Payload]:
        """Metadata and performance summary, folded."""
        if self.row is None:
            return []
        found = [
            Payload("metadata", _("Metadata"), self.row.metadata),
            Payload("performance_summary", _("Performance summary"), self.row.performance_summary),
        ]
        return [payload for payload in found if payload.text]

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """The span's own list of tool calls, each with its verdict and previews."""
        if self.row is None:
            return []
        return [
            {
                "name": str(call.get("name") or _("tool")),
                "verdict": {True: "fail", False: "pass", None: "none"}[trajectory.call_failed(call)],
                "latency_ms": next(
                    (call[k] for k in ("latency_ms", "latencyMs") if isinstance(call.get(k), int | float)), None
                ),
                "error": first_line(call.get("error"), 300),
                "input": call.get("input", call.get("arguments", call.get("args"))),
                "output": call.get("output", call.get("result")),
            }
            for call in trajectory.tool_calls_of(self.row)[:100]
        ]

    @property
    def first_token_ms(self) -> float | None:
        """Time to this call's first token."""
        return self.trace.first_tokens.get(self.row.id) if self.row is not None else None

    @cached_property
    def cost_usd(self) -> float | None:
        """Estimated cost of the recorded counts."""
        return estimated_cost(self.trace.project, self.row) if self.row is not None and not self.is_step else None

    @property
    def kept_only_parts(self) -> bool:
        """Whether a cap cut a payload of this span when it was stored."""
        if self.row is None:
            return False
        return any(
            text is not None and "truncated" in text[-200:]
            for text in (self.row.input, self.row.output, self.row.tool_calls)
        )


def span_detail(trace: TraceDetail, key: str) -> SpanDetail | None:
    """The step named by a key of the address, with its payloads; None when the trace has no such step."""
    node = trace.nodes.get(key)
    if node is None:
        return None
    row = node.row
    if row is not None and not key.startswith(STEP):
        row = trace.root if key == trace.root.id else selectors.get_span(trace.project, key)
    return SpanDetail(trace, key, node, row)
