"""The published Python client reads what it sent: traces, sessions, agents, profiles, export, and a replay of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from agentx import AgentX
from agentx.exceptions import AgentXAuthError
from agentx.export import AgentXExportError
from agentx.traces import AgentXTracesError

from tests.support.server import RunningServer, running_server

# What an ingest body takes of an exported row; the row's own id and times are made anew.
REPLAYED = [
    "name",
    "input",
    "output",
    "error",
    "latencyMs",
    "framework",
    "model",
    "toolCalls",
    "spanKind",
    "sessionId",
    "metadata",
    "performanceSummary",
    "inputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "spanId",
    "parentSpanId",
    "startedAtUnixNano",
    "monitor",
]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server started as a user starts it."""
    with running_server() as started:
        yield started


@pytest.fixture(scope="module")
def seeded(server: RunningServer) -> AgentX:
    """A client whose project holds a tree with a tool call and a retrieval, and a failed trace in the same session."""
    client = AgentX(api_key=server.key, base_url=server.api_url)
    with client.tracer.trace(
        "concierge", input={"q": "Paris?"}, session_id="trip/1 a", metadata={"tier": "gold"}, sync=True
    ) as span:
        client.tracer.record_tool_call("weather", input={"city": "Paris"}, output="sunny", success=True)
        client.tracer.record_retrieval("kb", query="Paris", output=["chunk one", "chunk two"])
        span.output = "Pack light"
    with pytest.raises(RuntimeError), client.tracer.trace("concierge", session_id="trip/1 a", sync=True) as span:
        span.input = "again"
        raise RuntimeError("no rooms")
    return client


def post(server: RunningServer, key: str, body: dict[str, Any]) -> httpx.Response:
    """One span over plain HTTP."""
    return httpx.post(f"{server.api_url}/ingest/traces", json=body, headers={"x-api-key": key}, timeout=30)


def test_ping(server, seeded):
    """The key is accepted; a wrong one is an auth error."""
    assert seeded.ping()["ok"] is True
    with pytest.raises(AgentXAuthError):
        AgentX(api_key="agtx_local_wrong", base_url=server.api_url).ping()


def test_traces(seeded):
    """List, follow the cursor, read one, and an unknown id."""
    page = seeded.traces.list(limit=1)
    assert page["traces"][0]["error"]
    following = seeded.traces.list(limit=1, cursor=page["nextCursor"])
    trace = seeded.traces.get(following["traces"][0]["_id"])
    assert (trace["name"], trace["input"], trace["output"]) == ("concierge", {"q": "Paris?"}, "Pack light")
    assert trace["toolCalls"][0]["name"] == "weather"
    assert trace["metadata"] == {"tier": "gold"}
    assert following["nextCursor"] is None
    with pytest.raises(AgentXTracesError, match="Trace not found"):
        seeded.traces.get("nope")


def test_session_spans(seeded):
    """The whole tree at once after a synchronous send, under an id with a slash and a space."""
    spans = seeded.monitor.sessions.spans("trip/1 a")
    assert {span["spanKind"] for span in spans} >= {"tool", "retrieval"}
    root = next(span for span in spans if "parentSpanId" not in span)
    assert {span["parentSpanId"] for span in spans if "parentSpanId" in span} == {root["spanId"]}
    assert spans[0] == root  # recorded calls without times of their own sit at its start


def test_agents_and_profiles(seeded):
    """ensure() meets the agent that traces made; profile settings accumulate."""
    agent = seeded.monitor.agents.ensure("concierge")
    assert seeded.monitor.agents.ensure("concierge")["_id"] == agent["_id"]
    assert [row["name"] for row in seeded.monitor.agents.list()].count("concierge") == 1
    assert seeded.monitor.profile.get(agent["_id"]) is None
    seeded.monitor.profile.update(agent["_id"], info_detection_enabled=False)
    seeded.monitor.profile.update(agent["_id"], channels=["webhook:http://127.0.0.1:9/x"])
    profile = seeded.monitor.profile.get(agent["_id"])
    assert profile is not None
    assert (profile.info_detection_enabled, profile.enabled) == (False, True)
    assert profile.channels == ["webhook:http://127.0.0.1:9/x"]


def test_export_dump(seeded, tmp_path):
    """One file for each entity, with as many lines as the manifest says."""
    manifest = {item["entity"]: item["rows"] for item in seeded.export.manifest()}
    written = seeded.export.dump(str(tmp_path))
    assert written == manifest
    assert {path.stem for path in tmp_path.glob("*.ndjson")} == set(manifest)
    with pytest.raises(AgentXExportError):
        list(seeded.export.iter("nope"))
    assert list(seeded.export.iter("traces", since="2999-01-01")) == []


def test_exported_traces_replay_into_another_project(server, seeded):
    """Counts, contents, sessions, trees and metadata are the same; ids and createdAt are new (OPS-054)."""
    for n, extra in enumerate(({"source": "eval-run"}, {"monitor": False}, {"input": {"deep": [1, {"x": None}]}})):
        assert post(server, server.key, {"name": f"more {n}", "spanId": f"more{n}", **extra}).status_code == 200
    target = seeded.projects.create("replayed")
    other = AgentX(api_key=target["apiKey"], base_url=server.api_url)
    exported = list(seeded.export.iter("traces"))
    for row in exported:
        body = {key: row[key] for key in REPLAYED if row[key] is not None}
        if row["trafficSource"]:
            body["source"] = row["trafficSource"]
        assert post(server, target["apiKey"], body).status_code == 200
    replayed = list(other.export.iter("traces"))
    assert len(replayed) == len(exported)

    def content(rows: list[dict[str, Any]]) -> list[str]:
        new = ("id", "projectId", "createdAt", "receivedAt", "agentId")
        # A session made by the server for a trace without one carries the id of its trace.
        return sorted(json.dumps({key: value for key, value in row.items() if key not in new}) for row in rows)

    assert content(replayed) == content(exported)
    assert {row["id"] for row in replayed}.isdisjoint({row["id"] for row in exported})
    for session_id in {row["sessionId"] for row in exported}:
        tree = [
            sorted((span.get("spanId"), span.get("parentSpanId")) for span in client.monitor.sessions.spans(session_id))
            for client in (seeded, other)
        ]
        assert tree[0] == tree[1]


def test_the_documented_replay_script(server, seeded):
    """The loop of the backup page, as printed there (source 1:8156-8170)."""
    target_key = seeded.projects.create("script")["apiKey"]
    target = AgentX(api_key=target_key, base_url=server.api_url)
    rows = list(seeded.export.iter("traces"))
    for row in rows:
        with target.tracer.trace(
            row["name"], input=row["input"], session_id=row.get("sessionId"), metadata=row.get("metadata"), sync=True
        ) as span:
            span.output = row["output"]
    back = list(target.export.iter("traces"))
    assert [(row["name"], row["input"], row["output"]) for row in back] == [
        (row["name"], row["input"], row["output"]) for row in rows
    ]


def test_documents_over_the_wire(server):
    """The schema and its page need no key; unknown paths are JSON, and nothing redirects."""
    schema = httpx.get(f"{server.base_url}/api/schema/")
    assert schema.json()["openapi"].startswith("3.")
    docs = httpx.get(f"{server.base_url}/api/docs/")
    assert (docs.status_code, docs.headers["content-type"].split(";")[0]) == (200, "text/html")
    for path in ("/api/v1/nope", "/api/v1/ingest/traces/", "/api/v1/ingest/tracked-agents"):
        response = httpx.get(f"{server.base_url}{path}", headers={"x-api-key": server.key})
        assert (response.status_code, response.json()) == (404, {"error": "Not found"})
