"""The load generator sends what it says: valid bodies, fresh ids, the sizes and shapes of the README."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.load import Stream, drive
from benchmarks.payloads import JsonSpans, OtlpBatches, Stencil
from benchmarks.target import Target
from tests.support.server import running_server


def test_json_bodies_are_spans_of_about_two_kilobytes_with_ids_of_their_own():
    source = JsonSpans(run=7)
    bodies = [source.next() for _ in range(500)]
    spans = [json.loads(body) for body in bodies]
    assert 1500 < source.mean_bytes < 3000
    assert len({span["span_id"] for span in spans}) == 500
    assert len({span["session_id"] for span in spans}) == 100
    assert all(int(span["started_at_unix_nano"]) > 1_700_000_000_000_000_000 for span in spans)
    assert any("error" in span for span in spans)


def test_the_same_number_is_a_replay():
    source = JsonSpans(run=7)
    assert source.body(3, 10**18) == source.body(3, 10**18)
    assert JsonSpans(run=8).body(3, 10**18) != source.body(3, 10**18)


def test_otlp_bodies_are_batches_of_fifty_in_traces_of_five():
    source = OtlpBatches(run=9, templates=3, spread_seconds=86_400)
    seen = set()
    for _ in range(6):
        request = ExportTraceServiceRequest.FromString(source.next())
        spans = request.resource_spans[0].scope_spans[0].spans
        assert len(spans) == 50
        assert len({span.trace_id for span in spans}) == 10
        roots = {span.trace_id: span.span_id for span in spans if not span.parent_span_id}
        assert all(span.parent_span_id in ("", b"", roots[span.trace_id]) for span in spans)
        assert all(span.end_time_unix_nano > span.start_time_unix_nano for span in spans)
        seen |= {span.span_id for span in spans}
    assert len(seen) == 300


def test_a_mark_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="no slot"):
        Stencil.cut(b"abc", {"x": b"z"})


def test_a_stream_ends_at_its_limit_and_everything_it_sent_is_stored():
    with running_server(env={"AGENTX_RATE_LIMIT": "off"}) as server:
        target = Target(base_url=server.base_url, key=server.key, pid=server.pid)
        source = JsonSpans(run=1)
        stream = Stream(lambda: target.write("/ingest/traces", source.next(), "application/json"), 4, limit=60)
        drive(target.host, target.port, [stream], seconds=30)
        assert stream.outcome.statuses == {"200": 60}
        assert target.get("/ingest/traces?limit=1")["totalCount"] == 60
        assert target.cpu_seconds() > 0
