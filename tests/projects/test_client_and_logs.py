"""The published client against a running server, and that the server's log never holds a key it was given."""

from __future__ import annotations

import httpx
import pytest
from agentx import AgentX
from agentx.evaluations.client import AgentXEvaluationsError
from agentx.projects import AgentXProjectsError

from apps.core.logs import mask_secrets
from tests.support.server import running_server

OPENAI = "sk-live-openai-0123456789abcdef"
ANTHROPIC = "sk-ant-api03-0123456789abcdef"
GEMINI = "AIzaSyD-0123456789abcdefghijklmnopq"
MODEL = "gsk_endpoint0123456789abcdef"
FROM_ENVIRONMENT = "sk-or-v1-0123456789abcdef0123"


@pytest.fixture(scope="module")
def server():
    env = {
        "AGENTX_LOG_LEVEL": "debug",
        "OPENROUTER_API_KEY": FROM_ENVIRONMENT,
        "AGENTX_ADMIN_TOKEN": "operator-token-0123456789",
        "AGENTX_RATE_LIMIT_CREDENTIAL": "1000",
    }
    with running_server(env=env) as running:
        yield running


def client(server, key: str | None = None) -> AgentX:
    return AgentX(api_key=key or server.key, base_url=server.api_url)


def test_projects_through_the_client(server):
    default = client(server)
    assert default.ping()
    listed = default.projects.list()
    assert [(row["isDefault"], row["apiKey"]) for row in listed] == [(True, server.key)]
    made = default.projects.create("x")
    inside = client(server, made["apiKey"])
    assert inside.ping()
    assert {row["_id"] for row in inside.projects.list()} == {listed[0]["_id"], made["_id"]}
    with pytest.raises(AgentXProjectsError, match="name is required"):
        default.projects.create("  ")
    with pytest.raises(AgentXProjectsError, match="The default project cannot be deleted"):
        default.projects.delete(listed[0]["_id"])
    with pytest.raises(AgentXProjectsError, match="Project not found"):
        default.projects.delete("nope")
    default.projects.delete(made["_id"])
    with pytest.raises(AgentXProjectsError, match="Invalid or missing API key"):
        inside.projects.list()


def test_settings_and_models_through_the_client(server):
    agentx = client(server)
    assert agentx.monitor.set_topics(True, sample_rate=0.25)["monitoringDefaults"]["topicsSampleRate"] == 0.25
    assert agentx.monitor.set_topics(False)["monitoringDefaults"]["topicsEnabled"] is False
    models = agentx.evaluations.list_models()
    assert models[0].name == "gpt-5.6-luna"
    assert {model.provider for model in agentx.evaluations.list_models(provider="Anthropic")} == {"anthropic"}


def test_a_key_that_was_replaced_is_dead_at_once_everywhere(server):
    made = client(server).projects.create("regenerated")
    headers = {"x-api-key": made["apiKey"]}
    with httpx.Client(base_url=server.api_url, timeout=10) as http:
        assert http.post("/ingest/traces", json={"name": "t"}, headers=headers).status_code == 200
        fresh = http.post("/agent-monitoring/settings/api-key/regenerate", headers=headers).json()["apiKey"]
        for method, path, body in (
            ("POST", "/ingest/traces", {"name": "t"}),
            ("GET", "/agent-monitoring/settings", None),
            ("POST", "/otel/v1/traces", {"resourceSpans": []}),
        ):
            answer = http.request(method, path, json=body, headers=headers)
            assert (answer.status_code, answer.json()) == (401, {"error": "Invalid or missing API key"}), path
        assert http.post("/ingest/traces", json={"name": "t"}, headers={"x-api-key": fresh}).status_code == 200


def test_limits_are_announced_on_every_surface(server):
    with httpx.Client(base_url=server.base_url, timeout=10) as http:
        assert http.get("/api/v1/auth/config").headers["ratelimit-policy"] == "1000;w=60"
        assert http.get("/health").headers["ratelimit-policy"] == "6000;w=60"
        assert "ratelimit" not in http.get("/metrics").headers


def test_no_line_of_the_log_holds_a_key(server):
    headers = {"x-api-key": server.key}
    settings = "/agent-monitoring/settings"
    models = "/agent-monitoring/portability/models"
    with httpx.Client(base_url=server.api_url, headers=headers, timeout=15) as http:
        other = http.post("/projects", json={"name": "logs"}).json()["project"]
        bodies = [
            http.put(f"{settings}/llm-keys", json={"openaiApiKey": OPENAI, "geminiApiKey": GEMINI}),
            http.put(f"{settings}/llm-keys", json={"anthropicApiKey": [ANTHROPIC]}),
            http.put(f"{settings}/llm-keys", content=f'{{"anthropicApiKey": "{ANTHROPIC}'),
            http.put(f"{settings}/llm-keys", params={"anthropicApiKey": ANTHROPIC}, json={}),
            http.post(models, json={"id": "m", "apiKey": MODEL}),
            http.post(
                f"{models}/test-connection", json={"baseUrl": "http://127.0.0.1:9/v1", "modelId": "m", "apiKey": MODEL}
            ),
            http.post("/nowhere", json={"key": OPENAI}),
            http.get("/projects", headers={"x-api-key": other["apiKey"] + "0"}),
            http.get("/admin/audit", headers={"x-admin-token": "operator-token-wrong"}),
            http.get("/admin/audit", headers={"x-admin-token": "operator-token-0123456789"}),
            http.delete(f"/projects/{other['_id']}"),
        ]
        assert http.get(settings).json()["llm"]["openrouter"] == {"configured": True, "masked": "sk-o…0123"}
        for answer in bodies:
            assert answer.status_code < 500, answer.text
            for secret in (OPENAI, ANTHROPIC, GEMINI, MODEL, FROM_ENVIRONMENT, other["apiKey"]):
                assert secret not in answer.text
    banner = f"Default project API key: {server.key}"
    lines = [line for line in server.output.splitlines() if line.strip() != banner]
    log = "\n".join(lines)
    secrets = (
        OPENAI,
        ANTHROPIC,
        GEMINI,
        MODEL,
        FROM_ENVIRONMENT,
        server.key,
        other["apiKey"],
        "operator-token-0123456789",
    )
    for secret in secrets:
        assert secret not in log
    assert mask_secrets(f"key {server.key}") == "key agtx_local_***"


def test_an_unknown_list_of_models_would_be_said_by_the_client(server):
    """What the client makes of the 404 that a server without this route answers."""
    with pytest.raises(AgentXEvaluationsError):
        AgentX(api_key=server.key, base_url=f"{server.api_url}/nowhere").evaluations.list_models()
