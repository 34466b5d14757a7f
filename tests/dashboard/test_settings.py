"""Settings: keys, projects, providers, models and prices, monitoring defaults. No secret stands in any page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.llm.models import CatalogModel
from apps.llm.services.catalog import seed_catalog
from apps.projects.models import AuditEvent, Project
from apps.projects.services.keys import primary_key_of, project_for_key
from apps.projects.services.projects import create_project
from tests.dashboard.seed import store

PAGES = (
    "/settings",
    "/settings/providers",
    "/settings/models",
    "/settings/models/new",
    "/settings/monitoring",
    "/settings/projects",
    "/settings/projects/new",
    "/settings/audit",
    "/settings/about",
)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_and_holds_no_key(client, project, path):
    seed_catalog()
    answer = client.get(path)
    html = answer.content.decode()
    assert answer.status_code == 200
    assert project.key not in html
    assert html.count("<h1") == 1
    assert "Engine " in html and " · UI " in html


# --- API access


def test_the_key_is_read_by_post_alone(client, project):
    assert client.get("/settings/key").status_code == 405
    answer = client.post("/settings/key")
    assert answer.json() == {"key": project.key}
    assert "no-store" in answer.headers["Cache-Control"]


def test_csrf_guards_every_form(project):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    for path in ("/settings/key", "/settings/key/regenerate", "/settings/providers/save", "/settings/projects/new"):
        assert strict.post(path).status_code == 403


def test_regenerate_names_what_breaks_and_asks_for_the_name(client, project):
    store(project, "checkout-agent")
    page = client.get("/settings").content.decode()
    assert "checkout-agent" in page and "Type Default to go on" in page
    refused = client.post("/settings/key/regenerate", {"confirm": "default?"})
    assert refused.status_code == 400 and "This is not the name" in refused.content.decode()
    assert primary_key_of(project) == project.key
    assert client.post("/settings/key/regenerate", {"confirm": "Default"}).status_code == 302
    assert project_for_key(project.key) is None
    assert client.post("/settings/key").json()["key"] == primary_key_of(project) != project.key


# --- Projects


def test_a_new_project_has_its_own_key_and_is_switched_to(client, project):
    answer = client.post("/settings/projects/new", {"name": " Staging "})
    made = Project.objects.get(name="Staging")
    assert answer.status_code == 302 and answer.cookies["agentx_project"].value == made.uid
    key = client.post("/settings/key").json()["key"]
    assert key != project.key and project_for_key(key) == made
    assert "Staging" in client.get("/settings").content.decode()


def test_a_project_without_a_name_is_refused(client, project):
    answer = client.post("/settings/projects/new", {"name": "  "})
    assert answer.status_code == 400 and "Fill this in." in answer.content.decode()


def test_deleting_asks_for_the_name(client, project):
    doomed, key = create_project(name="Old")
    url = f"/settings/projects/{doomed.uid}/delete"
    assert "cannot be undone" in client.get(url).content.decode()
    assert client.post(url, {"confirm": "old"}).status_code == 400
    assert client.post(url, {"confirm": "Old"}).status_code == 302
    assert not Project.objects.filter(pk=doomed.pk).exists() and project_for_key(key) is None


def test_the_default_project_cannot_be_deleted(client, project):
    answer = client.post(f"/settings/projects/{project.uid}/delete", {"confirm": "Default"})
    assert answer.status_code == 400 and "default project cannot be deleted" in answer.content.decode()
    assert client.get("/settings/projects/nothing/delete").status_code == 404


# --- Providers


def test_a_provider_key_is_saved_shown_masked_and_cleared(client, project):
    secret = "sk-test-0123456789abcdef0123456789abcdef"
    assert client.post("/settings/providers/save", {"provider": "openai", "key": secret}).status_code == 302
    html = client.get("/settings/providers").content.decode()
    assert secret not in html and "saved here" in html and "cdef" in html
    assert client.post("/settings/providers/clear", {"provider": "openai"}).status_code == 302
    assert "saved here" not in client.get("/settings/providers").content.decode()
    summary = AuditEvent.objects.filter(target_type="llm-keys").latest("created_at").summary
    assert summary == "openaiApiKey"


@pytest.mark.parametrize("key", ["", "two words", "schlüssel"])
def test_a_bad_provider_key_is_told_and_not_repeated(client, project, key):
    answer = client.post("/settings/providers/save", {"provider": "gemini", "key": key})
    html = answer.content.decode()
    assert answer.status_code == 400 and 'id="id_gemini_key_error"' in html
    if key:
        assert key not in html


def test_an_unknown_provider_is_refused(client, project):
    assert client.post("/settings/providers/save", {"provider": "nobody", "key": "x"}).status_code == 400


def test_the_platform_model_is_changed(client, project):
    seed_catalog()
    assert 'value="gpt-5.6-luna"' in client.get("/settings/providers").content.decode()
    client.post("/settings/platform-model", {"model": "anthropic/claude-sonnet-4.5"})
    settings = client.get("/api/v1/agent-monitoring/settings", headers={"x-api-key": project.key}).json()
    assert settings["platformModel"] == "anthropic/claude-sonnet-4.5"
    assert client.post("/settings/platform-model", {"model": " "}).status_code == 400


def test_the_picker_offers_openrouters_models_only_with_its_key(client, project, httpserver, monkeypatch):
    from apps.llm.services import openrouter

    openrouter.forget()
    monkeypatch.setattr(openrouter, "BASE_URL", httpserver.url_for("/api/v1"))
    answer = {"data": [{"id": "z/last"}, {"id": "anthropic/claude-sonnet-4.5"}, {"id": 7}, "x"]}
    key = "sk-or-0123456789abcdef"
    httpserver.expect_request("/api/v1/models", headers={"Authorization": f"Bearer {key}"}).respond_with_json(answer)
    options = "/settings/providers/openrouter-models"
    assert client.get(options).content.decode().strip() == ""
    assert options not in client.get("/settings/providers").content.decode()
    client.post("/settings/providers/save", {"provider": "openrouter", "key": key})
    assert options in client.get("/settings/providers").content.decode()
    html = client.get(options).content.decode()
    assert html.index("anthropic/claude-sonnet-4.5") < html.index("z/last")
    client.get(options)
    assert len(httpserver.log) == 1
    openrouter.forget()


def test_an_openrouter_that_is_down_leaves_the_picker_without_it(client, project, monkeypatch):
    from apps.llm.services import openrouter

    openrouter.forget()
    monkeypatch.setattr(openrouter, "BASE_URL", "http://127.0.0.1:9/api/v1")
    client.post("/settings/providers/save", {"provider": "openrouter", "key": "sk-or-0123456789abcdef"})
    assert client.get("/settings/providers/openrouter-models").status_code == 200
    openrouter.forget()


# --- Models and prices

MODEL = {
    "model_id": "vendor/llama-3",
    "label": "Llama 3",
    "provider": "openai",
    "input_price": "0.5",
    "output_price": "1.5",
}


def test_a_model_is_added_edited_made_default_and_removed(client, project):
    seed_catalog()
    assert client.post("/settings/models/new", MODEL).status_code == 302
    model = CatalogModel.objects.get(model_id="vendor/llama-3")
    assert model.prices.get().input_per_m == 0.5
    url = "/settings/models/edit/vendor/llama-3"
    assert 'value="0.5"' in client.get(url).content.decode()
    edited = MODEL | {"input_price": "0.75", "cache_read_price": "0.1"}
    assert client.post(url, edited).status_code == 302
    assert [price.input_per_m for price in model.prices.order_by("valid_from")] == [0.5, 0.75]
    assert "Price history" in client.get(url).content.decode()
    client.post("/settings/models/default/vendor/llama-3")
    assert CatalogModel.objects.get(is_default=True) == model
    client.post("/settings/models/delete/vendor/llama-3")
    assert not CatalogModel.objects.filter(model_id="vendor/llama-3").exists()
    assert client.get(url).status_code == 404


def test_a_price_holds_from_its_day(client, project):
    client.post("/settings/models/new", MODEL | {"effective_from": "2026-11-01"})
    price = CatalogModel.objects.get(model_id="vendor/llama-3").prices.get()
    assert price.valid_from == datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model_id": ""}, "Fill this in."),
        ({"model_id": "unpriced"}, "A model cannot be called this."),
        ({"input_price": "-1"}, "A price cannot be below 0."),
        ({"input_price": "cheap"}, "Enter a price in USD"),
        ({"output_price": "1e12"}, "Prices are per million tokens."),
        ({"provider": "custom"}, "A custom endpoint needs its address."),
        ({"provider": "custom", "base_url": "file:///etc/passwd"}, "This address cannot be used"),
        ({"effective_from": "soon"}, "Enter a date"),
        ({"reprice_days": "0"}, "Enter 1 or more."),
    ],
)
def test_what_is_wrong_with_a_model_is_told_at_its_field(client, project, change, told):
    answer = client.post("/settings/models/new", MODEL | change)
    assert answer.status_code == 400
    assert told in answer.content.decode()
    assert not CatalogModel.objects.filter(model_id="vendor/llama-3").exists()


def test_a_taken_id_is_told(client, project):
    client.post("/settings/models/new", MODEL)
    answer = client.post("/settings/models/new", MODEL)
    assert answer.status_code == 400 and "already exists" in answer.content.decode()


def test_a_models_key_is_never_sent_back(client, project):
    secret = "sk-custom-0123456789abcdef"
    custom = MODEL | {"provider": "custom", "base_url": "http://127.0.0.1:9/v1", "api_key": secret}
    assert client.post("/settings/models/new", custom).status_code == 302
    url = "/settings/models/edit/vendor/llama-3"
    html = client.get(url).content.decode()
    assert secret not in html and "Stored:" in html
    client.post(url, custom | {"api_key": ""})
    assert CatalogModel.objects.get(model_id="vendor/llama-3").api_key_masked
    bad = client.post(url, custom | {"input_price": "x"})
    assert bad.status_code == 400 and secret not in bad.content.decode()


def test_a_custom_endpoint_is_tried_before_it_is_saved(client, project, httpserver):
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "llama-3"}]})
    form = {"base_url": httpserver.url_for("/v1"), "model_id": "llama-3"}
    assert "knows this model" in client.post("/settings/models/check", form).content.decode()
    other = client.post("/settings/models/check", form | {"model_id": "gpt-9"}).content.decode()
    assert "does not list this model" in other and "llama-3" in other
    assert "Fill in" in client.post("/settings/models/check", {"base_url": ""}).content.decode()
    refused = client.post("/settings/models/check", form | {"base_url": "file:///etc/passwd"}).content.decode()
    assert "must start with http" in refused


def test_unpriced_models_lead_to_a_filled_form(client, project):
    store(project, model="llama-3.3-70b", input_tokens=10, output_tokens=5)
    html = client.get("/settings/models").content.decode()
    assert "/settings/models/new?id=llama-3.3-70b" in html
    assert 'value="llama-3.3-70b"' in client.get("/settings/models/new?id=llama-3.3-70b").content.decode()


def test_repricing_on_request_prices_what_had_no_price(client, project):
    from apps.core.times import now_ms
    from apps.tracing import selectors as tracing
    from apps.tracing.tasks import reprice_spans

    trace = store(project, model="vendor/llama-3", input_tokens=1_000_000, output_tokens=0, ago_ms=3_600_000)
    client.post("/settings/models/new", MODEL | {"reprice_days": "1"})
    # The page queues this very task; here it runs at once.
    assert reprice_spans(project.pk, now_ms() - 24 * 3_600_000, now_ms()) == 1
    row = tracing.get_span(project, trace)
    assert row is not None and row.cost_usd == pytest.approx(0.5)


# --- Monitoring defaults


def test_monitoring_defaults_are_saved(client, project):
    answer = client.post(
        "/settings/monitoring", {"topics_enabled": "on", "topics_percent": "12.5", "retention_days": "30"}
    )
    assert answer.status_code == 302
    wire = client.get("/api/v1/agent-monitoring/settings", headers={"x-api-key": project.key}).json()
    defaults = wire["monitoringDefaults"]
    assert (defaults["topicsEnabled"], defaults["topicsSampleRate"], defaults["retentionDays"]) == (True, 0.125, 30)
    html = client.get("/settings/monitoring").content.decode()
    assert 'value="12.5"' in html and 'value="30"' in html


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"topics_percent": "140"}, "Enter a number from 0 to 100."),
        ({"topics_percent": ""}, "Fill this in."),
        ({"retention_days": "-3"}, "Enter 0 or more."),
        ({"retention_days": "1.5"}, "Enter a whole number of days."),
    ],
)
def test_wrong_monitoring_values_are_told(client, project, change, told):
    answer = client.post("/settings/monitoring", {"topics_percent": "10", "retention_days": "0"} | change)
    html = answer.content.decode()
    assert answer.status_code == 400 and told in html and 'aria-invalid="true"' in html


def test_the_audit_log_shows_actions_without_values(client, project):
    client.post("/settings/monitoring", {"topics_percent": "10", "retention_days": "7"})
    html = client.get("/settings/audit").content.decode()
    assert "settings.update" in html and "retentionDays" in html
