"""OTLP over gRPC: the TraceService on a port of its own (AGENTX_OTLP_GRPC_PORT), when the `grpc` extra is installed.

The key comes in the metadata `x-api-key`. Refusals: UNAUTHENTICATED for the key, INVALID_ARGUMENT for a request without
one usable span, RESOURCE_EXHAUSTED (queue full or rate limit, with RetryInfo, so that exporters send again) and
UNAVAILABLE (storage outage). Requests run in a bounded pool of threads; what waits beyond it is refused at once.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.db import DatabaseError, connections

from apps.core import ratelimit
from apps.projects.models import Project
from apps.projects.services.keys import project_for_key
from apps.tracing.ingest import pipeline
from apps.tracing.ingest.errors import (
    QUEUE_FULL,
    QUEUE_FULL_RETRY_AFTER,
    STORAGE_UNAVAILABLE,
    STORAGE_UNAVAILABLE_RETRY_AFTER,
    QueueFull,
    StorageUnavailable,
)
from apps.tracing.otlp import export, protobuf
from apps.tracing.otlp.encoding import PROTOBUF
from apps.tracing.otlp.spans import Undecodable

logger = logging.getLogger(__name__)

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
THREADS = 16
# Requests running or waiting for a thread; beyond it gRPC answers RESOURCE_EXHAUSTED by itself.
MAX_CONCURRENT = 64
STOP_GRACE_SECONDS = 10.0

_server: Any = None
_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


class _Refused(Exception):
    """The status of a request that is not taken; `retry_seconds` tells the exporter when to send it again."""

    def __init__(self, code: Any, text: str, retry_seconds: str | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.retry_seconds = retry_seconds


def start(host: str, port: int) -> int | None:
    """Start the receiver and return its port; None, with a line in the log, when there is nothing to start.

    A port that is taken does not stop the server: the rest of it works without this door.
    """
    global _server, _pool
    try:
        import grpc
    except ImportError:
        logger.info("the OTLP gRPC receiver is off: install agentx-server[grpc] to have it")
        return None
    with _lock:
        if _server is not None:
            return None
        pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="otlp-grpc")
        server = grpc.server(
            pool,
            maximum_concurrent_rpcs=MAX_CONCURRENT,
            options=[
                ("grpc.max_receive_message_length", settings.MAX_BODY_BYTES),
                ("grpc.so_reuseport", 0),
            ],
        )
        handler = grpc.unary_unary_rpc_method_handler(_export_handler(grpc))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = server.add_insecure_port(address)
        except RuntimeError:
            bound = 0
        if not bound:
            pool.shutdown(wait=False)
            logger.warning("the OTLP gRPC receiver is off: its port is taken", extra={"address": address})
            return None
        server.start()
        _server, _pool = server, pool
    logger.info("OTLP gRPC receiver listens", extra={"address": address})
    return int(bound)


def stop(grace: float = STOP_GRACE_SECONDS) -> None:
    """Take no new requests, give running ones `grace` seconds, and end the threads."""
    global _server, _pool
    with _lock:
        server, pool = _server, _pool
        _server = _pool = None
    if server is None or pool is None:
        return
    if not server.stop(grace).wait(grace + 5):
        logger.error("the OTLP gRPC receiver did not stop in time")
    pool.shutdown(wait=False, cancel_futures=True)


def _export_handler(grpc: Any) -> Any:
    """The Export method: serialized request in, serialized response out."""

    def export_method(body: bytes, context: Any) -> bytes:
        try:
            metadata = context.invocation_metadata()
            _within_rate(grpc, context.peer(), metadata)
            return _export(grpc, body, metadata)
        except _Refused as refused:
            if refused.retry_seconds is not None:
                context.set_trailing_metadata(
                    (("grpc-status-details-bin", _retry_details(refused, int(refused.retry_seconds))),)
                )
            context.set_code(refused.code)
            context.set_details(refused.text)
            return b""
        except Exception:
            # Nothing of what is inside may reach the client, and the exporter must not send it forever.
            logger.exception("an OTLP gRPC request failed")
            context.set_code(grpc.StatusCode.INTERNAL)
            context.set_details("Internal server error")
            return b""

    return export_method


def _within_rate(grpc: Any, peer: str, metadata: Any) -> None:
    """Count the request on the data plane's budget of its address, as the router does for HTTP. Raises _Refused."""
    forwarded = next((value for name, value in metadata if name == "x-forwarded-for"), None)
    # "ipv4:127.0.0.1:50000" or "ipv6:%5B::1%5D:50000"
    address = unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")
    allowed, headers = ratelimit.hit("data", ratelimit.client_ip(address, forwarded))
    if not allowed:
        raise _Refused(
            grpc.StatusCode.RESOURCE_EXHAUSTED, str(ratelimit.REFUSAL["message"]), dict(headers).get("Retry-After")
        )


def _export(grpc: Any, body: bytes, metadata: Any) -> bytes:
    code = grpc.StatusCode
    project = _project(grpc, metadata)
    try:
        prepared = export.prepare(body, PROTOBUF)
        stored = pipeline.store_spans(project, prepared.rows, door="otlp") if prepared.rows else []
    except Undecodable as error:
        raise _Refused(code.INVALID_ARGUMENT, str(error)) from None
    except QueueFull:
        raise _Refused(code.RESOURCE_EXHAUSTED, QUEUE_FULL, QUEUE_FULL_RETRY_AFTER) from None
    except StorageUnavailable:
        raise _Refused(code.UNAVAILABLE, STORAGE_UNAVAILABLE, STORAGE_UNAVAILABLE_RETRY_AFTER) from None
    return protobuf.encode_response(*export.verdict(prepared, stored))


def _project(grpc: Any, metadata: Any) -> Project:
    key = next((value for name, value in metadata if name == "x-api-key"), "")
    try:
        project = _look_up(key) if isinstance(key, str) and key else None
    except DatabaseError:
        logger.warning("project keys cannot be looked up", exc_info=True)
        connections.close_all()
        raise _Refused(grpc.StatusCode.UNAVAILABLE, STORAGE_UNAVAILABLE, STORAGE_UNAVAILABLE_RETRY_AFTER) from None
    if project is None:
        raise _Refused(grpc.StatusCode.UNAUTHENTICATED, "Invalid or missing API key")
    return project


def _look_up(key: str) -> Project | None:
    try:
        return project_for_key(key)
    except DatabaseError:
        # This thread's connection may have died with a database that is back; a fresh one gets one try.
        connections.close_all()
        return project_for_key(key)


def _retry_details(refused: _Refused, seconds: int) -> bytes:
    """A serialized google.rpc.Status whose detail is RetryInfo with the delay, written by hand: three small messages
    are no reason for another dependency."""

    def field(number: int, raw: bytes) -> bytes:
        return bytes((number << 3 | 2, len(raw))) + raw

    duration = bytes((1 << 3, seconds))
    any_message = field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, field(1, duration))
    return bytes((1 << 3, refused.code.value[0])) + field(2, refused.text.encode()[:100]) + field(3, any_message)
