"""The REST body of `POST /ingest/traces`: one typed decode, and a patient second look at what does not fit.

Both spellings of a key are members of one struct; the snake_case value wins (source 1:1712-1715). Payload members stay
the bytes that came. Whatever the fast decode refuses is decoded by the standard library, cleaned, and checked field
by field, so that a 422 names every error at once.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from apps.tracing.ingest.cleaning import SUSPICIOUS_ESCAPE, clean_value, dump, load
from apps.tracing.ingest.errors import InvalidPayload, NotJSON
from apps.tracing.ingest.records import Meta, SpanIn, ToolCall

_NONE = Raw(b"")
_Number = int | float | None


class _Body(msgspec.Struct, gc=False):
    name: str | None = None
    input: Raw = _NONE
    output: Raw = _NONE
    error: str | None = None
    latencyMs: _Number = None
    latency_ms: _Number = None
    framework: str | None = None
    model: str | None = None
    toolCalls: Raw = _NONE
    tool_calls: Raw = _NONE
    spanKind: str | None = None
    span_kind: str | None = None
    source: str | None = None
    sessionId: str | None = None
    session_id: str | None = None
    metadata: Raw = _NONE
    performanceSummary: Raw = _NONE
    performance_summary: Raw = _NONE
    inputTokens: _Number = None
    input_tokens: _Number = None
    outputTokens: _Number = None
    output_tokens: _Number = None
    cacheReadTokens: _Number = None
    cache_read_tokens: _Number = None
    cacheWriteTokens: _Number = None
    cache_write_tokens: _Number = None
    spanId: str | None = None
    span_id: str | None = None
    parentSpanId: str | None = None
    parent_span_id: str | None = None
    startedAtUnixNano: Any = None
    started_at_unix_nano: Any = None
    agentId: str | None = None
    agent_id: str | None = None
    monitor: bool | None = None
    patternIds: list[str] | None = None
    pattern_ids: list[str] | None = None


_body = msgspec.json.Decoder(_Body)
_tools = msgspec.json.Decoder(list[ToolCall])
_meta = msgspec.json.Decoder(Meta)


class _Slow(Exception):
    """The fast decode cannot vouch for this body."""


def decode(body: bytes) -> SpanIn:
    """The span in a request body. Raises NotJSON (400) or InvalidPayload (422)."""
    if b"\\u" in body and SUSPICIOUS_ESCAPE.search(body):
        return _decode_slowly(body)
    try:
        return _convert(_body.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _Slow):
        return _decode_slowly(body)


def _payload(first: Raw, second: Raw = _NONE) -> bytes | None:
    raw = bytes(first)
    if raw and raw != b"null":
        return raw
    raw = bytes(second)
    return raw if raw and raw != b"null" else None


def _either(snake: Any, camel: Any) -> Any:
    return camel if snake is None else snake


def _convert(body: _Body) -> SpanIn:
    """Pick the winning spelling of every member and read what the pipeline needs of the structured payloads."""
    name = body.name
    parent = body.parent_span_id if body.parent_span_id is not None else body.parentSpanId
    if name is None or (not parent and not name.strip()):
        raise _Slow
    tool_calls = _payload(body.tool_calls, body.toolCalls)
    metadata = _payload(body.metadata)
    summary = _payload(body.performance_summary, body.performanceSummary)
    if summary is not None and summary[0] != 123:
        raise _Slow
    return SpanIn(
        name=name,
        span_id=_either(body.span_id, body.spanId),
        parent_span_id=parent,
        session_id=_either(body.session_id, body.sessionId),
        agent_ref=_either(body.agent_id, body.agentId),
        kind=_either(body.span_kind, body.spanKind),
        framework=body.framework,
        model=body.model,
        source=body.source,
        error=body.error,
        latency_ms=_either(body.latency_ms, body.latencyMs),
        start_ns=_either(body.started_at_unix_nano, body.startedAtUnixNano),
        input_tokens=_either(body.input_tokens, body.inputTokens),
        output_tokens=_either(body.output_tokens, body.outputTokens),
        cache_read_tokens=_either(body.cache_read_tokens, body.cacheReadTokens),
        cache_write_tokens=_either(body.cache_write_tokens, body.cacheWriteTokens),
        monitor=body.monitor,
        pattern_ids=_either(body.pattern_ids, body.patternIds),
        input=_payload(body.input),
        output=_payload(body.output),
        tool_calls=tool_calls,
        metadata=metadata,
        performance_summary=summary,
        tools=None if tool_calls is None else _tools.decode(tool_calls),
        meta=None if metadata is None else _meta.decode(metadata),
    )


# ---- the patient way -----------------------------------------------------------------------------------------------

_STRINGS = ("name", "error", "framework", "model", "source")
_STRING_PAIRS = (
    ("spanKind", "span_kind"),
    ("sessionId", "session_id"),
    ("spanId", "span_id"),
    ("parentSpanId", "parent_span_id"),
    ("agentId", "agent_id"),
)
_NUMBER_PAIRS = (
    ("latencyMs", "latency_ms"),
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cacheReadTokens", "cache_read_tokens"),
    ("cacheWriteTokens", "cache_write_tokens"),
)
BLANK_NAME = "String must contain at least 1 character(s)"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _decode_slowly(body: bytes) -> SpanIn:
    try:
        value = clean_value(load(body.removeprefix(b"\xef\xbb\xbf")))
    except RecursionError:
        raise NotJSON("Request body is nested too deeply") from None
    except ValueError:
        raise NotJSON("Request body is not valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidPayload({}, [f"Expected object, received {_type_name(value)}"])
    value = {key: item for key, item in value.items() if item is not None}
    errors: dict[str, list[str]] = {}

    def check(key: str, expected: str) -> None:
        if key in value and (received := _type_name(value[key])) != expected:
            errors.setdefault(key, []).append(f"Expected {expected}, received {received}")

    def check_items(key: str, expected: str) -> None:
        check(key, "array")
        if isinstance(value.get(key), list):
            for item in value[key]:
                if (received := _type_name(item)) != expected:
                    errors.setdefault(key, []).append(f"Expected {expected}, received {received}")
                    break

    for key in (*_STRINGS, *(key for pair in _STRING_PAIRS for key in pair)):
        check(key, "string")
    for key in (key for pair in _NUMBER_PAIRS for key in pair):
        check(key, "number")
    for key in ("metadata", "performanceSummary", "performance_summary"):
        check(key, "object")
    check_items("toolCalls", "object")
    check_items("tool_calls", "object")
    check_items("patternIds", "string")
    check_items("pattern_ids", "string")
    check("monitor", "boolean")

    def pick(camel: str, snake: str) -> Any:
        return value.get(snake, value.get(camel))

    parent = pick("parentSpanId", "parent_span_id")
    if "name" not in value:
        errors["name"] = ["Required"]
    elif isinstance(value["name"], str) and not value["name"].strip() and not parent:
        errors["name"] = [BLANK_NAME]
    if errors:
        raise InvalidPayload(errors)

    def payload(item: Any) -> bytes | None:
        return None if item is None else dump(item)

    calls = pick("toolCalls", "tool_calls")
    metadata = value.get("metadata")
    try:
        return SpanIn(
            name=value["name"],
            span_id=pick("spanId", "span_id"),
            parent_span_id=parent,
            session_id=pick("sessionId", "session_id"),
            agent_ref=pick("agentId", "agent_id"),
            kind=pick("spanKind", "span_kind"),
            framework=value.get("framework"),
            model=value.get("model"),
            source=value.get("source"),
            error=value.get("error"),
            latency_ms=pick("latencyMs", "latency_ms"),
            start_ns=pick("startedAtUnixNano", "started_at_unix_nano"),
            input_tokens=pick("inputTokens", "input_tokens"),
            output_tokens=pick("outputTokens", "output_tokens"),
            cache_read_tokens=pick("cacheReadTokens", "cache_read_tokens"),
            cache_write_tokens=pick("cacheWriteTokens", "cache_write_tokens"),
            monitor=value.get("monitor"),
            pattern_ids=pick("patternIds", "pattern_ids"),
            input=payload(value.get("input")),
            output=payload(value.get("output")),
            tool_calls=payload(calls),
            metadata=payload(metadata),
            performance_summary=payload(pick("performanceSummary", "performance_summary")),
            tools=None if calls is None else [ToolCall(call.get("name"), call.get("success")) for call in calls],
            meta=None if metadata is None else Meta(metadata.get("kind"), metadata.get("simulated")),
        )
    except RecursionError:
        raise NotJSON("Request body is nested too deeply") from None
