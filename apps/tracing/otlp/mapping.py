"""A batch of OTLP spans to the rows the ingest pipeline takes: fields by convention, tool folding, metadata.

One pass over a span's attributes sorts them by the tables in `conventions` (see `fields`); what no table knows, and
what lost to a better source, is kept in the row's metadata.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from django.conf import settings

from apps.core.times import parse_iso_ms
from apps.tracing.ingest.caps import MAX_TOOL_CALLS
from apps.tracing.ingest.kinds import fold_kind, infer_kind
from apps.tracing.ingest.records import Meta, SpanIn, ToolCall
from apps.tracing.otlp.conventions import RESOURCE_NOISE, SPECIAL_PREFIXES
from apps.tracing.otlp.fields import (
    Found,
    error_text,
    framework_label,
    sort_out,
    stated_kind,
    take_payload,
    take_text,
    token_counts,
)
from apps.tracing.otlp.flattened import collect
from apps.tracing.otlp.messages import documents_of, from_events, tool_definitions, with_system
from apps.tracing.otlp.spans import OtelSpan, finite
from apps.tracing.otlp.values import payload, to_json, unwrapped

logger = logging.getLogger(__name__)

_MAX_NS = 1 << 63
_members = msgspec.json.Decoder(list[msgspec.Raw])
# Flattened lists that fill the input or output when nothing better does, in order of precedence.
_INPUT_LISTS = ("llm.input_messages", "llm.prompts", "reranker.input_documents", "embedding.embeddings")
_OUTPUT_LISTS = ("llm.output_messages", "llm.completions", "retrieval.documents")
_TOOL_LISTS = ("llm.tools", "llm.request.functions")
_DOCUMENT_LISTS = {"retrieval": "retrieval.documents", "reranker": "reranker.output_documents"}


class _Mapped(msgspec.Struct, gc=False):
    """A row under way, with what folding and the topmost-only members still need."""

    row: SpanIn
    span: OtelSpan
    metadata: dict[str, Any]
    is_tool: bool
    tool_name: str | None
    arguments: bytes | None
    result: bytes | None
    tool_calls: list[dict[str, Any]] | None = None


def _flattened(rest: dict[str, Any]) -> dict[str, Any]:
    """Take flattened lists out of the rest and unwrap MLflow's JSON-encoded values in it."""
    names: list[str] = []
    for name in rest:
        if name.startswith(SPECIAL_PREFIXES):
            names.append(name)
    if not names:
        return {}
    flat: list[str] = []
    for name in names:
        if name.startswith("mlflow."):
            rest[name] = unwrapped(rest[name])
        else:
            flat.append(name)
    return collect(rest, flat) if flat else {}


def _first_token_ms(found: Found, span: OtelSpan) -> float | None:
    held = found.get("first_token_s")
    if held is not None:
        seconds = finite(held[2])
        return None if seconds is None else round(seconds * 1000, 3)
    held = found.get("first_token_ms")
    if held is not None:
        return finite(held[2])
    held = found.get("first_token_at")
    if held is not None and span.start_ns:
        try:
            return parse_iso_ms(str(unwrapped(held[2]))) - span.start_ns // 1_000_000
        except ValueError:
            return None
    return None


def _from_lists(
    lists: dict[str, Any], kind: str | None, found: Found, metadata: dict[str, Any]
) -> tuple[bytes | None, bytes | None]:
    """Input and output that flattened lists give when no attribute does; retrieved documents always give the output
    of their span. Lists that are not needed become one metadata member each."""
    row_input = row_output = None
    name = _DOCUMENT_LISTS.get(kind or "")
    if name is not None:
        row_output = documents_of(lists, name, metadata)
        held = found.get("output")
        if row_output is not None and held is not None:
            metadata[held[1]] = held[2]
            del found["output"]
    if "input" not in found:
        taken = next((name for name in _INPUT_LISTS if name in lists), None)
        row_input = None if taken is None else to_json(lists.pop(taken))
    if "output" not in found and row_output is None:
        taken = next((name for name in _OUTPUT_LISTS if name in lists), None)
        row_output = None if taken is None else to_json(lists.pop(taken))
    for name in _TOOL_LISTS:
        if name in lists:
            metadata.setdefault("tools", tool_definitions(lists.pop(name)))
    metadata.update(lists)
    return row_input, row_output


def _legacy_messages(lists: dict[str, Any], found: Found, metadata: dict[str, Any]) -> None:
    """Indexed `gen_ai.prompt.{i}` and `gen_ai.completion.{i}` stand right after the current GenAI names."""
    for slot, name in (("input", "gen_ai.prompt"), ("output", "gen_ai.completion")):
        legacy = lists.pop(name, None)
        if legacy is None:
            continue
        held = found.get(slot)
        if held is not None and held[0] == 0:
            metadata[name] = legacy
        else:
            if held is not None:
                metadata[held[1]] = held[2]
            found[slot] = (1, name, legacy)


def _special_members(found: Found, span: OtelSpan, metadata: dict[str, Any]) -> None:
    """Metadata members that mean something to readers: prompt identity, tools, streaming."""
    if "prompt_name" in found:
        metadata["promptName"] = take_text(found, "prompt_name", metadata)
    if "prompt_version" in found:
        metadata["version"] = take_text(found, "prompt_version", metadata)
    if "tools" in found:
        metadata["tools"] = tool_definitions(found["tools"][2])
    if "first_token_s" in found or "first_token_ms" in found or "first_token_at" in found:
        first_token = _first_token_ms(found, span)
        if first_token is not None:
            metadata["timeToFirstTokenMs"] = first_token
            metadata["streaming"] = True
    if "streaming" in found and str(found["streaming"][2]).lower() in ("true", "1"):
        metadata["streaming"] = True


def _map_span(span: OtelSpan, monitor: bool | None) -> _Mapped:
    """One span without its neighbours; folding and resource attributes come with the batch."""
    found, metadata = sort_out(span.attributes)
    tool_name = take_text(found, "tool_name", metadata)
    kind = stated_kind(found, metadata, tool_name is not None)
    row_input = row_output = event_input = event_output = system = None
    lists = _flattened(metadata)
    if span.events:
        event_input, event_output, system, others = from_events(span)
        if others:
            metadata["otel.events"] = others
    if span.links:
        metadata["otel.links"] = span.links
    if lists:
        _legacy_messages(lists, found, metadata)
        row_input, row_output = _from_lists(lists, kind, found, metadata)
    row_input = take_payload(found, "input", "input_type") or event_input or row_input
    row_output = take_payload(found, "output", "output_type") or event_output or row_output

    if kind == "retrieval" and row_output is not None and row_output[:1] == b"[":
        metadata.setdefault("doc_count", len(_members.decode(row_output)))

    # A tool span's own arguments and result fill its row too, and are what its root's entry shows. They are
    # JSON-encoded values, also when they are text (as MLflow writes them).
    arguments = result = None
    held = found.get("tool_arguments")
    if held is not None:
        arguments = payload(held[2], encoded=True)
        if row_input is None:
            row_input = arguments
        elif row_input != arguments:
            metadata[held[1]] = held[2]
    held = found.get("tool_result")
    if held is not None:
        result = payload(held[2], encoded=True)
        if row_output is None:
            row_output = result
        elif row_output != result:
            metadata[held[1]] = held[2]
    if system is None:
        held = found.get("system")
        system = None if held is None else held[2]
    if system is not None:
        row_input = with_system(system, row_input)

    input_tokens, output_tokens, cache_read, cache_write = token_counts(found, metadata)
    if tool_name is not None:
        metadata["gen_ai.tool.name"] = tool_name
    _special_members(found, span, metadata)
    start, end = span.start_ns, span.end_ns
    row = SpanIn(
        name=span.name,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        session_id=take_text(found, "session", metadata) or span.trace_id,
        trace_id=span.trace_id,
        kind=kind,
        framework=framework_label(found, span.source),
        model=take_text(found, "model", metadata),
        error=error_text(span),
        latency_ms=max(end - start, 0) / 1_000_000 if start and end else None,
        start_ns=start if 0 < start < _MAX_NS else None,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        monitor=monitor,
        input=row_input,
        output=row_output,
    )
    return _Mapped(row, span, metadata, kind == "tool" or tool_name is not None, tool_name, arguments, result)


def _tool_entry(mapped: _Mapped) -> dict[str, Any]:
    """What a tool span is in its root's `toolCalls` (source 1:8678-8682)."""
    row = mapped.row
    entry: dict[str, Any] = {"name": mapped.tool_name or row.name.removeprefix("execute_tool ")}
    tool_input = row.input if mapped.arguments is None else mapped.arguments
    tool_output = row.output if mapped.result is None else mapped.result
    if tool_input is not None:
        entry["input"] = msgspec.Raw(tool_input)
    if tool_output is not None:
        entry["output"] = msgspec.Raw(tool_output)
    if row.latency_ms is not None:
        entry["latency_ms"] = row.latency_ms
    entry["success"] = row.error is None
    if row.error is not None:
        entry["error"] = row.error
    return entry


def _topmost(mapped: _Mapped, by_id: dict[str, _Mapped], known: dict[str, _Mapped]) -> _Mapped:
    """The highest ancestor in the batch; a circle of parents ends where it closes. `known` remembers the answer for
    every span passed on the way, so that a chain of thousands is climbed once."""
    path: list[str] = []
    passed: set[str] = set()
    while True:
        span = mapped.span
        found = known.get(span.span_id)
        if found is not None:
            mapped = found
            break
        path.append(span.span_id)
        passed.add(span.span_id)
        parent = by_id.get(span.parent_id) if span.parent_id is not None else None
        if parent is None or span.parent_id in passed or parent.span.trace_id != span.trace_id:
            break
        mapped = parent
    for span_id in path:
        known[span_id] = mapped
    return mapped


def _kept_resource(resource: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if not name.startswith(RESOURCE_NOISE)}


def map_spans(spans: list[OtelSpan]) -> tuple[list[SpanIn], list[str]]:
    """The rows for a request's spans, in their order, and a text for each span that made none. Tool spans are folded into the `toolCalls` of their topmost
    ancestor in the batch, in the order they started; rows without an ancestor in the batch carry the resource."""
    monitor = None if settings.OTEL_MONITOR else False
    batch: list[_Mapped] = []
    broken: list[str] = []
    for span in spans:
        try:
            batch.append(_map_span(span, monitor))
        except Exception:
            # One producer's odd attributes must not cost the batch its other spans.
            logger.exception("an OTLP span could not be mapped", extra={"spanId": span.span_id})
            broken.append(f"span {span.span_id} could not be read")
    by_id = {mapped.span.span_id: mapped for mapped in batch}
    resources: dict[int, dict[str, Any]] = {}
    tools: list[_Mapped] = []
    for mapped in batch:
        span = mapped.span
        if span.parent_id is not None and span.parent_id in by_id:
            if mapped.is_tool:
                tools.append(mapped)
            continue
        # Nothing above it in this batch.
        metadata, source = mapped.metadata, span.source
        kept = resources.get(id(source))
        if kept is None:
            kept = resources[id(source)] = _kept_resource(source.resource)
        for name, value in kept.items():
            metadata.setdefault(name, value)
        if source.scope_name and source.scope_name != mapped.row.framework:
            metadata.setdefault("otel.scope.name", source.scope_name)
        if mapped.row.session_id != span.trace_id:
            metadata.setdefault("otel.trace_id", span.trace_id)
    tools.sort(key=lambda mapped: mapped.span.start_ns)
    known: dict[str, _Mapped] = {}
    for mapped in tools:
        top = _topmost(mapped, by_id, known)
        if top is not mapped:
            if top.tool_calls is None:
                top.tool_calls = []
            if len(top.tool_calls) < MAX_TOOL_CALLS:
                top.tool_calls.append(_tool_entry(mapped))
    for mapped in batch:
        row = mapped.row
        if mapped.tool_calls is not None:
            row.tool_calls = to_json(mapped.tool_calls)
            row.tools = [ToolCall(entry["name"], entry["success"]) for entry in mapped.tool_calls]
            if row.kind is None and not row.model:
                # Folded calls are not the span's own: the ladder must not read it as a tool.
                stated = mapped.metadata.get("kind")
                row.kind = (fold_kind(stated) if isinstance(stated, str) else None) or infer_kind(
                    name=row.name, model=None, has_tool_calls=False
                )
        if mapped.metadata:
            row.metadata = to_json(mapped.metadata)
            row.meta = Meta(mapped.metadata.get("kind"), mapped.metadata.get("simulated"))
    return [mapped.row for mapped in batch], broken
