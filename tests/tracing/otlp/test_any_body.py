"""Whatever bytes come, the decoders answer with rows or with a refusal that has a text; never with another error."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.tracing.otlp import export
from apps.tracing.otlp.conventions import FAMILY_PREFIXES, TARGETS
from apps.tracing.otlp.encoding import JSON, PROTOBUF
from apps.tracing.otlp.spans import Undecodable
from tests.tracing.otlp import build
from tests.tracing.otlp.build import ROOT_ID, span

WHOLE = build.protobuf(
    span(attributes={"gen_ai.input.messages": "[]", "a": 1, "b": [1.5, {"c": b"x"}]}, status=(2, "m")),
    span("00000000000000a1", "tool", ROOT_ID, attributes={"gen_ai.tool.name": "t"}, events=[("e", {"k": "v"})]),
    resource={"service.name": "s"},
)


def accepted_or_refused(body: bytes, media_type: str) -> None:
    try:
        prepared = export.prepare(body, media_type)
    except Undecodable as refusal:
        assert str(refusal)
        assert "could not be read" not in str(refusal)
        return
    for row in prepared.rows:
        assert row.span_id
        for raw in (row.input, row.output, row.tool_calls, row.metadata):
            if raw is not None:
                json.loads(raw.decode("utf-8"), parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert not any("could not be read" in reason for reason in prepared.rejected)


@given(st.binary(max_size=200))
def test_random_bytes(body: bytes) -> None:
    accepted_or_refused(body, PROTOBUF)
    accepted_or_refused(body, JSON)


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
@settings(max_examples=300)
def test_damaged_protobuf(changes: list[tuple[int, int]]) -> None:
    body = bytearray(WHOLE)
    for position, value in changes:
        body[position] = value
    accepted_or_refused(bytes(body), PROTOBUF)


@given(st.integers(0, len(WHOLE)))
def test_cut_protobuf(size: int) -> None:
    accepted_or_refused(WHOLE[:size], PROTOBUF)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
attribute_names = st.sampled_from([*TARGETS, *(f"{prefix}0.message.content" for prefix in FAMILY_PREFIXES)]) | st.text(
    max_size=12
)
any_values = st.sampled_from(["stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue"])
attributes = st.lists(
    st.fixed_dictionaries({"key": attribute_names, "value": st.dictionaries(any_values, json_values, max_size=2)}),
    max_size=6,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "traceId": st.just(build.TRACE_ID),
                "spanId": st.just(ROOT_ID) | json_values,
                "name": st.just("n") | json_values,
            },
            optional={
                "attributes": attributes | json_values,
                "events": st.lists(
                    st.fixed_dictionaries(
                        {
                            "name": st.sampled_from(
                                [
                                    "exception",
                                    "gen_ai.choice",
                                    "gen_ai.user.message",
                                    "gen_ai.client.inference.operation.details",
                                    "x",
                                ]
                            ),
                            "attributes": attributes,
                        }
                    ),
                    max_size=2,
                ),
                "links": json_values,
                "status": json_values,
                "parentSpanId": json_values,
                "startTimeUnixNano": json_values,
                "endTimeUnixNano": json_values,
            },
        )
        | json_values,
        max_size=3,
    ),
    attributes | json_values,
)
@settings(max_examples=400, deadline=None)
def test_odd_json(spans: list[Any], resource: Any) -> None:
    request = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"spans": spans}]}]}
    accepted_or_refused(json.dumps(request).encode(), JSON)


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=200)
def test_texts_survive(name: str, text: str) -> None:
    prepared = export.prepare(build.protobuf(span(name="n", attributes={"k": text, "input.value": text})), PROTOBUF)
    assert msgspec.json.decode(prepared.rows[0].metadata or b"{}").get("k") == text
