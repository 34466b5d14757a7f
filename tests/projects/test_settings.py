"""Project settings and the key's regeneration (PROJ-013 … 019)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from apps.projects.models import AuditEvent
from config.home import read_config

PREFIXES = ["/api/v1/agent-monitoring/settings", "/api/v1/monitor/settings"]
URL = PREFIXES[0]
DEFAULTS = {
    "enabledBuiltinPatterns": [],
    "topicsEnabled": False,
    "topicsSampleRate": 1.0,
    "retentionDays": 0,
    "coverageMode": "all",
    "sampleRate": 1.0,
    "latencyThresholdMs": None,
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_settings_of_a_fresh_project(api, project, prefix):
    answer = api.get(prefix)
    assert answer.status_code == 200
    nothing = {"configured": False, "masked": None}
    assert answer.json() == {
        "apiKey": project.key,
        "monitoringDefaults": DEFAULTS,
        "llm": {"openai": nothing, "anthropic": nothing, "gemini": nothing, "openrouter": nothing},
        "platformModel": "gpt-5.6-luna",
    }


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_sparse_body_changes_only_what_it_names(api, prefix):
    answer = api.put(f"{prefix}/monitoring-defaults", {"retentionDays": 7, "workspaceId": "w", "other": 1})
    assert answer.status_code == 200
    assert answer.json() == {"monitoringDefaults": DEFAULTS | {"retentionDays": 7}}
    assert api.get(prefix).json()["monitoringDefaults"]["retentionDays"] == 7


def test_every_key_goes_there_and_back(api):
    wanted = {
        "enabledBuiltinPatterns": ["pii-in-response", "hallucination"],
        "topicsEnabled": True,
        "topicsSampleRate": 0.25,
        "retentionDays": -1,
        "coverageMode": "sampled",
        "sampleRate": 0.1,
        "latencyThresholdMs": 1500.0,
    }
    assert api.put(f"{URL}/monitoring-defaults", wanted).json()["monitoringDefaults"] == wanted
    assert api.put(f"{URL}/monitoring-defaults", {}).json()["monitoringDefaults"] == wanted
    cleared = api.put(f"{URL}/monitoring-defaults", {"enabledBuiltinPatterns": [], "latencyThresholdMs": None}).json()
    assert cleared["monitoringDefaults"] == wanted | {"enabledBuiltinPatterns": [], "latencyThresholdMs": None}


@pytest.mark.parametrize(
    "body",
    [
        {"enabledBuiltinPatterns": "pii-in-response"},
        {"enabledBuiltinPatterns": [1, 2]},
        {"enabledBuiltinPatterns": ["a\x00b"]},
        {"topicsEnabled": "yes"},
        {"topicsEnabled": 1},
        {"topicsSampleRate": 1.5},
        {"topicsSampleRate": -0.1},
        {"topicsSampleRate": True},
        {"retentionDays": "7"},
        {"retentionDays": 7.5},
        {"retentionDays": 10**12},
        {"coverageMode": None},
        {"sampleRate": None},
        {"latencyThresholdMs": "fast"},
        {"latencyThresholdMs": -1},
    ],
)
def test_wrongly_typed_values_are_ignored_and_the_rest_applies(api, body):
    answer = api.put(f"{URL}/monitoring-defaults", body | {"coverageMode": body.get("coverageMode", "x") or 5})
    assert answer.status_code == 200
    got = answer.json()["monitoringDefaults"]
    for name in body:
        assert got[name] == DEFAULTS[name]


def test_settings_of_projects_are_apart(api):
    other = APIClient(headers={"x-api-key": api.post("/api/v1/projects", {"name": "B"}).json()["project"]["apiKey"]})
    other.default_format = "json"
    other.put(f"{URL}/monitoring-defaults", {"retentionDays": 3})
    assert api.get(URL).json()["monitoringDefaults"]["retentionDays"] == 0
    assert other.get(URL).json()["monitoringDefaults"]["retentionDays"] == 3


@pytest.mark.parametrize("prefix", PREFIXES)
def test_regenerating_kills_the_old_key_at_once(api, project, prefix):
    answer = api.post(f"{prefix}/api-key/regenerate")
    assert answer.status_code == 200
    fresh = answer.json()["apiKey"]
    assert fresh != project.key
    assert api.get(URL).status_code == 401
    assert APIClient(headers={"x-api-key": fresh}).get(URL).json()["apiKey"] == fresh


def test_the_default_projects_file_follows(api, settings, tmp_path, django_capture_on_commit_callbacks):
    settings.AGENTX_HOME = tmp_path
    with django_capture_on_commit_callbacks(execute=True):
        fresh = api.post(f"{URL}/api-key/regenerate").json()["apiKey"]
    assert read_config(Path(tmp_path))["apiKey"] == fresh
    assert APIClient().get("/api/v1/auth/config").json()["apiKey"] == fresh


def test_another_projects_regeneration_leaves_the_file(api, settings, tmp_path, django_capture_on_commit_callbacks):
    settings.AGENTX_HOME = tmp_path
    key = api.post("/api/v1/projects", {"name": "B"}).json()["project"]["apiKey"]
    with django_capture_on_commit_callbacks(execute=True):
        APIClient(headers={"x-api-key": key}).post(f"{URL}/api-key/regenerate")
    assert read_config(Path(tmp_path)) == {}


def test_settings_changes_are_audited_by_name_only(api, project):
    api.put(f"{URL}/monitoring-defaults", {"coverageMode": "very-secret-mode", "retentionDays": 7})
    event = AuditEvent.objects.get(action="settings.update")
    assert event.summary == "retentionDays, coverageMode"
    assert (event.actor_type, event.project_uid, event.status) == ("apiKey", project.uid, "ok")
    fresh = api.post(f"{URL}/api-key/regenerate").json()["apiKey"]
    assert AuditEvent.objects.filter(action="apikey.regenerate").count() == 1
    rows = json.dumps(list(AuditEvent.objects.values()), default=str)
    for secret in ("very-secret-mode", project.key, fresh, fresh[-8:]):
        assert secret not in rows


def test_a_change_of_nothing_adds_no_row(api):
    api.put(f"{URL}/monitoring-defaults", {"unknown": 1, "topicsEnabled": "wrong"})
    assert not AuditEvent.objects.exists()
