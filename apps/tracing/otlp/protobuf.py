"""OTLP/HTTP protobuf: reading ExportTraceServiceRequest and writing its response.

The message classes are a reading view of the OTLP schema, wire-compatible with it, declared here instead of taken
from generated code for two reasons. Attributes are declared as `map<string, bytes>`, the same bytes on the wire as
`repeated KeyValue`, so one call gives a span's attributes as a dict (half the time of walking KeyValue objects). And
text is declared as bytes or under proto2 rules, so one span with broken UTF-8 or a broken attribute is repaired or
refused alone, where generated proto3 code refuses the whole batch.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

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

_PACKAGE = "agentx.otlp"
_Field = descriptor_pb2.FieldDescriptorProto
_BYTES, _STRING, _BOOL, _DOUBLE = _Field.TYPE_BYTES, _Field.TYPE_STRING, _Field.TYPE_BOOL, _Field.TYPE_DOUBLE
_INT32, _INT64, _FIXED64, _MESSAGE = _Field.TYPE_INT32, _Field.TYPE_INT64, _Field.TYPE_FIXED64, _Field.TYPE_MESSAGE
_ATTRIBUTES = "map of attributes"

# message -> (field, number, type or the message it holds, repeated)
_SCHEMA: dict[str, list[tuple[str, int, int | str, bool]]] = {
    "Request": [("resource_spans", 1, "ResourceSpans", True)],
    "ResourceSpans": [("resource", 1, "Resource", False), ("scope_spans", 2, "ScopeSpans", True)],
    "Resource": [("attributes", 1, _ATTRIBUTES, True)],
    "ScopeSpans": [("scope", 1, "Scope", False), ("spans", 2, "Span", True)],
    "Scope": [("name", 1, _BYTES, False), ("version", 2, _BYTES, False)],
    "Span": [
        ("trace_id", 1, _BYTES, False),
        ("span_id", 2, _BYTES, False),
        ("parent_span_id", 4, _BYTES, False),
        ("name", 5, _BYTES, False),
        ("start", 7, _FIXED64, False),
        ("end", 8, _FIXED64, False),
        ("attributes", 9, _ATTRIBUTES, True),
        ("events", 11, "Event", True),
        ("links", 13, "Link", True),
        ("status", 15, "Status", False),
    ],
    "Event": [("time", 1, _FIXED64, False), ("name", 2, _BYTES, False), ("attributes", 3, _ATTRIBUTES, True)],
    "Link": [("trace_id", 1, _BYTES, False), ("span_id", 2, _BYTES, False), ("attributes", 4, _ATTRIBUTES, True)],
    "Status": [("message", 2, _BYTES, False), ("code", 3, _INT32, False)],
    # AnyValue: exactly one of its fields is set.
    "Value": [
        ("text", 1, _BYTES, False),
        ("boolean", 2, _BOOL, False),
        ("integer", 3, _INT64, False),
        ("double", 4, _DOUBLE, False),
        ("array", 5, "Array", False),
        ("members", 6, "Members", False),
        ("raw", 7, _BYTES, False),
    ],
    "Array": [("values", 1, "Value", True)],
    "Members": [("values", 1, "Member", True)],
    "Member": [("key", 1, _BYTES, False), ("value", 2, "Value", False)],
    "Response": [("partial_success", 1, "PartialSuccess", False)],
    "PartialSuccess": [("rejected_spans", 1, _INT64, False), ("error_message", 2, _BYTES, False)],
}


def _message_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="agentx/otlp_view.proto", package=_PACKAGE, syntax="proto2")
    for message_name, fields in _SCHEMA.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind, repeated in fields:
            label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            field = message.field.add(name=name, number=number, label=label)
            if kind == _ATTRIBUTES:
                entry = message.nested_type.add(name="AttributesEntry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, type=_STRING, label=_Field.LABEL_OPTIONAL)
                entry.field.add(name="value", number=2, type=_BYTES, label=_Field.LABEL_OPTIONAL)
                field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{message_name}.AttributesEntry"
            elif isinstance(kind, str):
                field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _SCHEMA}


_CLASSES = _message_classes()
_Request, _Value, _Response = _CLASSES["Request"], _CLASSES["Value"], _CLASSES["Response"]
_double = struct.Struct("<d").unpack_from
_TAG_TEXT, _TAG_BOOLEAN, _TAG_INTEGER, _TAG_DOUBLE = 0x0A, 0x10, 0x18, 0x21


def _plain(value: Any) -> Any:
    """A parsed AnyValue as a plain Python value; NaN and infinities become text, as JSON has no word for them."""
    if value.HasField("text"):
        return value.text.decode("utf-8", "replace")
    if value.HasField("boolean"):
        return value.boolean
    if value.HasField("integer"):
        return value.integer
    if value.HasField("double"):
        return value.double if math.isfinite(value.double) else _non_finite(value.double)
    if value.HasField("array"):
        return [_plain(item) for item in value.array.values]
    if value.HasField("members"):
        return {
            member.key.decode("utf-8", "replace"): _plain(member.value) if member.HasField("value") else None
            for member in value.members.values
        }
    if value.HasField("raw"):
        return base64.b64encode(value.raw).decode("ascii")
    return None


def _non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def read_value(raw: bytes) -> Any:
    """The plain Python value of an encoded AnyValue. The common encodings of scalars are read directly; anything
    else (arrays, maps, bytes, unusual varints, repeated fields) goes through the parser. Unreadable ones are None."""
    size = len(raw)
    if size == 0:
        return None
    tag = raw[0]
    if tag == _TAG_TEXT:
        if size < 130:
            if size > 1 and raw[1] == size - 2:
                return raw[2:].decode("utf-8", "replace")
        elif size < 16387 and raw[1] & 127 | raw[2] << 7 == size - 3 and raw[1] > 127:
            return raw[3:].decode("utf-8", "replace")
    elif tag == _TAG_INTEGER:
        if size == 2:
            return raw[1] & 127
        if size == 3:
            return raw[1] & 127 | (raw[2] & 127) << 7
    elif tag == _TAG_DOUBLE:
        if size == 9:
            number = _double(raw, 1)[0]
            return number if math.isfinite(number) else _non_finite(number)
    elif tag == _TAG_BOOLEAN and size == 2:
        return raw[1] != 0
    try:
        return _plain(_Value.FromString(raw))
    except DecodeError:
        return None


def _attributes(container: Any) -> dict[str, Any]:
    try:
        items = dict(container)
    except UnicodeDecodeError:
        # A key that is not UTF-8 cannot be named; the rest of the span is kept.
        return {}
    return {key: read_value(raw) for key, raw in items.items()}


def _hex_id(raw: bytes) -> str:
    return raw.hex() if len(raw) * 2 <= MAX_ID_CHARS and any(raw) else ""


def _events(container: Iterable[Any]) -> list[OtelEvent]:
    return [
        OtelEvent(event.time, event.name.decode("utf-8", "replace"), _attributes(event.attributes))
        for event in container
    ]


def _links(container: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"traceId": link.trace_id.hex(), "spanId": link.span_id.hex(), "attributes": _attributes(link.attributes)}
        for link in container
    ]


_NO_EVENTS: list[OtelEvent] = []
_NO_LINKS: list[dict[str, Any]] = []


def decode(body: bytes) -> Decoded:
    """Read an ExportTraceServiceRequest. Raises Undecodable when the body is none."""
    try:
        request = _Request.FromString(body)
    except DecodeError:
        raise Undecodable("Invalid OTLP protobuf body") from None
    spans: list[OtelSpan] = []
    rejected: list[str] = []
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope
            source = OtelSource(
                resource, scope.name.decode("utf-8", "replace"), scope.version.decode("utf-8", "replace")
            )
            for span in scope_spans.spans:
                trace_id, span_id = _hex_id(span.trace_id), _hex_id(span.span_id)
                parent_id = _hex_id(span.parent_span_id) or None
                name = span.name.decode("utf-8", "replace")
                reason = reason_to_reject(trace_id, span_id, parent_id, name, span.start)
                if reason is not None:
                    rejected.append(reason)
                    continue
                failed = settled_ok = False
                message = ""
                if span.HasField("status"):
                    status = span.status
                    failed, settled_ok = status.code == STATUS_ERROR, status.code == STATUS_OK
                    message = status.message.decode("utf-8", "replace")
                events, links = span.events, span.links
                spans.append(
                    OtelSpan(
                        trace_id,
                        span_id,
                        parent_id,
                        name,
                        span.start,
                        span.end,
                        _attributes(span.attributes),
                        failed,
                        settled_ok,
                        message,
                        _events(events) if events else _NO_EVENTS,
                        _links(links) if links else _NO_LINKS,
                        source,
                    )
                )
    return Decoded(spans, rejected)


def encode_response(rejected: int = 0, message: str = "") -> bytes:
    """An ExportTraceServiceResponse; empty when nothing was rejected and there is nothing to say."""
    response = _Response()
    if rejected:
        response.partial_success.rejected_spans = rejected
    if message:
        response.partial_success.error_message = message.encode("utf-8", "replace")
    return bytes(response.SerializeToString())
