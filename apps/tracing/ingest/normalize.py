"""From what a producer sent (`SpanIn`) to the row that is stored (`Row`): the same rules for every door."""

from __future__ import annotations

import hashlib
import logging
import math
from typing import Any

import msgspec
from django.conf import settings

from apps.core.ids import new_id
from apps.llm.pricing import cost, price_of
from apps.tracing.ingest.caps import MAX_TOOL_CALLS, cut_metadata, cut_tool_calls, cut_value
from apps.tracing.ingest.cleaning import clean_text, stored_text
from apps.tracing.ingest.kinds import fold_framework, fold_kind, infer_kind
from apps.tracing.ingest.records import Meta, SpanIn, ToolCall
from apps.tracing.models import Outcome, Status, Traffic
from apps.tracing.store.rows import Row

logger = logging.getLogger(__name__)

EVAL_RUN = "eval-run"
# Marks a row whose cache counts are more than the input they are part of by contract: the counts stay as sent, the
# cost is never below 0, and readers can tell that one of the numbers is wrong.
INCONSISTENT_COUNTS = "agentx.inconsistentTokens"
# Numbers beyond these are not counts or durations (milliseconds) of anything. Sums of millions of them stay within 64
# bits, and a start plus a duration stays a date.
MAX_COUNT = 10**12
MAX_LATENCY_MS = 1e12
MAX_START_NS = 2**63 - 1
# Index rows of Postgres end at 2.7 KB; longer identifiers keep their head and a hash of the whole.
MAX_ID_CHARS = 500
MAX_MODEL_CHARS = 200
MAX_TOOL_NAME_CHARS = 200

_OK, _ERROR = int(Status.OK), int(Status.ERROR)
_PRODUCTION, _EVAL, _UNMONITORED = int(Traffic.PRODUCTION), int(Traffic.EVAL_RUN), int(Traffic.UNMONITORED)
_HEALTHY, _TOOL_FAILURE = int(Outcome.HEALTHY), int(Outcome.TOOL_FAILURE)
_TRACE_ERROR, _EMPTY_RESPONSE = int(Outcome.TRACE_ERROR), int(Outcome.EMPTY_RESPONSE)

_tools_decoder = msgspec.json.Decoder(list[ToolCall])
_raw_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_meta_decoder = msgspec.json.Decoder(Meta)
_text_decoder = msgspec.json.Decoder(str)


def to_row(*, project_id: int, organization_id: str | None, span: SpanIn, door: str, now_ms: int) -> Row:
    """The row for a span; everything that can be decided without looking at stored rows is decided here."""
    limit = settings.INGEST_MAX_FIELD_CHARS
    parent = stored_identifier(span.parent_span_id)
    is_root = parent is None
    name = _text(span.name)
    error = _text(span.error) if span.error is not None else None
    model = _short(span.model, MAX_MODEL_CHARS)
    start_ns = None if span.start_ns is None else _start(span.start_ns)
    created_ms = now_ms if start_ns is None else start_ns // 1_000_000

    tool_calls, calls = _tool_calls(span, limit)
    tools: tuple[tuple[str, int, int], ...] = ()
    failures = 0
    if calls:
        tools, failures, _ = summarize_tools(calls)
    metadata, meta = _metadata(span, limit)
    output = _payload(span.output, limit)

    kind = fold_kind(span.kind)
    if kind is None and meta is not None and isinstance(meta.kind, str):
        kind = fold_kind(meta.kind)
    if kind is None:
        kind = infer_kind(name=name, model=model, has_tool_calls=bool(calls))

    if span.source == EVAL_RUN:
        traffic = _EVAL
        checked = span.monitor is True
    else:
        checked = span.monitor is not False and (door != "otlp" or settings.OTEL_MONITOR)
        traffic = _PRODUCTION if checked or not is_root else _UNMONITORED
    outcome: int | None = None
    if is_root and checked:
        if failures:
            outcome = _TOOL_FAILURE
        elif error is not None:
            outcome = _TRACE_ERROR
        elif _is_blank(output):
            outcome = _EMPTY_RESPONSE
        else:
            outcome = _HEALTHY

    input_tokens = _count(span.input_tokens)
    output_tokens = _count(span.output_tokens)
    cache_read = _count(span.cache_read_tokens)
    cache_write = _count(span.cache_write_tokens)
    if (
        (cache_read or cache_write)
        and input_tokens is not None
        and input_tokens < (cache_read or 0) + (cache_write or 0)
    ):
        metadata = _marked(metadata, INCONSISTENT_COUNTS)
    row = Row(
        new_id(created_ms),
        project_id,
        stored_identifier(span.span_id),
        parent,
        None,
        stored_identifier(span.session_id),
        None,
        name,
        kind,
        _OK if error is None else _ERROR,
        traffic,
        outcome,
        fold_framework(_text(span.framework)) if span.framework else None,
        model,
        created_ms,
        now_ms,
        start_ns,
        _latency(span.latency_ms),
        input_tokens,
        output_tokens,
        cache_read,
        cache_write,
    )
    row.tool_count = len(calls)
    row.tool_failures = failures
    row.error = error
    row.input = _payload(span.input, limit)
    row.output = output
    row.tool_calls = tool_calls
    row.metadata = metadata
    if span.performance_summary is not None:
        row.performance_summary = stored_text(span.performance_summary)
    if is_root:
        row.tools = tools
        row.agent_ref = _text(span.agent_ref) if span.agent_ref and span.agent_ref.strip() else None
        if checked and span.monitor is True:
            # Without monitor:true a list of patterns changes nothing (source 1:1768-1771).
            row.pattern_ids = span.pattern_ids
    row.simulated = meta is not None and meta.simulated is True
    row.trace_id = span.trace_id
    row.organization_id = organization_id
    return row


def price_row(row: Row) -> None:
    """Set the cost of the recorded counts at the catalog's price of the row's own model and time."""
    row.cost_usd = None
    if row.model is None or (
        row.input_tokens is None
        and row.output_tokens is None
        and row.cache_read_tokens is None
        and row.cache_write_tokens is None
    ):
        return
    price = price_of(row.model, row.created_ms, row.organization_id)
    if price is not None:
        row.cost_usd = cost(
            price,
            row.input_tokens or 0,
            row.output_tokens or 0,
            row.cache_read_tokens or 0,
            row.cache_write_tokens or 0,
        )


def price_own(row: Row) -> None:
    """Set the cost of the row's own counts (recorded minus what its children cover); unknown while the row is unpriced."""
    if row.cost_usd is None:
        row.own_cost_usd = None
    elif not (
        row.child_input_tokens or row.child_output_tokens or row.child_cache_read_tokens or row.child_cache_write_tokens
    ):
        row.own_cost_usd = row.cost_usd
    else:
        price = price_of(row.model, row.created_ms, row.organization_id)
        row.own_cost_usd = (
            None
            if price is None
            else cost(
                price,
                max(0, (row.input_tokens or 0) - row.child_input_tokens),
                max(0, (row.output_tokens or 0) - row.child_output_tokens),
                max(0, (row.cache_read_tokens or 0) - row.child_cache_read_tokens),
                max(0, (row.cache_write_tokens or 0) - row.child_cache_write_tokens),
            )
        )


def summarize_tools(calls: list[ToolCall]) -> tuple[tuple[tuple[str, int, int], ...], int, str | None]:
    """Per distinct tool name its calls and failures; failures in all; the name of the first failed call.

    Only `success: false` is a failure (source 1:2953).
    """
    counts: dict[str, list[int]] = {}
    failures = 0
    first_failed: str | None = None
    for call in calls:
        name = call.name if isinstance(call.name, str) else ""
        name = clean_text(name[:MAX_TOOL_NAME_CHARS])
        entry = counts.setdefault(name, [0, 0])
        entry[0] += 1
        if call.success is False:
            entry[1] += 1
            failures += 1
            if first_failed is None:
                first_failed = name
    return tuple((name, entry[0], entry[1]) for name, entry in counts.items() if name), failures, first_failed


def stored_tools(tool_calls: str | None) -> tuple[tuple[str, int, int], ...]:
    """summarize_tools() of a stored `tool_calls` text; empty when there is none."""
    if not tool_calls:
        return ()
    return summarize_tools(_tools_decoder.decode(tool_calls))[0]


def first_failed_tool(tool_calls: str | None) -> str:
    """Name of the first failed call in a stored `tool_calls` text."""
    if not tool_calls:
        return ""
    return summarize_tools(_tools_decoder.decode(tool_calls))[2] or ""


def _text(text: str) -> str:
    return text if text.isascii() and "\x00" not in text else clean_text(text)


def stored_identifier(text: str | None) -> str | None:
    """A span, parent or session id as the store holds it; readers that look one up by what a client names use it too.

    None for an absent or empty one.
    """
    if not text:
        return None
    text = _text(text)
    if len(text) > MAX_ID_CHARS:
        text = f"{text[: MAX_ID_CHARS - 65]}~{hashlib.sha256(text.encode()).hexdigest()}"
    return text


def _short(text: str | None, limit: int) -> str | None:
    return _text(text)[:limit] if text else None


def _start(value: Any) -> int | None:
    """Nanoseconds since 1970 of what was sent; None, with a warning in the log, for what is not a usable number."""
    number: int | None = None
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) <= 20:
            number = int(text)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and math.isfinite(value):
        number = int(value)
    if number is None or not 0 < number <= MAX_START_NS:
        logger.warning("a span's start time is not usable and was ignored", extra={"start": repr(value)[:60]})
        return None
    return number


def _count(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value)
    return min(value, MAX_COUNT) if value > 0 else 0


def _latency(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value) if not isinstance(value, int) or abs(value) < 10**300 else MAX_LATENCY_MS
    if not math.isfinite(number):
        return None
    return min(number, MAX_LATENCY_MS) if number > 0 else 0.0


def _payload(payload: bytes | None, limit: int) -> str | None:
    if payload is None:
        return None
    text = stored_text(payload)
    return text if len(text) <= limit else cut_value(text, limit)


def _tool_calls(span: SpanIn, limit: int) -> tuple[str | None, list[ToolCall]]:
    if span.tool_calls is None:
        return None, []
    calls = span.tools
    payload = span.tool_calls
    try:
        if calls is None:
            calls = _tools_decoder.decode(payload)
        if len(calls) > MAX_TOOL_CALLS:
            calls = calls[:MAX_TOOL_CALLS]
            payload = b"[" + b",".join(bytes(raw) for raw in _raw_list_decoder.decode(payload)[:MAX_TOOL_CALLS]) + b"]"
        text = stored_text(payload)
        return (text if len(text) <= limit else cut_tool_calls(text, limit)), calls
    except (msgspec.DecodeError, ValueError, RecursionError):
        logger.warning("a span's tool calls are not a list of objects and were left out")
        return None, []


def _metadata(span: SpanIn, limit: int) -> tuple[str | None, Meta | None]:
    if span.metadata is None:
        return None, None
    meta = span.meta
    try:
        if meta is None:
            meta = _meta_decoder.decode(span.metadata)
        text = stored_text(span.metadata)
        return (text if len(text) <= limit else cut_metadata(text, limit)), meta
    except (msgspec.DecodeError, ValueError, RecursionError):
        logger.warning("a span's metadata is not an object and was left out")
        return None, None


def _marked(metadata: str | None, name: str) -> str:
    """The metadata's JSON text with one more member, `name` true."""
    member = f'"{name}":true'
    inner = metadata.strip()[1:-1].strip() if metadata is not None else ""
    return f"{{{inner},{member}}}" if inner else f"{{{member}}}"


def _is_blank(output: str | None) -> bool:
    """No output, or a text of nothing but white space."""
    if output is None:
        return True
    if output[0] != '"':
        return output == "null"
    if len(output) > 400 and not output[1:400].isspace():
        return False
    return not _text_decoder.decode(output).strip()
