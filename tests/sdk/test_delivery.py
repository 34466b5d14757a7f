"""The published client against a server that is busy, locked, slow to come or strict: what is retried, kept and said."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator

import pytest
from agentx import AgentX
from agentx.exceptions import AgentXAuthError, AgentXConnectionError
from agentx.traces import AgentXTracesError

from tests.support.server import RunningServer, free_port, running_server, start_server

sqlite_only = pytest.mark.skipif(
    bool(os.environ.get("AGENTX_TEST_DB_URL")), reason="locks SQLite's file; Postgres has none"
)


@pytest.fixture
def client(server: RunningServer) -> Iterator[AgentX]:
    """A client of the default project."""
    with AgentX(api_key=server.key, base_url=server.api_url) as made:
        yield made


@contextlib.contextmanager
def locked_for(server: RunningServer, seconds: float) -> Iterator[None]:
    """Hold SQLite's write lock from now on for this long, in the background."""
    held = threading.Event()

    def hold() -> None:
        raw = sqlite3.connect(server.home / "agentx.db", isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")
        held.set()
        time.sleep(seconds)
        raw.execute("ROLLBACK")
        raw.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    try:
        yield
    finally:
        holder.join(30)


@sqlite_only
def test_a_sync_send_is_retried_until_the_store_is_free(server, client):
    with locked_for(server, 7), client.tracer.trace("patient", sync=True) as span:
        span.output = "x"
    assert span.trace_id
    assert client.traces.get(span.trace_id)["output"] == "x"
    assert [row["name"] for row in client.traces.list()["traces"]].count("patient") == 1


@sqlite_only
def test_a_full_queue_costs_the_client_no_trace():
    with running_server(env={"AGENTX_INGEST_QUEUE_MAX": "2", "AGENTX_RATE_LIMIT": "off"}) as server:
        clients = [AgentX(api_key=server.key, base_url=server.api_url) for _ in range(3)]
        with clients[0].tracer.trace("first", sync=True):
            pass
        with locked_for(server, 1.5):
            for number, client in enumerate(clients):
                for turn in range(3):
                    with client.tracer.trace(f"client {number} turn {turn}"):
                        pass
        for client in clients:
            assert client.close(timeout=60)
            assert client._ingest_client._dropped == 0
        reader = AgentX(api_key=server.key, base_url=server.api_url)
        names = [row["name"] for row in reader.traces.list(limit=100)["traces"]]
        assert sorted(names) == sorted(["first", *(f"client {n} turn {t}" for n in range(3) for t in range(3))])
        reader.close()


def test_a_server_that_starts_late_gets_what_was_queued(tmp_path, caplog):
    port = free_port()
    key = _key_of_a_fresh_home(tmp_path, port)
    client = AgentX(api_key=key, base_url=f"http://127.0.0.1:{port}/api/v1")
    with pytest.raises(AgentXConnectionError, match="Cannot reach AgentX"):
        client.ping()
    with client.tracer.trace("early"):
        client.tracer.record_tool_call("look")
    server = start_server(tmp_path, port=port)
    try:
        assert client.close(timeout=30)
        assert client._ingest_client._dropped == 0
        [row] = AgentX(api_key=key, base_url=server.api_url).traces.list()["traces"]
        assert row["name"] == "early"
    finally:
        server.stop()


def _key_of_a_fresh_home(home, port: int) -> str:
    server = start_server(home, port=port)
    key = server.key
    server.stop()
    return key


def test_a_wrong_key_is_said_once_and_nothing_is_stored(server, client, caplog):
    before = client.traces.list()["totalCount"]
    stranger = AgentX(api_key="agtx_local_wrong", base_url=server.api_url)
    with caplog.at_level(logging.WARNING, logger="agentx"):
        for _ in range(2):
            with stranger.tracer.trace("lost", sync=True) as span:
                pass
            assert span.trace_id is None
    assert sum("the API key was rejected" in record.message for record in caplog.records) == 1
    with pytest.raises(AgentXAuthError):
        stranger.ping()
    with pytest.raises(AgentXAuthError):
        stranger.monitor.agents.list()
    with pytest.raises(AgentXTracesError, match="Invalid or missing API key"):
        stranger.traces.list()
    stranger.close()
    assert client.traces.list()["totalCount"] == before


def test_a_refused_span_says_why(server, client, caplog):
    with caplog.at_level(logging.WARNING, logger="agentx"), client.tracer.trace("", sync=True) as span:
        pass
    assert span.trace_id is None
    assert any("HTTP 422" in record.message and "name" in record.message for record in caplog.records)


def test_a_replayed_payload_is_stored_once(server, client):
    payload = {"name": "replayed", "span_id": "fixed-id", "output": "first", "session_id": "replays"}
    answers = [client._ingest_client.send_trace_sync_detailed(payload) for _ in range(3)]
    assert [answer["deduped"] for answer in answers] == [False, True, True]
    assert {answer["trace_id"] for answer in answers} == {answer["traceId"] for answer in answers}
    assert len({answer["trace_id"] for answer in answers}) == 1
    assert len(client.monitor.sessions.spans("replays")) == 1
