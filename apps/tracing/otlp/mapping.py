"""A batch of OTLP spans to the rows the ingest pipeline takes: fields by convention, kinds, sessions, tool folding.

One pass over a span's attributes sorts them by the tables in `conventions`; what no table knows, and what lost to a
better source, is kept in the row's metadata.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from django.conf import settings

from apps.core.times import parse_iso_ms
from apps.tracing.ingest.kinds import fold_kind, infer_kind
from apps.tracing.ingest.records import SpanIn
from apps.tracing.otlp.conventions import (
    ANONYMOUS_SCOPES,
    CHOICE_EVENT,
    CONTENT_EVENTS,
    DETAILS_EVENT,
    ENCODED_PREFIXES,
    KIND_SLOTS,
    MESSAGE_EVENTS,
    RESOURCE_NOISE,
    SPECIAL_PREFIXES,
    TARGETS,
)
from apps.tracing.otlp.flattened import collect
from apps.tracing.otlp.spans import OtelEvent, OtelSource, OtelSpan, finite
from apps.tracing.otlp.values import payload, to_json, unwrapped

logger = logging.getLogger(__name__)

_MAX_COUNT = 1 << 53
_MAX_NS = 1 << 63
_NULL = b"null"
# slot -> (precedence, attribute, value)
_Found = dict[str, tuple[int, str, Any]]
_SLOT_OF = TARGETS.get
_AI_SDK_KINDS = {"ai.toolCall": "tool", "ai.embed": "embedding", "ai.embedMany": "embedding"}


class _Mapped(msgspec.Struct):
    """A row under way, with what folding and the topmost-only members still need."""

    row: SpanIn
    span: OtelSpan
    metadata: dict[str, Any]
    is_tool: bool
    scope_is_framework: bool
    tool_name: str | None
    arguments: bytes | None
    result: bytes | None
    tool_calls: list[dict[str, Any]] | None = None


def _sorted_out(attributes: dict[str, Any]) -> tuple[_Found, dict[str, Any]]:
    """The best source of each slot, and all attributes that fill none."""
    found: _Found = {}
    rest: dict[str, Any] = {}
    for name, value in attributes.items():
        target = _SLOT_OF(name)
        if target is None:
            rest[name] = value
            continue
        if value is None or value == "":
            continue
        slot, rank = target
        held = found.get(slot)
        if held is None:
            found[slot] = (rank, name, value)
        elif rank < held[0]:
            if held[2] != value:
                rest[held[1]] = held[2]
            found[slot] = (rank, name, value)
        elif held[2] != value:
            rest[name] = value
    return found, rest


def _as_text(value: Any) -> str | None:
    """An attribute as a name or id; None when blank or structured."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return str(value)


def _take_text(found: _Found, slot: str, rest: dict[str, Any]) -> str | None:
    """The slot's value as text; a value that is none goes to the rest."""
    held = found.get(slot)
    if held is None:
        return None
    value = held[2]
    if held[1].startswith("mlflow."):
        value = unwrapped(value)
    text = _as_text(value)
    if text is None:
        rest[held[1]] = held[2]
    return text


def _take_count(found: _Found, slot: str, rest: dict[str, Any]) -> float | None:
    held = found.get(slot)
    if held is None:
        return None
    number = finite(held[2])
    if number is None or number > _MAX_COUNT:
        rest[held[1]] = held[2]
        return None
    return number


def _take_payload(found: _Found, slot: str, type_slot: str, rest: dict[str, Any]) -> bytes | None:
    held = found.get(slot)
    if held is None:
        return None
    name, value = held[1], held[2]
    encoded = name.startswith(ENCODED_PREFIXES)
    if name.endswith("put.value"):
        mime = found.get(type_slot)
        if mime is not None:
            encoded = "json" in str(mime[2])
            if not encoded and isinstance(value, str):
                return to_json(value)
    raw = payload(value, encoded=encoded)
    return None if raw == _NULL else raw


def _usage(found: _Found) -> dict[str, Any]:
    """Token counts from a JSON object of counts (MLflow, Langfuse), under our slot names."""
    held = found.get("usage")
    usage = unwrapped(held[2]) if held is not None else None
    if not isinstance(usage, dict):
        return {}

    def first(*names: str) -> float | None:
        for name in names:
            number = finite(usage.get(name))
            if number is not None:
                return number
        return None

    return {
        "input_tokens": first("input_tokens", "input", "prompt_tokens"),
        "output_tokens": first("output_tokens", "output", "completion_tokens"),
        "cache_read": first("cache_read_input_tokens", "input_cached_tokens", "cached_input_tokens"),
        "cache_write": first("cache_creation_input_tokens", "cache_write_input_tokens"),
    }


def _kind(found: _Found, rest: dict[str, Any], has_tool_name: bool) -> str | None:
    """The stated kind by the first source whose word is known (source 1:8910-8916); None leaves it to the ladder."""
    kind: str | None = None
    for slot in KIND_SLOTS:
        held = found.get(slot)
        if held is None:
            continue
        word = unwrapped(held[2])
        stated = None
        if isinstance(word, str) and kind is None:
            stated = fold_kind(word) if slot != "kind:5" else _AI_SDK_KINDS.get(word)
        if stated is None:
            rest[held[1]] = word
        else:
            kind = stated
    if kind is None and has_tool_name:
        return "tool"
    return kind


def _exception_text(events: list[OtelEvent]) -> str | None:
    for event in events:
        if event.name == "exception":
            for name in ("exception.message", "exception.type"):
                text = _as_text(event.attributes.get(name))
                if text:
                    return text
            return "exception"
    return None


def _error(span: OtelSpan) -> str | None:
    """The failure text: of the status when it is ERROR, else of an exception event, unless the status says OK."""
    if span.settled_ok:
        return None
    if not span.failed:
        return _exception_text(span.events) if span.events else None
    return (
        span.status_message.strip()
        or _exception_text(span.events)
        or _as_text(span.attributes.get("error.message"))
        or _as_text(span.attributes.get("error.type"))
        or "error"
    )


def _event_body(event: OtelEvent) -> dict[str, Any]:
    """A message event's attributes as a message; content that is JSON text is unpacked."""
    body: dict[str, Any] = {}
    for name, value in event.attributes.items():
        if name in ("gen_ai.system", "event.name", "gen_ai.provider.name"):
            continue
        body[name.removeprefix("gen_ai.event.")] = unwrapped(value) if isinstance(value, str) else value
    if set(body) == {"content"} and isinstance(body["content"], dict):
        return body["content"]
    return body


def _from_events(span: OtelSpan) -> tuple[bytes | None, bytes | None, Any, list[dict[str, Any]]]:
    """Input, output and system instructions that instrumentations put into span events, and the other events."""
    messages: list[Any] = []
    choices: list[Any] = []
    given: dict[str, Any] = {}
    others: list[dict[str, Any]] = []
    for event in span.events:
        role = MESSAGE_EVENTS.get(event.name)
        if role is not None:
            messages.append({"role": role} | _event_body(event))
        elif event.name == CHOICE_EVENT:
            body = _event_body(event)
            message = body.pop("message", None)
            choices.append({"role": "assistant"} | (message if isinstance(message, dict) else {}) | body)
        elif event.name == DETAILS_EVENT or event.name in CONTENT_EVENTS:
            given.update(event.attributes)
        else:
            other: dict[str, Any] = {"name": event.name, "time": str(event.time_ns)}
            if event.attributes:
                other["attributes"] = event.attributes
            others.append(other)
    found_input = given.get("gen_ai.input.messages") or given.get("gen_ai.prompt") or messages or None
    found_output = given.get("gen_ai.output.messages") or given.get("gen_ai.completion") or choices or None
    return (
        None if found_input is None else payload(found_input),
        None if found_output is None else payload(found_output),
        given.get("gen_ai.system_instructions"),
        others,
    )


def _with_system(system: Any, messages: bytes | None) -> bytes:
    """System instructions as the first message of the input (source 1:8652-8655)."""
    parts = payload(system)
    member = b"parts" if parts[:1] == b"[" else b"content"
    first = b'{"role":"system","' + member + b'":' + parts + b"}"
    if messages is None:
        return b"[" + first + b"]"
    stripped = messages.strip()
    if stripped[:1] == b"[":
        tail = stripped[1:].lstrip()
        return b"[" + first + (b"]" if tail[:1] == b"]" else b"," + tail)
    if stripped[:1] == b"{":
        return b"[" + first + b"," + stripped + b"]"
    return b"[" + first + b',{"role":"user","content":' + stripped + b"}]"


def _documents(lists: dict[str, Any], name: str, metadata: dict[str, Any]) -> bytes | None:
    """Retrieved documents as a list of chunks; their ids and scores stay in the metadata."""
    documents = lists.pop(name, None)
    if not isinstance(documents, list):
        return None
    chunks: list[Any] = []
    details: list[Any] = []
    for document in documents:
        if isinstance(document, dict):
            chunks.append(unwrapped(document.pop("content", None)))
            document = {key: unwrapped(value) for key, value in document.items()}
        else:
            chunks.append(document)
            document = None
        details.append(document)
    metadata["doc_count"] = len(documents)
    if any(details):
        metadata[name] = details
    return to_json([chunk for chunk in chunks if chunk is not None]) if any(chunks) else None


def _tool_definitions(value: Any) -> Any:
    """Tool definitions as `metadata.tools` wants them; each may itself be JSON text (OpenInference)."""
    value = unwrapped(value)
    if not isinstance(value, list):
        return value
    tools = []
    for tool in value:
        tool = unwrapped(tool)
        if isinstance(tool, dict) and set(tool) == {"json_schema"}:
            tool = unwrapped(tool["json_schema"])
        tools.append(tool)
    return tools


def _framework(found: _Found, source: OtelSource) -> tuple[str, bool]:
    """The platform label by its ladder (source 1:8659-8662), and whether the scope's name gave it."""
    held = found.get("provider")
    if held is not None:
        label = _as_text(held[2])
        if label:
            return label, False
    scope = source.scope_name.strip()
    if scope and scope not in ANONYMOUS_SCOPES and not scope.startswith(tuple(f"{name}." for name in ANONYMOUS_SCOPES)):
        return scope, True
    service = _as_text(source.resource.get("service.name"))
    if service and not service.startswith("unknown_service"):
        return service, False
    return "otel", False


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


def _first_token_ms(found: _Found, span: OtelSpan) -> float | None:
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


def _map_span(span: OtelSpan, monitor: bool | None) -> _Mapped:
    """One span without its neighbours; folding and resource attributes come with the batch."""
    found, metadata = _sorted_out(span.attributes)
    lists = _flattened(metadata)
    event_input = event_output = system = None
    if span.events:
        event_input, event_output, system, others = _from_events(span)
        if others:
            metadata["otel.events"] = others
    if span.links:
        metadata["otel.links"] = span.links

    # Input and output: the current GenAI names first, then the legacy indexed ones, then the other conventions.
    legacy_input, legacy_output = lists.pop("gen_ai.prompt", None), lists.pop("gen_ai.completion", None)
    for slot, legacy in (("input", legacy_input), ("output", legacy_output)):
        if legacy is not None:
            held = found.get(slot)
            if held is None or held[0] > 0:
                if held is not None:
                    metadata[held[1]] = held[2]
                found[slot] = (1, "gen_ai.", legacy)
            else:
                metadata["gen_ai.prompt" if slot == "input" else "gen_ai.completion"] = legacy
    row_input = _take_payload(found, "input", "input_type", metadata) or event_input
    row_output = _take_payload(found, "output", "output_type", metadata) or event_output

    tool_name = _take_text(found, "tool_name", metadata)
    arguments = result = None
    if "tool_arguments" in found:
        arguments = payload(found["tool_arguments"][2])
        if row_input is None:
            row_input = arguments
        elif row_input != arguments:
            metadata["gen_ai.tool.call.arguments"] = found["tool_arguments"][2]
    if "tool_result" in found:
        result = payload(found["tool_result"][2])
        if row_output is None:
            row_output = result
        elif row_output != result:
            metadata["gen_ai.tool.call.result"] = found["tool_result"][2]

    kind = _kind(found, metadata, tool_name is not None)
    model = _take_text(found, "model", metadata)
    if lists:
        if kind == "retrieval":
            chunks = _documents(lists, "retrieval.documents", metadata)
        elif kind == "reranker":
            chunks = _documents(lists, "reranker.output_documents", metadata)
        else:
            chunks = None
        if chunks is not None:
            held = found.get("output")
            if held is not None:
                metadata[held[1]] = held[2]
            row_output = chunks
        for name in ("llm.input_messages", "llm.prompts", "reranker.input_documents", "embedding.embeddings"):
            if row_input is None and name in lists:
                row_input = to_json(lists.pop(name))
        for name in ("llm.output_messages", "llm.completions", "retrieval.documents"):
            if row_output is None and name in lists:
                row_output = to_json(lists.pop(name))
        for name in ("llm.tools", "llm.request.functions"):
            if name in lists:
                metadata.setdefault("tools", _tool_definitions(lists.pop(name)))
        metadata.update(lists)
    if system is None and "system" in found:
        system = found["system"][2]
    if system is not None:
        row_input = _with_system(system, row_input)

    input_tokens = _take_count(found, "input_tokens", metadata)
    output_tokens = _take_count(found, "output_tokens", metadata)
    cache_read = _take_count(found, "cache_read", metadata)
    cache_write = _take_count(found, "cache_write", metadata)
    if "usage" in found:
        usage = _usage(found)
        if input_tokens is None and output_tokens is None:
            input_tokens, output_tokens = usage.get("input_tokens"), usage.get("output_tokens")
            cache_read = usage.get("cache_read") if cache_read is None else cache_read
            cache_write = usage.get("cache_write") if cache_write is None else cache_write
        metadata[found["usage"][1]] = unwrapped(found["usage"][2])
    if cache_read or cache_write:
        cached = max(cache_read or 0, 0) + max(cache_write or 0, 0)
        counted = max(input_tokens or 0, 0)
        if counted < cached:
            # The cache counts are subsets of the input by our contract; this producer counts them beside it.
            input_tokens = counted + cached
            metadata["agentx.cacheTokensAdded"] = True

    framework, by_scope = _framework(found, span.source)
    session_id = _take_text(found, "session", metadata) or span.trace_id
    if tool_name is not None:
        metadata["gen_ai.tool.name"] = tool_name
    if "prompt_name" in found:
        metadata["promptName"] = _take_text(found, "prompt_name", metadata)
    if "prompt_version" in found:
        metadata["version"] = _take_text(found, "prompt_version", metadata)
    if "tools" in found:
        metadata["tools"] = _tool_definitions(found["tools"][2])
    if "first_token_s" in found or "first_token_ms" in found or "first_token_at" in found:
        first_token = _first_token_ms(found, span)
        if first_token is not None:
            metadata["timeToFirstTokenMs"] = first_token
            metadata["streaming"] = True
    if "streaming" in found and str(found["streaming"][2]).lower() in ("true", "1"):
        metadata["streaming"] = True

    start, end = span.start_ns, span.end_ns
    row = SpanIn(
        name=span.name,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        session_id=session_id,
        kind=kind,
        framework=framework,
        model=model,
        error=_error(span),
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
    is_tool = kind == "tool" or tool_name is not None
    return _Mapped(row, span, metadata, is_tool, by_scope, tool_name, arguments, result)


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


def _topmost(mapped: _Mapped, by_id: dict[str, _Mapped]) -> _Mapped:
    """The highest ancestor in the batch; a circle of parents ends where it began."""
    seen = {mapped.span.span_id}
    while True:
        parent_id = mapped.span.parent_id
        parent = by_id.get(parent_id) if parent_id is not None else None
        if parent is None or parent_id in seen or parent.span.trace_id != mapped.span.trace_id:
            return mapped
        seen.add(parent.span.span_id)
        mapped = parent


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
        if source.scope_name and not mapped.scope_is_framework:
            metadata.setdefault("otel.scope.name", source.scope_name)
        if mapped.row.session_id != span.trace_id:
            metadata.setdefault("otel.trace_id", span.trace_id)
    tools.sort(key=lambda mapped: mapped.span.start_ns)
    for mapped in tools:
        top = _topmost(mapped, by_id)
        if top is not mapped:
            if top.tool_calls is None:
                top.tool_calls = []
            top.tool_calls.append(_tool_entry(mapped))
    for mapped in batch:
        row = mapped.row
        if mapped.tool_calls is not None:
            row.tool_calls = to_json(mapped.tool_calls)
            if row.kind is None and not row.model:
                # Folded calls are not the span's own: the ladder must not read it as a tool.
                stated = mapped.metadata.get("kind")
                row.kind = (fold_kind(stated) if isinstance(stated, str) else None) or infer_kind(
                    name=row.name, model=None, has_tool_calls=False
                )
        if mapped.metadata:
            row.metadata = to_json(mapped.metadata)
    return [mapped.row for mapped in batch], broken
