"""Provider keys and the platform model (PROJ-020, 021, 026)."""

from __future__ import annotations

import json

import pytest

from apps.llm.services.platform_model import platform_model
from apps.llm.services.provider_keys import key_source, provider_key
from apps.projects.models import AuditEvent

URL = "/api/v1/agent-monitoring/settings"
SAVED = "sk-saved-0123456789abcdefghij"
ENVIRONMENT = "sk-environment-0123456789abcd"


def test_save_read_back_masked_and_clear(api, caplog):
    answer = api.put(f"{URL}/llm-keys", {"openaiApiKey": f"  {SAVED} "})
    assert answer.status_code == 200
    nothing = {"configured": False, "masked": None}
    saved = {"configured": True, "masked": "sk-s…ghij"}
    assert answer.json() == {"llm": {"openai": saved, "anthropic": nothing, "gemini": nothing, "openrouter": nothing}}
    assert provider_key("openai") == SAVED
    read = api.get(URL)
    assert read.json()["llm"]["openai"] == saved
    # Absent is left, null and empty clear.
    api.put(f"{URL}/llm-keys", {"anthropicApiKey": "sk-ant-0123456789"})
    assert provider_key("openai") == SAVED
    cleared = api.put(f"{URL}/llm-keys", {"openaiApiKey": None, "anthropicApiKey": ""})
    assert cleared.json()["llm"]["openai"] == cleared.json()["llm"]["anthropic"] == nothing
    assert provider_key("openai") is None
    audit = json.dumps(list(AuditEvent.objects.values()), default=str)
    for text in (answer.content.decode(), read.content.decode(), audit, caplog.text):
        assert SAVED not in text
    assert [event.summary for event in AuditEvent.objects.order_by("id")] == [
        "openaiApiKey",
        "anthropicApiKey",
        "openaiApiKey, anthropicApiKey",
    ]


def test_a_saved_key_wins_over_the_environment_and_acts_at_once(api, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", ENVIRONMENT)
    assert provider_key("openai") == ENVIRONMENT
    assert key_source("openai") == "environment"
    assert api.get(URL).json()["llm"]["openai"] == {"configured": True, "masked": "sk-e…abcd"}
    api.put(f"{URL}/llm-keys", {"openaiApiKey": SAVED})
    assert provider_key("openai") == SAVED
    assert key_source("openai") == "saved"
    api.put(f"{URL}/llm-keys", {"openaiApiKey": None})
    assert provider_key("openai") == ENVIRONMENT


@pytest.mark.parametrize(
    "value", [5, True, ["sk-x"], {"key": "sk-x"}, "sk-one sk-two", "sk-one\nsk-two", "sk-ünïcode", "x" * 1001]
)
def test_a_key_saved_wrongly_is_named_and_never_repeated(api, value):
    answer = api.put(f"{URL}/llm-keys", {"openaiApiKey": value, "geminiApiKey": "fine-0123456789"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("openaiApiKey must be ")
    assert "sk-" not in answer.content.decode()
    # All or nothing.
    assert provider_key("gemini") is None


def test_a_changed_instance_secret_is_no_crash(api, settings, monkeypatch):
    api.put(f"{URL}/llm-keys", {"openaiApiKey": SAVED})
    settings.SECRET_KEY = "another-secret-" * 4
    assert provider_key("openai") is None
    monkeypatch.setenv("OPENAI_API_KEY", ENVIRONMENT)
    assert provider_key("openai") == ENVIRONMENT


@pytest.mark.parametrize("prefix", ["/api/v1/agent-monitoring", "/api/v1/monitor"])
def test_the_platform_model(api, prefix):
    answer = api.put(f"{prefix}/settings/platform-model", {"platformModel": " anthropic/claude-sonnet-4.5 "})
    assert (answer.status_code, answer.json()) == (200, {"platformModel": "anthropic/claude-sonnet-4.5"})
    assert platform_model() == "anthropic/claude-sonnet-4.5"
    assert api.get(URL).json()["platformModel"] == "anthropic/claude-sonnet-4.5"
    assert AuditEvent.objects.get().summary == "platformModel"


@pytest.mark.parametrize("body", [{}, {"platformModel": ""}, {"platformModel": 5}])
def test_the_platform_model_is_named(api, body):
    answer = api.put(f"{URL}/platform-model", body)
    assert (answer.status_code, answer.json()) == (400, {"error": "platformModel is required"})
