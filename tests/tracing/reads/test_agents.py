"""The agent registry (source 1:1857-1991)."""

from __future__ import annotations

import re

import pytest

from apps.tracing.models import Agent


def test_register_always_makes_a_new_row(api):
    """201 with the trimmed name; the same name again is another agent (TRC-058)."""
    first = api.post("/agents", {"name": " x "})
    second = api.post("/agents", {"name": "x"})
    assert first.status_code == second.status_code == 201
    assert set(first.json()) == {"agent"}
    assert set(first.json()["agent"]) == {"_id", "name", "createdAt"}
    assert first.json()["agent"]["name"] == second.json()["agent"]["name"] == "x"
    assert first.json()["agent"]["_id"] != second.json()["agent"]["_id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.json()["agent"]["createdAt"])


@pytest.mark.parametrize("body", [{}, {"name": None}, {"name": 3}, {"name": "  "}, [], "x", None])
def test_name_is_required(api, body):
    """400 with the documented text (TRC-059)."""
    response = api.post("/agents", body)
    assert (response.status_code, response.json()) == (400, {"error": "name is required"})


def test_register_without_a_body(api):
    """No body counts as an empty one; text that is no JSON is a 400 of its own."""
    response = api.client.post("/api/v1/agents", content_type="application/json")
    assert (response.status_code, response.json()) == (400, {"error": "name is required"})
    response = api.client.post("/api/v1/agents", "{", content_type="application/json")
    assert response.status_code == 400


def test_odd_names_are_kept(api):
    """NUL, which no database can hold, is replaced; a very long name is cut."""
    assert api.post("/agents", {"name": "a\u0000b"}).json()["agent"]["name"] == "a\ufffdb"
    assert len(api.post("/agents", {"name": "n" * 9000}).json()["agent"]["name"]) == 500


def test_list_is_sorted_by_name_then_age(api, project):
    """Exact keys and order (TRC-060)."""
    for name in ("beta", "alpha", "beta"):
        api.post("/agents", {"name": name})
    agents = api.get("/agents").json()["agents"]
    assert [agent["name"] for agent in agents] == ["alpha", "beta", "beta"]
    ids = list(Agent.objects.filter(name="beta").order_by("created_at", "id").values_list("id", flat=True))
    assert [agent["_id"] for agent in agents[1:]] == ids
    for agent in agents:
        assert set(agent) == {
            "_id",
            "name",
            "kind",
            "agentType",
            "monitoringAgentId",
            "monitoringProfile",
            "createdAt",
        }
        assert (agent["kind"], agent["agentType"]) == ("agent", "external")
        assert agent["monitoringAgentId"] == agent["_id"]
        assert agent["monitoringProfile"] is None


def test_list_has_the_profile_once_it_is_set(api):
    """Null until configured, then an object (TRC-061)."""
    agent_id = api.post("/agents", {"name": "x"}).json()["agent"]["_id"]
    api.put(f"/monitor/profiles/{agent_id}", {"enabled": False})
    (agent,) = api.get("/agents").json()["agents"]
    assert agent["monitoringProfile"]["enabled"] is False
    assert {"sampleRate", "retentionDays", "thresholdOverrides", "channels", "createdAt", "updatedAt"} <= set(
        agent["monitoringProfile"]
    )


def test_read_one(api, other_api):
    """By id; unknown and foreign ids are the same 404 (TRC-062)."""
    agent = api.post("/agents", {"name": "x"}).json()["agent"]
    assert api.get(f"/agents/{agent['_id']}").json() == {"agent": agent}
    for client, agent_id in ((api, "nope"), (other_api, agent["_id"])):
        response = client.get(f"/agents/{agent_id}")
        assert (response.status_code, response.json()) == (404, {"error": "Agent not found"})


def test_agents_cannot_be_deleted(api):
    """404 and the row stays (TRC-065)."""
    agent = api.post("/agents", {"name": "x"}).json()["agent"]
    response = api.client.delete(f"/api/v1/agents/{agent['_id']}")
    assert (response.status_code, response.json()) == (404, {"error": "Not found"})
    assert api.get(f"/agents/{agent['_id']}").status_code == 200


@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_hosted_tracked_agents_do_not_exist(api, method):
    """404 JSON (TRC-066)."""
    for path in ("/ingest/tracked-agents", "/ingest/tracked-agents/x", "/access/agents", "/access/getProfile"):
        response = getattr(api.client, method)(f"/api/v1{path}")
        assert (response.status_code, response.json()) == (404, {"error": "Not found"})


def test_number_of_queries_is_fixed(api, django_assert_num_queries):
    """One query for the list."""
    for n in range(5):
        agent = api.post("/agents", {"name": f"a{n}"}).json()["agent"]
        api.put(f"/monitor/profiles/{agent['_id']}", {"enabled": True})
    with django_assert_num_queries(1):
        api.get("/agents")
