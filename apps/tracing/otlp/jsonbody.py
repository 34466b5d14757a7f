"""OTLP/HTTP JSON: reading the request body leniently, span by span.

The protobuf-JSON rules with OTLP's deviation (ids are hex, not base64), and what producers really send besides:
snake_case names, base64 ids, numbers as text, enums by name. A member of a wrong type counts as absent.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from typing import Any

import msgspec

from apps.tracing.otlp.spans import (
    MAX_ID_CHARS,
    STATUS_ERROR,
    STATUS_OK,
    Decoded,
    OtelEvent,
    OtelSource,
    OtelSpan,
    Undecodable,
    reason_to_reject,
)
from apps.tracing.otlp.values import clean_text

_HEX = re.compile(rf"[0-9a-fA-F]{{1,{MAX_ID_CHARS}}}\Z")
_NS_MAX = (1 << 64) - 1
# Deeper attribute values than this are cut: nobody reads them and a recursion must end somewhere.
_MAX_DEPTH = 64


def _parse(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # NaN, lone surrogates, other Unicode encodings: the slower reader below knows them
    except RecursionError:
        raise Undecodable("Invalid OTLP JSON body: nested too deeply") from None
    try:
        text = body.decode(json.detect_encoding(body), "replace")
        return json.loads(text)
    except RecursionError:
        raise Undecodable("Invalid OTLP JSON body: nested too deeply") from None
    except ValueError:
        raise Undecodable("Invalid OTLP JSON body") from None


def _list(holder: dict[str, Any], camel: str, snake: str = "") -> list[Any]:
    value = holder.get(camel)
    if value is None and snake:
        value = holder.get(snake)
    return value if isinstance(value, list) else []


def _object(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool) or value is None or not isinstance(value, (int, float)):
        return ""
    return str(value)


def _nanoseconds(value: Any) -> int:
    """A fixed64 as number or decimal text; 0 when it is neither."""
    try:
        number = int(value) if isinstance(value, (int, str, float)) and not isinstance(value, bool) else 0
    except (ValueError, OverflowError):
        return 0
    return number if 0 <= number <= _NS_MAX else 0


def _hex_id(value: Any, size: int) -> str:
    """Hex of an id of `size` bytes written as hex (any case) or base64; "" when it is none or all zeros."""
    if not isinstance(value, str) or not value:
        return ""
    text = value.strip()
    if len(text) != 2 * size:
        padded = text.rstrip("=").replace("-", "+").replace("_", "/")
        if len(padded) == -(-size * 4 // 3):
            try:
                raw = base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)
            except (binascii.Error, ValueError):
                raw = b""
            if len(raw) == size:
                return raw.hex() if any(raw) else ""
    if _HEX.match(text) and text.strip("0"):
        return text.lower()
    return ""


def _value(holder: Any, depth: int = 0) -> Any:
    """The plain Python value of a JSON AnyValue; None when it holds none."""
    if not isinstance(holder, dict) or depth > _MAX_DEPTH:
        return None
    for name, value in holder.items():
        match name:
            case "stringValue" | "string_value":
                return _text(value) if isinstance(value, str) else value
            case "intValue" | "int_value":
                if isinstance(value, str):
                    try:
                        return int(value)
                    except ValueError:
                        return clean_text(value)
                return value
            case "doubleValue" | "double_value":
                if isinstance(value, str):
                    try:
                        number = float(value)
                    except ValueError:
                        return clean_text(value)
                    return number if math.isfinite(number) else value
                if isinstance(value, float) and not math.isfinite(value):
                    return str(value)
                return value
            case "boolValue" | "bool_value":
                return value.lower() == "true" if isinstance(value, str) else value
            case "arrayValue" | "array_value":
                items = value.get("values") if isinstance(value, dict) else value
                return [_value(item, depth + 1) for item in items] if isinstance(items, list) else []
            case "kvlistValue" | "kvlist_value":
                items = value.get("values") if isinstance(value, dict) else value
                return _attributes(items, depth + 1)
            case "bytesValue" | "bytes_value":
                return value
    return None


def _attributes(items: Any, depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(items, list):
        for item in items:
            if isinstance(item, dict) and isinstance(item.get("key"), str):
                found[clean_text(item["key"])] = _value(item.get("value"), depth)
    return found


def _status_code(value: Any) -> int:
    if isinstance(value, str):
        name = value.upper().removeprefix("STATUS_CODE_")
        return {"OK": STATUS_OK, "ERROR": STATUS_ERROR, "1": STATUS_OK, "2": STATUS_ERROR}.get(name, 0)
    return value if isinstance(value, int) else 0


def _either(holder: dict[str, Any], camel: str, snake: str) -> Any:
    value = holder.get(camel)
    return holder.get(snake) if value is None else value


def _events(items: list[Any]) -> list[OtelEvent]:
    return [
        OtelEvent(
            _nanoseconds(_either(item, "timeUnixNano", "time_unix_nano")),
            _text(item.get("name")),
            _attributes(item.get("attributes")),
        )
        for item in items
        if isinstance(item, dict)
    ]


def _links(items: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "traceId": _hex_id(_either(item, "traceId", "trace_id"), 16),
            "spanId": _hex_id(_either(item, "spanId", "span_id"), 8),
            "attributes": _attributes(item.get("attributes")),
        }
        for item in items
        if isinstance(item, dict)
    ]


def _span(item: Any, source: OtelSource) -> OtelSpan | str:
    """The span, or the reason it is refused for."""
    if not isinstance(item, dict):
        return "span is not an object"
    trace_id = _hex_id(_either(item, "traceId", "trace_id"), 16)
    span_id = _hex_id(_either(item, "spanId", "span_id"), 8)
    parent_id = _hex_id(_either(item, "parentSpanId", "parent_span_id"), 8) or None
    name = _text(item.get("name"))
    start = _nanoseconds(_either(item, "startTimeUnixNano", "start_time_unix_nano"))
    reason = reason_to_reject(trace_id, span_id, parent_id, name, start)
    if reason is not None:
        return reason
    status = _object(item, "status")
    code = _status_code(status.get("code"))
    return OtelSpan(
        trace_id,
        span_id,
        parent_id,
        name,
        start,
        _nanoseconds(_either(item, "endTimeUnixNano", "end_time_unix_nano")),
        _attributes(item.get("attributes")),
        code == STATUS_ERROR,
        code == STATUS_OK,
        _text(status.get("message")),
        _events(_list(item, "events")),
        _links(_list(item, "links")),
        source,
    )


def decode(body: bytes) -> Decoded:
    """Read a JSON ExportTraceServiceRequest. Raises Undecodable when the body is no JSON object."""
    request = _parse(body)
    if not isinstance(request, dict):
        raise Undecodable("Invalid OTLP JSON body: expected an object")
    named = "resourceSpans" in request or "resource_spans" in request
    if (request and not named) or not isinstance(_either(request, "resourceSpans", "resource_spans"), list | None):
        raise Undecodable("Invalid OTLP JSON body: resourceSpans is missing")
    spans: list[OtelSpan] = []
    rejected: list[str] = []
    for resource_spans in _list(request, "resourceSpans", "resource_spans"):
        if not isinstance(resource_spans, dict):
            continue
        resource = _attributes(_object(resource_spans, "resource").get("attributes"))
        for scope_spans in _list(resource_spans, "scopeSpans", "scope_spans"):
            if not isinstance(scope_spans, dict):
                continue
            scope = _object(scope_spans, "scope")
            source = OtelSource(resource, _text(scope.get("name")), _text(scope.get("version")))
            for item in _list(scope_spans, "spans"):
                span = _span(item, source)
                if isinstance(span, str):
                    rejected.append(span)
                else:
                    spans.append(span)
    return Decoded(spans, rejected)


def encode_response(rejected: int = 0, message: str = "") -> bytes:
    """`{}` or `{"partialSuccess": {"rejectedSpans": N, "errorMessage": text}}`."""
    if not rejected and not message:
        return b"{}"
    return msgspec.json.encode({"partialSuccess": {"rejectedSpans": rejected, "errorMessage": message}})
