"""GET /live/traces: news of new traces, scoped to the project, ended by the server's stop."""

from __future__ import annotations

import http.client
import json
import sqlite3
import time

import pytest

from tests.support.server import RunningServer, running_server

INSERT = """
INSERT INTO tracing_span (id, project_id, span_id, parent_span_id, name, kind, status, traffic, created_ms, received_ms,
  child_input_tokens, child_output_tokens, child_cache_read_tokens, child_cache_write_tokens, tool_count, tool_failures)
VALUES (?, (SELECT id FROM projects_project WHERE is_default), ?, ?, 'turn', 'AGENT', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
"""


@pytest.fixture
def server():
    with running_server(db_url="") as running:
        yield running


def listen(server: RunningServer, **headers: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=15)
    connection.request("GET", "/live/traces", headers=headers)
    return connection, connection.getresponse()


def store(server: RunningServer, *, parent: str | None = None) -> str:
    from apps.core.ids import new_id

    identity = new_id()
    connection = sqlite3.connect(server.home / "agentx.db", timeout=10)
    with connection:
        connection.execute(INSERT, (identity, identity, parent))
    connection.close()
    return identity


def next_event(answer: http.client.HTTPResponse) -> dict:
    while True:
        line = answer.readline().decode().strip()
        if line.startswith("data: "):
            return json.loads(line[6:])


def test_a_new_trace_is_told_and_a_child_span_is_not(server):
    connection, answer = listen(server, **{"x-api-key": server.key})
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.readline() == b"retry: 2000\n"
    store(server, parent="somebody")
    identity = store(server)
    assert next_event(answer) == {"count": 1, "newest": identity}
    connection.close()


def test_a_wrong_key_gets_401(server):
    connection, answer = listen(server, **{"x-api-key": "agtx_local_wrong"})
    assert answer.status == 401
    assert json.loads(answer.read()) == {"error": "Invalid or missing API key"}
    connection.close()


def test_the_cookie_of_an_unknown_project_falls_back_to_the_default_one(server):
    connection, answer = listen(server, cookie="agentx_project=nobody")
    assert answer.status == 200
    answer.readline()
    identity = store(server)
    assert next_event(answer)["newest"] == identity
    connection.close()


def test_an_open_stream_does_not_hold_up_the_stop(server):
    connection, answer = listen(server)
    answer.readline()
    begin = time.monotonic()
    assert server.stop() == 0
    # The drain waits up to 8 s for requests; a stream must have ended long before.
    assert "timeout graceful shutdown exceeded" not in server.output
    assert answer.read() is not None
    assert time.monotonic() - begin < 8
    connection.close()
