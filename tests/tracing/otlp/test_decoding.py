"""Reading both encodings: ids, odd values, one bad span among good ones, bodies that are none."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from apps.tracing.otlp import export, jsonbody, protobuf
from apps.tracing.otlp.encoding import JSON, PROTOBUF
from apps.tracing.otlp.spans import Undecodable
from tests.tracing.otlp import build
from tests.tracing.otlp.build import ROOT_ID, START, TRACE_ID, span

BIG = "x" * 20_000


def values() -> dict[str, Any]:
    """An attribute of every type and of every length at which the encoding changes."""
    return {
        "empty": "",
        "short": "hé",
        **{f"text{size}": "y" * size for size in (126, 127, 128, 129, 130, 16382, 16383, 16384, 16385)},
        "big": BIG,
        "zero": 0,
        "small": 127,
        "two": 128,
        "three": 16384,
        "negative": -1,
        "large": 2**62,
        "true": True,
        "false": False,
        "double": 1.5,
        "bytes": b"\x00\xff",
        "list": ["a", 1, [True]],
        "map": {"a": {"b": 1.5}},
        "none": None,
    }


@pytest.mark.parametrize("read", ["protobuf", "json"])
def test_values_of_every_type(read: str) -> None:
    fields = span(attributes=values())
    if read == "protobuf":
        decoded = protobuf.decode(build.protobuf(fields))
    else:
        decoded = jsonbody.decode(build.as_json(fields))
    expected = values() | {"bytes": base64.b64encode(b"\x00\xff").decode()}
    assert decoded.spans[0].attributes == expected


class TestProtobuf:
    def test_broken_body(self) -> None:
        whole = build.protobuf(span(attributes={"a": "b" * 50}))
        for body in (whole[:-7], b"\xff\xff\xff", b"{}"):
            with pytest.raises(Undecodable):
                protobuf.decode(body)

    def test_text_that_is_not_utf8_costs_only_itself(self) -> None:
        body = build.protobuf(
            span(name="agentX", attributes={"key": "valueX"}), span("00000000000000a1", "fine", ROOT_ID)
        )
        body = body.replace(b"agentX", b"agent\xff").replace(b"valueX", b"value\xfe")
        first, second = protobuf.decode(body).spans
        assert (first.name, first.attributes["key"], second.name) == ("agent\ufffd", "value\ufffd", "fine")

    def test_a_key_that_is_not_utf8_costs_only_its_spans_attributes(self) -> None:
        body = build.protobuf(span(attributes={"keyX": "a"}), span("00000000000000a1", "fine", attributes={"b": "c"}))
        first, second = protobuf.decode(body.replace(b"keyX", b"key\xff")).spans
        assert (first.name, second.attributes) == ("agent", {"b": "c"})

    def test_an_unreadable_value_costs_only_itself(self) -> None:
        # An AnyValue of a list nested deeper than any parser follows.
        value = b""
        for _ in range(300):
            inner = b"\x0a" + protobuf_length(len(value)) + value
            value = b"\x2a" + protobuf_length(len(inner)) + inner
        attribute = b"\x0a\x01k\x12" + protobuf_length(len(value)) + value
        whole = ExportTraceServiceRequest.FromString(build.protobuf(span(attributes={"a": "b"})))
        one = whole.resource_spans[0].scope_spans[0].spans[0].SerializeToString()
        one += b"\x4a" + protobuf_length(len(attribute)) + attribute
        scope_spans = b"\x12" + protobuf_length(len(one)) + one
        resource_spans = b"\x12" + protobuf_length(len(scope_spans)) + scope_spans
        body = b"\x0a" + protobuf_length(len(resource_spans)) + resource_spans
        assert protobuf.decode(body).spans[0].attributes == {"a": "b", "k": None}

    def test_response(self) -> None:
        assert protobuf.encode_response() == b""
        response = ExportTraceServiceResponse.FromString(protobuf.encode_response(2, "why é"))
        assert (response.partial_success.rejected_spans, response.partial_success.error_message) == (2, "why é")


def protobuf_length(size: int) -> bytes:
    """A varint."""
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)


class TestJSON:
    def decode(self, *spans: Any) -> Any:
        return jsonbody.decode(json.dumps(build.json_request(list(spans))).encode())

    @pytest.mark.parametrize(
        ("trace_id", "span_id"),
        [
            (TRACE_ID, ROOT_ID),
            (TRACE_ID.upper(), ROOT_ID.upper()),
            (base64.b64encode(bytes.fromhex(TRACE_ID)).decode(), base64.b64encode(bytes.fromhex(ROOT_ID)).decode()),
            (
                base64.urlsafe_b64encode(bytes.fromhex(TRACE_ID)).decode().rstrip("="),
                base64.urlsafe_b64encode(bytes.fromhex(ROOT_ID)).decode().rstrip("="),
            ),
        ],
    )
    def test_ids_as_hex_or_base64(self, trace_id: str, span_id: str) -> None:
        one = build.json_span(span("00000000000000a1", "step", ROOT_ID)) | {
            "traceId": trace_id,
            "parentSpanId": span_id,
        }
        (found,) = self.decode(one).spans
        assert (found.trace_id, found.parent_id) == (TRACE_ID, ROOT_ID)

    @pytest.mark.parametrize("span_id", [None, "", "0000000000000000", "not an id!", 12, ["a"], {}])
    def test_a_span_without_a_valid_id_is_rejected_by_name(self, span_id: Any) -> None:
        decoded = self.decode(build.json_span(span()) | {"spanId": span_id})
        assert decoded.spans == []
        assert decoded.rejected == ["span 'agent' has no valid spanId"]

    def test_one_of_each_fault_costs_only_what_must_go(self) -> None:
        good = [build.json_span(span(f"00000000000000b{i}", f"step {i}", ROOT_ID)) for i in range(6)]
        no_id = build.json_span(span("00000000000000c0", "no id"))
        del no_id["spanId"]
        no_value = build.json_span(span("00000000000000c1", "no value", attributes={"a": None, "b": "c"}))
        no_kind = build.json_span(span("00000000000000c2", "no kind"))
        del no_kind["kind"]
        log = {
            "timeUnixNano": str(START),
            "severityNumber": 9,
            "body": {"stringValue": "a log"},
            "traceId": TRACE_ID,
            "spanId": "00000000000000c3",
        }
        decoded = self.decode(*good, no_id, no_value, no_kind, log)
        assert len(decoded.spans) == 8
        assert decoded.rejected == ["span 'no id' has no valid spanId", "span 00000000000000c3 has no name"]

    def test_snake_case_numbers_and_named_enums(self) -> None:
        request = {
            "resource_spans": [
                {
                    "scope_spans": [
                        {
                            "scope": {"name": "s"},
                            "spans": [
                                {
                                    "trace_id": TRACE_ID,
                                    "span_id": ROOT_ID,
                                    "parent_span_id": "00000000000000a1",
                                    "name": "agent",
                                    "start_time_unix_nano": START,
                                    "end_time_unix_nano": float(START),
                                    "attributes": [
                                        {"key": "a", "value": {"int_value": 5}},
                                        {"key": "b", "value": {"double_value": "NaN"}},
                                        {"key": "c", "value": {"string_value": "x"}},
                                        {"key": "d", "value": {"array_value": {"values": [{"bool_value": "true"}]}}},
                                    ],
                                    "status": {"code": "STATUS_CODE_ERROR", "message": "m"},
                                    "unknown": {"x": 1},
                                }
                            ],
                        }
                    ]
                }
            ]
        }
        (found,) = jsonbody.decode(json.dumps(request).encode()).spans
        assert found.start_ns == START
        assert found.attributes == {"a": 5, "b": "NaN", "c": "x", "d": [True]}
        assert (found.failed, found.status_message) == (True, "m")

    @pytest.mark.parametrize("code", [2, "2", "ERROR", "STATUS_CODE_ERROR"])
    def test_status_codes(self, code: Any) -> None:
        assert self.decode(build.json_span(span()) | {"status": {"code": code}}).spans[0].failed

    @pytest.mark.parametrize("odd", [None, 5, "text", [], {}, [None, 5, "x", [], {"key": 5}, {"key": "k", "value": 7}]])
    def test_members_of_odd_types_count_as_absent(self, odd: Any) -> None:
        one = build.json_span(span())
        for name in ("attributes", "events", "links", "status", "startTimeUnixNano", "endTimeUnixNano", "parentSpanId"):
            one[name] = odd
        decoded = self.decode(one, odd)
        assert [found.name for found in decoded.spans] == ["agent"]
        assert len(decoded.rejected) == 1

    def test_bare_nan_and_half_an_emoji(self) -> None:
        body = build.as_json(span(name="NAME", attributes={"a": 0.5, "b": "TEXT"}))
        body = body.replace(b"0.5", b"NaN").replace(b"NAME", b"a\\ud83e").replace(b"TEXT", b"\\ud83e\\udd16\\ud83e")
        (found,) = jsonbody.decode(body).spans
        assert found.name == "a\ufffd"
        assert found.attributes == {"a": "nan", "b": "\U0001f916\ufffd"}

    def test_other_unicode_encodings(self) -> None:
        text = build.as_json(span(name="Grüße")).decode()
        for encoding in ("utf-8-sig", "utf-16", "utf-32"):
            assert jsonbody.decode(text.encode(encoding)).spans[0].name == "Grüße"

    @pytest.mark.parametrize(
        "body", [b"nonsense", b"[]", b"5", b'"x"', b"{", b'{"foo":1}', b'{"resourceLogs":[]}', b'{"resourceSpans":5}']
    )
    def test_broken_bodies(self, body: bytes) -> None:
        with pytest.raises(Undecodable):
            jsonbody.decode(body)

    def test_deep_nesting_ends(self) -> None:
        with pytest.raises(Undecodable):
            jsonbody.decode(b'{"resourceSpans":' + b"[" * 10_000 + b"]" * 10_000 + b"}")
        value: Any = {"stringValue": "deep"}
        for _ in range(150):
            value = {"arrayValue": {"values": [value]}}
        one = build.json_span(span()) | {"attributes": [{"key": "a", "value": value}]}
        assert len(self.decode(one).spans) == 1

    def test_response(self) -> None:
        assert jsonbody.encode_response() == b"{}"
        assert json.loads(jsonbody.encode_response(1, "why")) == {
            "partialSuccess": {"rejectedSpans": 1, "errorMessage": "why"}
        }


class TestPrepare:
    def test_both_encodings_give_equal_rows(self) -> None:
        fields = [
            span(attributes=values() | {"session.id": "s", "gen_ai.usage.input_tokens": 5}, status=(2, "boom")),
            span("00000000000000a1", "step", ROOT_ID, events=[("e", {"a": 1})]),
        ]
        one = export.prepare(build.protobuf(*fields, resource={"service.name": "svc"}), PROTOBUF)
        two = export.prepare(build.as_json(*fields, resource={"service.name": "svc"}), JSON)
        for left, right in zip(one.rows, two.rows, strict=True):
            assert json.loads(left.metadata or b"{}") == json.loads(right.metadata or b"{}")
            left.metadata = right.metadata = None
            assert left == right

    def test_no_usable_span_is_the_clients_fault(self) -> None:
        for body, media in (
            (build.protobuf(span("0000000000000000")), PROTOBUF),
            (build.as_json(span("0000000000000000")), JSON),
        ):
            with pytest.raises(Undecodable, match="no valid spanId"):
                export.prepare(body, media)

    def test_a_request_without_spans_is_fine(self) -> None:
        for body in (b"{}", b'{"resourceSpans":[]}', b'{"resourceSpans":null}'):
            assert export.prepare(body, JSON).rows == []

    def test_many_reasons_are_named_in_few_words(self) -> None:
        spans = [span("0000000000000000", f"n{i % 30}") for i in range(60)] + [span()]
        prepared = export.prepare(build.protobuf(*spans), PROTOBUF)
        count, message = export.verdict(prepared, [export.Stored(id="x")])
        assert count == 60
        assert "(2 times)" in message
        assert message.endswith("and 20 more")

    def test_ten_thousand_levels_inside_a_payload_are_kept_as_text(self) -> None:
        deep = "[" * 10_000 + "]" * 10_000
        prepared = export.prepare(build.protobuf(span(attributes={"gen_ai.input.messages": deep})), PROTOBUF)
        assert prepared.rows[0].input == json.dumps(deep).encode()

    def test_lone_surrogates_and_nul_in_embedded_json(self) -> None:
        attributes = {"gen_ai.input.messages": '["a\\ud83eb"]', "mlflow.spanOutputs": '{"x":Infinity}'}
        prepared = export.prepare(build.protobuf(span(attributes=attributes)), PROTOBUF)
        assert json.loads(prepared.rows[0].input or b"") == ["a\ufffdb"]
        assert prepared.rows[0].output == b'{"x":null}'
