"""Monitoring profiles and the ping route (source 1:7347-7364; sdk agentx.py ping)."""

from __future__ import annotations

import pytest

from apps.projects.models import AuditEvent

KEYS = {
    "_id",
    "workspaceId",
    "agentId",
    "enabled",
    "failureDetectionEnabled",
    "infoDetectionEnabled",
    "topicsEnabled",
    "coverageMode",
    "sampleRate",
    "channels",
    "datasetId",
    "thresholdOverrides",
    "retentionDays",
    "approvalPolicy",
    "createdAt",
    "updatedAt",
}


@pytest.fixture
def agent_id(api):
    """A registered agent."""
    return api.post("/agents", {"name": "x"}).json()["agent"]["_id"]


@pytest.mark.parametrize("prefix", ["/monitor", "/agent-monitoring"])
def test_ping_route(api, client, prefix):
    """2xx with the key, 401 without (SDK-011)."""
    response = api.get(f"{prefix}/patterns")
    assert (response.status_code, response.json()) == (200, {"patterns": []})
    assert client.get(f"/api/v1{prefix}/patterns").status_code == 401


@pytest.mark.parametrize("prefix", ["/monitor", "/agent-monitoring"])
def test_profile_is_null_until_configured(api, agent_id, prefix):
    """Then sparse PUTs accumulate (MON-070, MON-071)."""
    path = f"{prefix}/profiles/{agent_id}"
    assert api.get(path).json() == {"profile": None}
    created = api.put(path, {"enabled": False}).json()["profile"]
    assert set(created) == KEYS
    assert (created["enabled"], created["retentionDays"], created["channels"]) == (False, 30, [])
    api.put(path, {"sampleRate": 0.5, "channels": ["webhook:https://x.test"], "workspaceId": "w"})
    changed = api.get(path).json()["profile"]
    assert (changed["enabled"], changed["sampleRate"], changed["channels"]) == (False, 0.5, ["webhook:https://x.test"])
    api.put(path, {"thresholdOverrides": {"latencyMs": 15000}, "approvalPolicy": {"tune": "auto"}, "datasetId": "d1"})
    last = api.get(path).json()["profile"]
    assert last["thresholdOverrides"] == {"latencyMs": 15000}
    assert (last["approvalPolicy"], last["datasetId"]) == ({"tune": "auto"}, "d1")
    assert last["_id"] == changed["_id"]


@pytest.mark.parametrize(
    "body",
    [
        {"enabled": "yes"},
        {"enabled": None},
        {"sampleRate": 2},
        {"sampleRate": True},
        {"channels": "x"},
        {"channels": [1]},
        {"retentionDays": 1.5},
        {"coverageMode": 3},
        {"thresholdOverrides": []},
        {"approvalPolicy": "x"},
        [],
    ],
)
def test_bad_values_are_refused(api, agent_id, body):
    """400 naming the key, nothing stored."""
    response = api.put(f"/monitor/profiles/{agent_id}", body)
    assert response.status_code == 400
    if isinstance(body, dict):
        assert response.json()["error"].startswith(next(iter(body)))
    assert api.get(f"/monitor/profiles/{agent_id}").json() == {"profile": None}


def test_unknown_and_foreign_agents(api, other_api, agent_id):
    """The same 404 for both."""
    for client, path in ((api, "/monitor/profiles/nope"), (other_api, f"/monitor/profiles/{agent_id}")):
        for response in (client.get(path), client.put(path, {"enabled": False})):
            assert (response.status_code, response.json()) == (404, {"error": "Agent not found"})
    assert api.get(f"/monitor/profiles/{agent_id}").json() == {"profile": None}


def test_changes_are_audited_by_field_name(api, agent_id):
    """Names only, never values."""
    api.put(f"/monitor/profiles/{agent_id}", {"channels": ["webhook:https://secret.test"]})
    event = AuditEvent.objects.get(action="monitorProfile.update")
    assert (event.target_id, event.summary) == (agent_id, "channels")
