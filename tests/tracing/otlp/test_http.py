"""The OTLP/HTTP door of a running server: exporters, encodings, refusals, and what reads show afterwards."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import sqlite3
import uuid
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

from tests.support.server import RunningServer, running_server
from tests.tracing.otlp import build
from tests.tracing.otlp.build import span

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(env={"AGENTX_RATE_LIMIT": "off"}) as running:
        yield running


def post(server: RunningServer, body: bytes, content_type: str = PROTOBUF, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {"x-api-key": server.key, "content-type": content_type} | named
    return httpx.post(f"{server.api_url}/otel/v1/traces", content=body, headers=sent, timeout=60)


def get(server: RunningServer, path: str, **params: Any) -> Any:
    response = httpx.get(f"{server.api_url}{path}", params=params, headers={"x-api-key": server.key}, timeout=30)
    assert response.status_code == 200, response.text
    return response.json()


def session_spans(server: RunningServer, session_id: str) -> list[dict[str, Any]]:
    return get(server, f"/ingest/sessions/{session_id}/spans")["spans"]


def fresh(**fields: Any) -> tuple[str, dict[str, Any]]:
    """A root span with ids of its own, and its trace id."""
    trace_id = uuid.uuid4().hex
    return trace_id, span(uuid.uuid4().hex[:16], trace=trace_id, **fields)


def child_of(root: dict[str, Any], name: str = "step", **fields: Any) -> dict[str, Any]:
    return span(uuid.uuid4().hex[:16], name, root["span_id"], trace=root["trace"], **fields)


class TestExporters:
    def test_sdk_exporter_over_protobuf(self, server: RunningServer) -> None:
        session = uuid.uuid4().hex
        provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
        exporter = OTLPSpanExporter(
            endpoint=f"{server.api_url}/otel/v1/traces", headers={"x-api-key": server.key}, timeout=20
        )
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("my.instrumentation")
        with tracer.start_as_current_span("support-agent") as root:
            root.set_attributes(
                {
                    "session.id": session,
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]',
                    "agentx.prompt_name": "support",
                }
            )
            with tracer.start_as_current_span("chat gpt-4o") as call:
                call.set_attributes(
                    {
                        "session.id": session,
                        "gen_ai.provider.name": "openai",
                        "gen_ai.request.model": "gpt-4o",
                        "gen_ai.usage.input_tokens": 100,
                        "gen_ai.usage.output_tokens": 20,
                    }
                )
            with tracer.start_as_current_span("execute_tool lookup") as tool:
                tool.set_attributes({"session.id": session, "gen_ai.tool.name": "lookup"})
                tool.set_status(Status(StatusCode.ERROR, "no such order"))
        provider.shutdown()

        rows = {row["name"]: row for row in session_spans(server, session)}
        root_row, call_row, tool_row = rows["support-agent"], rows["chat gpt-4o"], rows["execute_tool lookup"]
        assert (root_row["spanKind"], call_row["spanKind"], tool_row["spanKind"]) == ("agent", "llm", "tool")
        assert (root_row["framework"], call_row["framework"]) == ("my.instrumentation", "openai")
        assert call_row["parentSpanId"] == root_row["spanId"] == format(root.get_span_context().span_id, "016x")
        assert (call_row["inputTokens"], call_row["outputTokens"]) == (100, 20)
        assert call_row["latencyMs"] >= 0
        (entry,) = root_row["toolCalls"]
        assert (entry["name"], entry["success"], entry["error"]) == ("lookup", False, "no such order")
        assert tool_row["error"] == "no such order"
        detail = get(server, f"/ingest/traces/{root_row['_id']}")
        assert detail["metadata"]["promptName"] == "support"
        assert detail["metadata"]["service.name"] == "shop"
        listed = get(server, "/ingest/traces", limit=100)["traces"]
        assert [row["_id"] for row in listed if row["sessionId"] == session] == [root_row["_id"]]

    def test_both_encodings_are_one_trace(self, server: RunningServer) -> None:
        trace_id, root = fresh(attributes={"input.value": "Hi", "own": 1})
        spans = [root, child_of(root)]
        base64_ids = json.loads(build.as_json(*spans))
        for one in base64_ids["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for name in {"traceId", "spanId", "parentSpanId"} & set(one):
                one[name] = base64.b64encode(bytes.fromhex(one[name])).decode()
        upper = build.as_json(*spans).decode()
        for one in spans:
            upper = upper.replace(one["span_id"], one["span_id"].upper())
        upper = upper.replace(trace_id, trace_id.upper()).replace('"spans"', '"unknown": {"x": []}, "spans"')
        for body, content_type in (
            (build.protobuf(*spans), PROTOBUF),
            (build.as_json(*spans), "application/json; charset=utf-8"),
            (upper.encode(), JSON),
            (json.dumps(base64_ids).encode(), JSON),
        ):
            assert post(server, body, content_type).status_code == 200
        rows = session_spans(server, trace_id)
        assert {row["spanId"] for row in rows} == {one["span_id"] for one in spans}
        assert len(rows) == 2


class TestContentEncoding:
    @pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
    @pytest.mark.parametrize("encoding", ["", "identity", "gzip", "deflate"])
    def test_every_encoding_of_both_types(self, server: RunningServer, content_type: str, encoding: str) -> None:
        trace_id, root = fresh(attributes={"input.value": "Hi"})
        body = build.protobuf(root) if content_type == PROTOBUF else build.as_json(root)
        body = {"gzip": gzip.compress, "deflate": zlib.compress}.get(encoding, bytes)(body)
        headers = {"content_encoding": encoding} if encoding else {}
        response = post(server, body, content_type, **headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == content_type
        assert response.content == (b"" if content_type == PROTOBUF else b"{}")
        (row,) = session_spans(server, trace_id)
        assert (row["input"], row["name"]) == ("Hi", "agent")

    def test_bomb(self, server: RunningServer) -> None:
        compressor = zlib.compressobj(wbits=31)
        zeros = b"\x00" * 1_000_000
        bomb = b"".join(compressor.compress(zeros) for _ in range(1000)) + compressor.flush()
        before = peak_memory(server.pid)
        for content_type in (PROTOBUF, JSON):
            response = post(server, bomb, content_type, content_encoding="gzip")
            assert response.status_code == 413
            assert "10 MB" in response.json()["error"]
        assert peak_memory(server.pid) - before < 80_000_000

    def test_a_body_of_more_than_10_mb(self, server: RunningServer) -> None:
        assert post(server, b"\x00" * (10 * 1024 * 1024 + 1)).status_code == 413

    @pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br"])
    def test_unknown_encodings(self, server: RunningServer, encoding: str) -> None:
        response = post(server, build.protobuf(fresh()[1]), content_encoding=encoding)
        assert response.status_code == 415
        assert "Content-Encoding" in response.json()["error"]


def peak_memory(pid: int) -> int:
    """The process's highest resident size so far, in bytes."""
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


class TestRefusals:
    @pytest.mark.parametrize("content_type", ["text/plain", "application/grpc", "", "multipart/form-data"])
    def test_content_type(self, server: RunningServer, content_type: str) -> None:
        response = post(server, b"x", content_type)
        assert response.status_code == 415
        assert "Content-Type" in response.json()["error"]

    @pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
    @pytest.mark.parametrize("body", [b"", b"\xff\xff\xffjunk", b"nonsense"])
    def test_junk(self, server: RunningServer, content_type: str, body: bytes) -> None:
        response = post(server, body, content_type)
        assert response.status_code == 400
        assert response.json()["error"]

    def test_not_really_gzip(self, server: RunningServer) -> None:
        whole = build.protobuf(fresh()[1])
        for body in (whole, gzip.compress(whole)[:-9]):
            assert post(server, body, content_encoding="gzip").status_code == 400

    @pytest.mark.parametrize("key", ["", "agtx_local_unknown", "ünknown"])
    def test_key(self, server: RunningServer, key: str) -> None:
        body = build.protobuf(fresh()[1])
        response = httpx.post(
            f"{server.api_url}/otel/v1/traces",
            content=body,
            headers={"content-type": PROTOBUF, b"x-api-key": key.encode()},
        )
        assert response.status_code == 401
        assert response.json() == {"error": "Invalid or missing API key"}

    def test_no_usable_span(self, server: RunningServer) -> None:
        response = post(server, build.protobuf(span("0000000000000000")))
        assert response.status_code == 400
        assert "no valid spanId" in response.json()["error"]


class TestPartialSuccess:
    def test_protobuf(self, server: RunningServer) -> None:
        trace_id, root = fresh()
        response = post(server, build.protobuf(root, span("0000000000000000", "lost"), child_of(root)))
        assert response.status_code == 200
        answer = ExportTraceServiceResponse.FromString(response.content).partial_success
        assert answer.rejected_spans == 1
        assert "'lost'" in answer.error_message
        assert len(session_spans(server, trace_id)) == 2

    def test_json(self, server: RunningServer) -> None:
        trace_id, root = fresh()
        spans = [build.json_span(root), {"name": "lost"}, "not a span", build.json_span(child_of(root))]
        response = post(server, json.dumps(build.json_request(spans)).encode(), JSON)
        answer = response.json()["partialSuccess"]
        assert answer["rejectedSpans"] == 2
        assert "'lost'" in answer["errorMessage"]
        assert len(session_spans(server, trace_id)) == 2

    def test_sending_again_adds_nothing(self, server: RunningServer) -> None:
        trace_id, root = fresh()
        body = build.protobuf(root, root, child_of(root))
        for _ in range(3):
            response = post(server, body)
            assert (response.status_code, response.content) == (200, b"")
        assert len(session_spans(server, trace_id)) == 2


class TestHostileText:
    def test_nul_surrogates_overrides_and_big_values(self, server: RunningServer) -> None:
        image = "data:image/png;base64," + "A" * 8_000_000
        trace_id, root = fresh(
            name="x\u0000y \u202eabc",
            attributes={"input.value": "a\u0000b \U0001f916", "output.value": image, "own": "\u0000", "small": "kept"},
            status=(2, "bad\u0000"),
        )
        response = post(server, build.protobuf(root, child_of(root)))
        assert response.status_code == 200, response.text
        rows = {row["spanId"]: row for row in session_spans(server, trace_id)}
        row = rows[root["span_id"]]
        assert row["input"] == "a\ufffdb \U0001f916"
        assert row["output"].endswith("[agentx.truncated]")
        detail = get(server, f"/ingest/traces/{row['_id']}")
        assert (detail["metadata"]["small"], detail["metadata"]["own"]) == ("kept", "\ufffd")

    def test_half_an_emoji_in_json(self, server: RunningServer) -> None:
        trace_id, root = fresh(attributes={"input.value": "TEXT", "gen_ai.usage.input_tokens": 0.5})
        body = build.as_json(root).replace(b"TEXT", b"a\\ud83eb").replace(b"0.5", b"NaN")
        assert post(server, body, JSON).status_code == 200
        (row,) = session_spans(server, trace_id)
        assert (row["input"], row["inputTokens"]) == ("a\ufffdb", None)

    @pytest.mark.parametrize("start", [0, 1, 5_000_000_000, 7_258_118_400_000_000_000, 2**63, 2**64 - 1])
    def test_odd_clocks(self, server: RunningServer, start: int) -> None:
        trace_id, root = fresh(start=start, end=start)
        assert post(server, build.protobuf(root)).status_code == 200
        (row,) = session_spans(server, trace_id)
        assert row["name"] == "agent"

    def test_negative_and_huge_counts(self, server: RunningServer) -> None:
        trace_id, root = fresh(
            attributes={
                "gen_ai.usage.input_tokens": -5,
                "gen_ai.usage.output_tokens": 2**62,
                "gen_ai.request.model": "m",
            }
        )
        assert post(server, build.protobuf(root)).status_code == 200
        (row,) = session_spans(server, trace_id)
        assert row["inputTokens"] == 0


def test_cost_when_cache_counts_are_a_subset_beside_the_input_or_inconsistent(server: RunningServer) -> None:
    counts = {"cacheReadTokens": 128955, "cacheWriteTokens": 1253, "outputTokens": 100}
    found = []
    for count in (130213, 5):
        trace_id, root = fresh(
            attributes={
                "gen_ai.request.model": "claude-sonnet-4-5",
                "gen_ai.usage.input_tokens": count,
                "gen_ai.usage.output_tokens": 100,
                "gen_ai.usage.cache_read_input_tokens": 128955,
                "gen_ai.usage.cache_creation_input_tokens": 1253,
            }
        )
        assert post(server, build.protobuf(root)).status_code == 200
        found.append(get(server, f"/ingest/traces/{session_spans(server, trace_id)[0]['_id']}"))
    subset, additive = found
    assert subset["inputTokens"] == additive["inputTokens"] == 130213
    assert subset["estimatedCostUSD"] == additive["estimatedCostUSD"] > 0
    assert additive["metadata"]["agentx.cacheTokensAdded"] is True

    # Over REST the cache counts are a subset by contract: kept as sent, priced without a negative part, and marked.
    body = {"name": "agent", "model": "claude-sonnet-4-5", "inputTokens": 5, "metadata": {"own": 1}} | counts
    sent = httpx.post(f"{server.api_url}/ingest/traces", json=body, headers={"x-api-key": server.key}, timeout=30)
    row = get(server, f"/ingest/traces/{sent.json()['traceId']}")
    assert row["inputTokens"] == 5
    assert 0 < row["estimatedCostUSD"] <= subset["estimatedCostUSD"]
    assert row["metadata"] == {"own": 1, "agentx.inconsistentTokens": True}


def test_five_thousand_spans_in_one_request(server: RunningServer) -> None:
    trace_id, root = fresh()
    response = post(
        server, gzip.compress(build.protobuf(root, *(child_of(root) for _ in range(4999)))), content_encoding="gzip"
    )
    assert (response.status_code, response.content) == (200, b"")
    assert len(session_spans(server, trace_id)) == 5000


class TestLimits:
    def test_quota_roots_are_rejected_in_partial_success(self) -> None:
        with running_server(env={"AGENTX_QUOTA_TRACES_PER_DAY": "1"}) as server:
            _, first = fresh()
            assert post(server, build.protobuf(first)).content == b""
            trace_id, second = fresh()
            response = post(server, build.protobuf(second, child_of(second)))
            assert response.status_code == 200
            answer = ExportTraceServiceResponse.FromString(response.content).partial_success
            assert answer.rejected_spans == 1
            assert "Daily trace quota reached" in answer.error_message
            assert [row["name"] for row in session_spans(server, trace_id)] == ["step"]
            assert post(server, build.protobuf(first)).content == b""

    def test_monitor_switch(self) -> None:
        with running_server(env={"AGENTX_OTEL_MONITOR": "false"}) as server:
            trace_id, root = fresh()
            assert post(server, build.protobuf(root)).status_code == 200
            assert len(session_spans(server, trace_id)) == 1

    def test_outage_and_full_queue_refuse_the_whole_request(self) -> None:
        with running_server(env={"AGENTX_INGEST_QUEUE_MAX": "2", "AGENTX_RATE_LIMIT": "off"}, db_url="") as server:
            trace_id, root = fresh()
            body = build.protobuf(root, child_of(root))
            assert session_spans(server, trace_id) == []  # the key is known from here on
            with locked_database(server), ThreadPoolExecutor(4) as pool:
                refused = {
                    response.status_code: response for response in pool.map(lambda _: post(server, body), range(4))
                }
            assert set(refused) == {429, 503}
            assert refused[429].headers["retry-after"] == "1"
            assert refused[429].json()["error"].startswith("Ingest queue is full")
            assert refused[503].headers["retry-after"] == "2"
            assert refused[503].json()["error"].startswith("Trace storage is unavailable")
            assert session_spans(server, trace_id) == []
            assert post(server, body).status_code == 200
            assert len(session_spans(server, trace_id)) == 2


@contextlib.contextmanager
def locked_database(server: RunningServer) -> Iterator[None]:
    """Hold the write lock of a server's SQLite file."""
    connection = sqlite3.connect(server.home / "agentx.db", timeout=10, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()
