"""The one record every door hands to the ingest pipeline."""

from __future__ import annotations

from typing import Any

import msgspec


class ToolCall(msgspec.Struct, gc=False):
    """What the pipeline reads of one entry of `toolCalls`; the entry itself is stored verbatim."""

    name: Any = None
    success: Any = None


class Meta(msgspec.Struct, gc=False):
    """What the pipeline reads of `metadata`."""

    kind: Any = None
    simulated: Any = None


class SpanIn(msgspec.Struct, kw_only=True):
    """A span as its producer sent it, decoded but not yet normalized.

    Payload members (`input` .. `performance_summary`) are JSON text in UTF-8, kept as the bytes that came; None means
    absent. Counts, latency and the start may be anything their JSON type allows: the pipeline clamps negatives to 0,
    folds `kind` and `framework`, cuts oversized payloads and replaces what the store cannot hold. `start_ns` may be
    the text of a whole number; any other text is ignored. `tools` and `meta` may be left out: they are read from
    `tool_calls` and `metadata` then. `trace_id` is OTLP's: where it stands as `session_id` too, no session was named,
    and the parent's session takes its place.
    """

    name: str
    span_id: str | None = None
    parent_span_id: str | None = None
    session_id: str | None = None
    trace_id: str | None = None
    agent_ref: str | None = None
    kind: str | None = None
    framework: str | None = None
    model: str | None = None
    source: str | None = None
    error: str | None = None
    latency_ms: float | None = None
    start_ns: int | str | float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_tokens: float | None = None
    cache_write_tokens: float | None = None
    monitor: bool | None = None
    pattern_ids: list[str] | None = None
    input: bytes | None = None
    output: bytes | None = None
    tool_calls: bytes | None = None
    metadata: bytes | None = None
    performance_summary: bytes | None = None
    tools: list[ToolCall] | None = None
    meta: Meta | None = None


class Stored(msgspec.Struct, frozen=True):
    """What became of one span: the id of its row and whether that row was there before; or why it was refused."""

    id: str = ""
    deduped: bool = False
    refused: str | None = None
