"""What a linked trace tells the judge and the deterministic checks: path of tools, their definitions, retrieved chunks.

`read_trace` reads the tree once; everything else here is pure.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from apps.projects.models import Project
from apps.scorers.texts import cut_visibly
from apps.tracing.selectors import get_span, trace_tree
from apps.tracing.store.reads import SpanRow
from apps.tracing.trajectory import call_failed, flat_steps, parsed, tool_calls_of

_VALUE_MOST = 2_000
_TRAJECTORY_MOST = 40_000
_DEFINITIONS_MOST = 40_000
_STEPS_MOST = 300
_CHUNK_BREAK = "\n\n---\n\n"
_TEXT_KEYS = ("text", "content", "page_content", "pageContent", "chunk", "snippet", "body", "value")
_LIST_KEYS = ("documents", "chunks", "results", "nodes", "matches", "retrievalContext", "context", "output")


@dataclass(frozen=True, slots=True)
class TraceMaterial:
    """Of one trace: `tool_calls` as its root lists them (source 1:8917-8922), the path as text, the definitions of the
    tools it used, and its retrieved chunks: None when it recorded no retrieval, empty when one found nothing."""

    trace_id: str
    tool_calls: list[dict[str, Any]]
    trajectory: str
    tool_definitions: str
    retrieval: list[str] | None
    stated_context: list[str] | None = None
    reasoning: str = ""


def read_trace(project: Project, trace_id: str | None) -> TraceMaterial | None:
    """The material of a trace of the project, by the id of its root or of any row below; None when it is unknown."""
    if not trace_id:
        return None
    row = get_span(project, trace_id)
    if row is None:
        return None
    rows = trace_tree(project, row.id if row.is_root else row.root_id or row.id)
    return material_of(rows or [row])


def material_of(rows: Sequence[SpanRow]) -> TraceMaterial:
    """The material of a trace's rows, which come in the order they began."""
    root = next((row for row in rows if row.is_root), rows[0])
    calls = tool_calls_of(root)
    steps = _tree_steps(rows, root) or [_call_step(call) for call in calls]
    metadata = parsed(root.metadata)
    metadata = metadata if isinstance(metadata, dict) else {}
    used = list(
        dict.fromkeys(
            [str(call.get("name") or "") for call in calls]
            + [r.name for r in rows if r.kind == "tool" and not r.tool_calls]
        )
    )
    reasoning = next(
        (metadata[key] for key in ("chainOfThought", "chain_of_thought") if isinstance(metadata.get(key), str)), ""
    )
    return TraceMaterial(
        trace_id=root.id,
        tool_calls=calls,
        trajectory=_path(steps),
        tool_definitions=_definitions(rows, used),
        retrieval=_retrieved(rows, root),
        stated_context=chunks_of(metadata.get("retrievalContext")) if "retrievalContext" in metadata else None,
        reasoning=reasoning,
    )


# --- Path


@dataclass(frozen=True, slots=True)
class _Step:
    title: str
    arguments: Any
    result: Any
    failed: bool
    error: str | None


def _tree_steps(rows: Sequence[SpanRow], root: SpanRow) -> list[_Step]:
    """Tool, retrieval and sub-agent rows below the root. Without a tool row the root's flat list tells more."""
    titles = {"tool": "Tool", "retrieval": "Retrieval", "agent": "Sub-agent"}
    # A row whose kind was inferred from a list of calls of its own is no execution of one tool.
    below = [
        row for row in rows if row is not root and row.kind in titles and not (row.kind == "tool" and row.tool_calls)
    ]
    if not any(row.kind == "tool" for row in below) and tool_calls_of(root):
        return []
    listed: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for call in tool_calls_of(root):
        listed[str(call.get("name"))].append(call)
    steps = []
    for row in below:
        failed, error = bool(row.error), row.error
        if row.kind == "tool" and listed[row.name]:
            call = listed[row.name].popleft()
            failed = failed or call.get("success") is False
            error = error or (str(call["error"]) if call.get("error") else None)
        steps.append(_Step(f"{titles[row.kind]} {row.name}", parsed(row.input), parsed(row.output), failed, error))
    return steps


def _call_step(call: dict[str, Any]) -> _Step:
    error = call.get("error")
    return _Step(
        f"Tool {call.get('name') or 'without a name'}",
        next((call[key] for key in ("input", "arguments", "args") if call.get(key) is not None), None),
        next((call[key] for key in ("output", "result") if call.get(key) is not None), None),
        bool(call_failed(call)),
        None if error is None else str(error),
    )


def _path(steps: Sequence[_Step]) -> str:
    if not steps:
        return "The agent called no tool."
    lines: list[str] = []
    for number, step in enumerate(steps[:_STEPS_MOST], 1):
        lines.append(f"{number}. {step.title}{' - FAILED' if step.failed else ''}")
        if step.arguments is not None:
            lines.append(f"   arguments: {_short(step.arguments)}")
        if step.result is not None:
            lines.append(f"   result: {_short(step.result)}")
        if step.error:
            lines.append(f"   error: {_short(step.error)}")
    if len(steps) > _STEPS_MOST:
        lines.append(f"[... {len(steps) - _STEPS_MOST:,} more steps left out ...]")
    return cut_visibly("\n".join(lines), _TRAJECTORY_MOST)


def _short(value: Any) -> str:
    return cut_visibly(as_text(value), _VALUE_MOST)


def as_text(value: Any) -> str:
    """A JSON value as a person writes it: texts as they are, the rest as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "(nested too deep to show)"


# --- Tool definitions


def _definitions(rows: Sequence[SpanRow], used: Sequence[str]) -> str:
    """Definitions of the tools that were used, once each, then one line naming those offered and not used."""
    offered: dict[str, Any] = {}
    for row in rows:
        metadata = parsed(row.metadata) if row.metadata and '"tools"' in row.metadata else None
        tools = metadata.get("tools") if isinstance(metadata, dict) else None
        for name, definition in _named(tools):
            offered.setdefault(name, definition)
    wanted = set(used)
    parts = [as_text(offered[name]) for name in used if name in offered]
    unused = [name for name in offered if name not in wanted]
    if unused:
        parts.append(f"Offered to the model but not used: {', '.join(unused)}")
    return cut_visibly("\n".join(parts), _DEFINITIONS_MOST)


def _named(tools: Any) -> list[tuple[str, Any]]:
    """(name, definition) of each tool of a request, in OpenAI's, Anthropic's, Gemini's or a plain spelling."""
    found: list[tuple[str, Any]] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, str):
            found.append((tool, {"name": tool}))
        if not isinstance(tool, dict):
            continue
        inner = next(
            (tool[key] for key in ("functionDeclarations", "function_declarations") if isinstance(tool.get(key), list)),
            None,
        )
        if inner is not None:
            found += _named(inner)
            continue
        function = tool.get("function")
        definition = function if isinstance(function, dict) else tool
        if isinstance(definition.get("name"), str):
            found.append((definition["name"], definition))
    return found


# --- Retrieval


def chunks_of(value: Any) -> list[str]:
    """The chunk texts of what a caller or a retriever recorded: a text, a list of texts or documents, or an object
    around such a list. Order is kept; empty chunks are dropped."""
    if value is None:
        return []
    if isinstance(value, str):
        if value[:1] in "[{":
            try:
                return chunks_of(msgspec.json.decode(value))
            except (msgspec.DecodeError, RecursionError):
                pass  # a text that only begins like JSON
        return [part for part in value.split(_CHUNK_BREAK) if part.strip()]
    if isinstance(value, list):
        return [text for item in value if (text := _chunk(item)).strip()]
    if isinstance(value, dict):
        inner = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        if inner is not None:
            return chunks_of(inner)
        text = _chunk(value)
        return [text] if text.strip() else []
    return [as_text(value)]


def _chunk(item: Any, depth: int = 0) -> str:
    if isinstance(item, dict) and depth < 8:
        for key in _TEXT_KEYS:
            if isinstance(item.get(key), str):
                return item[key]
        for key in ("document", "node", "chunk"):
            if isinstance(item.get(key), dict):
                return _chunk(item[key], depth + 1)
    if item is None:
        return ""
    return as_text(item)


def _retrieved(rows: Sequence[SpanRow], root: SpanRow) -> list[str] | None:
    """The chunks of the trace's retrieval rows, whatever their names, each once; else of its retrieval steps."""
    outputs = [parsed(row.output) for row in rows if row.kind == "retrieval"]
    if not outputs:
        steps = [step for step in flat_steps(root) if step.kind == "retrieval"]
        if root.kind == "retrieval" or not steps:
            return None
        outputs = [step.output for step in steps]
    return list(dict.fromkeys(chunk for output in outputs for chunk in chunks_of(output)))


def actual_context(stated: Any, trace: TraceMaterial | None) -> list[str] | None:
    """What was really retrieved: the result's own, else the trace's; None when nothing tells."""
    if stated is not None:
        return chunks_of(stated)
    if trace is None:
        return None
    return trace.stated_context if trace.stated_context is not None else trace.retrieval


def context_text(stated: Any, trace: TraceMaterial | None, pinned: Any = None) -> str:
    """The text of `{context}`: the result's own chunks, else the trace's, else the case's pinned ones (EVAL-095).

    Several chunks are numbered, in the order they were retrieved."""
    chunks = actual_context(stated, trace) or chunks_of(pinned)
    if len(chunks) < 2:
        return "".join(chunks)
    return "\n\n".join(f"[{number}] {chunk}" for number, chunk in enumerate(chunks, 1))
