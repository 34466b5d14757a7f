"""The OTLP gRPC door of a running server."""

from __future__ import annotations

import gzip
import socket
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import httpx
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tests.support.server import RunningServer, free_port, running_server
from tests.tracing.otlp import build
from tests.tracing.otlp.build import span
from tests.tracing.otlp.test_http import locked_database


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nothing listens on {port}")


@pytest.fixture(scope="module")
def door() -> Iterator[tuple[RunningServer, int]]:
    """A running server and its gRPC port."""
    port = free_port()
    with running_server(env={"AGENTX_OTLP_GRPC_PORT": str(port), "AGENTX_RATE_LIMIT": "off"}) as server:
        wait_for_port(port)
        yield server, port


def call(
    port: int, body: bytes, key: str | None, compression: grpc.Compression | None = None
) -> ExportTraceServiceResponse:
    with grpc.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.max_send_message_length", -1)], compression=compression
    ) as channel:
        metadata = [("x-api-key", key)] if key is not None else []
        return TraceServiceStub(channel).Export(
            ExportTraceServiceRequest.FromString(body), metadata=metadata, timeout=30
        )


def session_spans(server: RunningServer, session_id: str) -> list[dict]:
    response = httpx.get(
        f"{server.api_url}/ingest/sessions/{session_id}/spans", headers={"x-api-key": server.key}, timeout=30
    )
    return response.json()["spans"]


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
def test_sdk_exporter(door: tuple[RunningServer, int], compression: grpc.Compression | None) -> None:
    server, port = door
    session = uuid.uuid4().hex
    provider = TracerProvider()
    exporter = OTLPSpanExporter(
        endpoint=f"http://127.0.0.1:{port}",
        insecure=True,
        headers={"x-api-key": server.key},
        compression=compression,
        timeout=20,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("grpc.scope")
    with (
        tracer.start_as_current_span("agent", attributes={"session.id": session}),
        tracer.start_as_current_span("step", attributes={"session.id": session, "openinference.span.kind": "TOOL"}),
    ):
        pass
    provider.shutdown()
    rows = {row["name"]: row for row in session_spans(server, session)}
    assert rows["step"]["parentSpanId"] == rows["agent"]["spanId"]
    assert [entry["name"] for entry in rows["agent"]["toolCalls"]] == ["step"]


def test_same_rows_as_over_http_and_no_duplicates(door: tuple[RunningServer, int]) -> None:
    server, port = door
    trace_id = uuid.uuid4().hex
    body = build.protobuf(span(uuid.uuid4().hex[:16], trace=trace_id, attributes={"input.value": "Hi"}))
    headers = {"x-api-key": server.key, "content-type": "application/x-protobuf", "content-encoding": "gzip"}
    assert httpx.post(f"{server.api_url}/otel/v1/traces", content=gzip.compress(body), headers=headers).is_success
    assert call(port, body, server.key) == ExportTraceServiceResponse()
    (row,) = session_spans(server, trace_id)
    assert row["input"] == "Hi"


def test_partial_success(door: tuple[RunningServer, int]) -> None:
    server, port = door
    trace_id = uuid.uuid4().hex
    good = span(uuid.uuid4().hex[:16], trace=trace_id)
    answer = call(port, build.protobuf(good, span("0000000000000000", "lost")), server.key).partial_success
    assert answer.rejected_spans == 1
    assert "'lost'" in answer.error_message
    assert len(session_spans(server, trace_id)) == 1


@pytest.mark.parametrize("key", [None, "", "agtx_local_unknown"])
def test_key(door: tuple[RunningServer, int], key: str | None) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        call(door[1], build.protobuf(span()), key)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_no_usable_span(door: tuple[RunningServer, int]) -> None:
    server, port = door
    with pytest.raises(grpc.RpcError) as caught:
        call(port, build.protobuf(span("0000000000000000")), server.key)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_broken_message(door: tuple[RunningServer, int]) -> None:
    server, port = door
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as caught:
            export(b"\xff\xff\xffjunk", metadata=[("x-api-key", server.key)], timeout=20)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
def test_too_large(door: tuple[RunningServer, int], compression: grpc.Compression | None) -> None:
    server, port = door
    body = build.protobuf(span(attributes={"a": "x" * (10 * 1024 * 1024)}))
    with pytest.raises(grpc.RpcError) as caught:
        call(port, body, server.key, compression)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_taken_port_does_not_stop_the_server() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running_server(env={"AGENTX_OTLP_GRPC_PORT": str(port)}) as server:
            assert httpx.get(f"{server.base_url}/health").status_code == 200
            deadline = time.monotonic() + 20
            while "gRPC receiver is off" not in server.output and time.monotonic() < deadline:
                time.sleep(0.05)
            assert "gRPC receiver is off" in server.output


def test_stop_with_the_door_open(door: tuple[RunningServer, int]) -> None:
    port = free_port()
    with running_server(env={"AGENTX_OTLP_GRPC_PORT": str(port)}) as server:
        wait_for_port(port)
        assert server.stop() == 0


def test_outage_and_full_queue_tell_the_exporter_when_to_come_back() -> None:
    port = free_port()
    env = {"AGENTX_OTLP_GRPC_PORT": str(port), "AGENTX_INGEST_QUEUE_MAX": "2", "AGENTX_RATE_LIMIT": "off"}
    with running_server(env=env, db_url="") as server:
        wait_for_port(port)
        parent = uuid.uuid4().hex[:16]
        body = build.protobuf(span(parent), span(uuid.uuid4().hex[:16], "step", parent))
        call(port, body, server.key)
        seen: dict[grpc.StatusCode, int] = {}
        with locked_database(server), ThreadPoolExecutor(4) as pool:
            for error in pool.map(lambda _: refusal(port, body, server.key), range(4)):
                seen[error.code()] = retry_seconds(error)
        assert seen == {grpc.StatusCode.RESOURCE_EXHAUSTED: 1, grpc.StatusCode.UNAVAILABLE: 2}
        assert call(port, body, server.key) == ExportTraceServiceResponse()


def test_rate_limit_of_the_data_plane() -> None:
    port = free_port()
    with running_server(env={"AGENTX_OTLP_GRPC_PORT": str(port), "AGENTX_RATE_LIMIT_DATA_PLANE": "50"}) as server:
        wait_for_port(port)
        codes = []
        for _ in range(51):
            try:
                call(port, build.protobuf(span()), server.key)
            except grpc.RpcError as error:
                codes.append(error.code())
                assert 1 <= retry_seconds(error) <= 60
        assert codes
        assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}


def refusal(port: int, body: bytes, key: str) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call(port, body, key)
    return caught.value


def retry_seconds(error: grpc.RpcError) -> int:
    """The delay of the RetryInfo in the error's details."""
    raw = next(value for name, value in error.trailing_metadata() if name == "grpc-status-details-bin")
    status = Status.FromString(raw)
    assert status.code == error.code().value[0]
    info = RetryInfo()
    assert status.details[0].Unpack(info)
    return info.retry_delay.seconds
