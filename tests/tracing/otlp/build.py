"""Builders of OTLP requests for the tests: the same spans as protobuf and as JSON."""

from __future__ import annotations

import base64
import json
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
ROOT_ID = "00f067aa0ba902b7"
START = 1_790_000_000_000_000_000
MS = 1_000_000


def span(span_id: str = ROOT_ID, name: str = "agent", parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A span for the builders below: attributes, events [(name, attributes)], status (code, message), trace, start, end."""
    return {"span_id": span_id, "name": name, "parent": parent, "trace": TRACE_ID, "start": START} | fields


def _any(target: AnyValue, value: Any) -> None:
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        target.int_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, bytes):
        target.bytes_value = value
    elif isinstance(value, list):
        target.array_value.SetInParent()
        for item in value:
            _any(target.array_value.values.add(), item)
    elif isinstance(value, dict):
        target.kvlist_value.SetInParent()
        for key, item in value.items():
            member = target.kvlist_value.values.add(key=key)
            _any(member.value, item)
    elif value is not None:
        target.string_value = value


def protobuf(*spans: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "my.scope") -> bytes:
    """An ExportTraceServiceRequest, serialized. A None attribute is a key without a value."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    for key, value in (resource or {}).items():
        _any(resource_spans.resource.attributes.add(key=key).value, value)
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = scope
    for fields in spans:
        one = scope_spans.spans.add()
        one.trace_id = bytes.fromhex(fields["trace"])
        one.span_id = bytes.fromhex(fields["span_id"])
        one.parent_span_id = bytes.fromhex(fields["parent"] or "")
        one.name = fields["name"]
        one.start_time_unix_nano = fields["start"]
        one.end_time_unix_nano = fields.get("end", fields["start"] + 250 * MS)
        for key, value in fields.get("attributes", {}).items():
            attribute = one.attributes.add(key=key)
            if value is not None:
                _any(attribute.value, value)
        for name, attributes in fields.get("events", ()):
            event = one.events.add(name=name, time_unix_nano=fields["start"] + MS)
            for key, value in attributes.items():
                _any(event.attributes.add(key=key).value, value)
        if "status" in fields:
            one.status.code, one.status.message = fields["status"]
    return request.SerializeToString()


def _json_any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_json_any(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _json_attributes(value)}}
    return {"stringValue": value}


def _json_attributes(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key} if value is None else {"key": key, "value": _json_any(value)} for key, value in attributes.items()
    ]


def json_span(fields: dict[str, Any]) -> dict[str, Any]:
    """One span as OTLP/JSON writes it."""
    one: dict[str, Any] = {
        "traceId": fields["trace"],
        "spanId": fields["span_id"],
        "name": fields["name"],
        "kind": "SPAN_KIND_CLIENT",
        "startTimeUnixNano": str(fields["start"]),
        "endTimeUnixNano": str(fields.get("end", fields["start"] + 250 * MS)),
        "attributes": _json_attributes(fields.get("attributes", {})),
        "events": [
            {"name": name, "timeUnixNano": str(fields["start"] + MS), "attributes": _json_attributes(attributes)}
            for name, attributes in fields.get("events", ())
        ],
    }
    if fields["parent"]:
        one["parentSpanId"] = fields["parent"]
    if "status" in fields:
        one["status"] = {"code": fields["status"][0], "message": fields["status"][1]}
    return one


def json_request(spans: list[Any], resource: dict[str, Any] | None = None, scope: str = "my.scope") -> dict[str, Any]:
    """An OTLP/JSON request around spans that are already in their JSON form."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _json_attributes(resource or {})},
                "scopeSpans": [{"scope": {"name": scope}, "spans": spans}],
            }
        ]
    }


def as_json(*spans: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "my.scope") -> bytes:
    """The JSON twin of protobuf()."""
    return json.dumps(json_request([json_span(one) for one in spans], resource, scope)).encode()
