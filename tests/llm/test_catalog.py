"""The model catalog (PROJ-030 … 049)."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.core.times import datetime_to_iso, now_ms
from apps.llm.models import CatalogModel, ModelPrice
from apps.llm.pricing import price_of
from apps.llm.selectors import default_judge_model
from apps.llm.services.catalog import seed_catalog
from apps.projects.models import AuditEvent

URL = "/api/v1/agent-monitoring/portability/models"
KEYS = {
    "id",
    "provider",
    "label",
    "pricePerMInputTokens",
    "pricePerMOutputTokens",
    "pricePerMCacheReadTokens",
    "pricePerMCacheWriteTokens",
    "isDefault",
    "baseUrl",
    "apiKeyMasked",
}
BODY = {
    "id": "my-model",
    "provider": "openai",
    "label": "My model",
    "pricePerMInputTokens": 2,
    "pricePerMOutputTokens": 8.5,
}
CUSTOM = BODY | {"id": "local/llama-3", "provider": "custom", "baseUrl": "http://127.0.0.1:11434/v1"}
SECRET = "sk-very-secret-0123456789abcdef"


@pytest.fixture
def seeded(project):
    seed_catalog()


def ids(api) -> list[str]:
    return [model["id"] for model in api.get(URL).json()["models"]]


def one(api, model_id: str) -> dict:
    return next(model for model in api.get(URL).json()["models"] if model["id"] == model_id)


def test_a_fresh_catalog(api, seeded):
    models = api.get(URL).json()["models"]
    assert all(set(model) == KEYS for model in models)
    assert models[0] == {
        "id": "gpt-5.6-luna",
        "provider": "openai",
        "label": "GPT-5.6 Luna",
        "pricePerMInputTokens": 1.25,
        "pricePerMOutputTokens": 10.0,
        "pricePerMCacheReadTokens": None,
        "pricePerMCacheWriteTokens": None,
        "isDefault": True,
        "baseUrl": None,
        "apiKeyMasked": None,
    }
    rest = [model["id"] for model in models[1:]]
    assert rest == sorted(rest)
    assert {"gpt-4o-mini", "gemini-2.5-pro", "gemini-2.5-flash", "claude-haiku-4-5"} <= set(rest)
    opus = one(api, "claude-opus-4-7")
    assert (opus["label"], opus["pricePerMInputTokens"], opus["pricePerMOutputTokens"]) == ("Claude Opus 4.7", 15, 75)
    assert (opus["pricePerMCacheReadTokens"], opus["pricePerMCacheWriteTokens"]) == (1.5, 18.75)


def test_both_prefixes_answer_and_both_need_a_key(api, seeded):
    alias = "/api/v1/monitor/portability/models"
    assert api.get(alias).json() == api.get(URL).json()
    for path in (URL, alias, f"{URL}/unpriced", "/api/v1/custom-agent-evaluations/models"):
        answer = APIClient().get(path)
        assert (answer.status_code, answer.json()) == (401, {"error": "Invalid or missing API key"})


def test_the_list_costs_the_same_for_any_number(api, seeded, django_assert_num_queries):
    api.get(URL)
    with django_assert_num_queries(2):
        api.get(URL)
    with django_assert_num_queries(2):
        api.get("/api/v1/custom-agent-evaluations/models")


def test_a_new_model_is_listed_and_prices_at_once(api):
    assert price_of("my-model", now_ms()) is None
    answer = api.post(URL, BODY)
    assert answer.status_code == 201
    assert answer.json() == {
        "model": {
            "id": "my-model",
            "provider": "openai",
            "label": "My model",
            "pricePerMInputTokens": 2.0,
            "pricePerMOutputTokens": 8.5,
            "pricePerMCacheReadTokens": None,
            "pricePerMCacheWriteTokens": None,
            "isDefault": False,
            "baseUrl": None,
            "apiKeyMasked": None,
        }
    }
    assert one(api, "my-model") == answer.json()["model"]
    # Also what ran before the model was known.
    assert price_of("my-model", 1_000).output == 8.5


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"id": None}, "id is required"),
        ({"id": " "}, "id is required"),
        ({"id": 5}, "id is required"),
        ({"id": "a\nb"}, "id must not contain control characters"),
        ({"id": "x" * 201}, "id must be at most 200 characters"),
        ({"id": "unpriced"}, "id is not a valid model id"),
        ({"id": "test-connection"}, "id is not a valid model id"),
        ({"provider": None}, "provider must be one of openai, anthropic, gemini, custom"),
        ({"provider": "mistral"}, "provider must be one of openai, anthropic, gemini, custom"),
        ({"provider": ["openai"]}, "provider must be one of openai, anthropic, gemini, custom"),
        ({"label": ""}, "label is required"),
        ({"pricePerMInputTokens": None}, "pricePerMInputTokens must be a number of 0 or more (USD per million tokens)"),
        ({"pricePerMInputTokens": -1}, "pricePerMInputTokens must be a number of 0 or more (USD per million tokens)"),
        (
            {"pricePerMOutputTokens": "8"},
            "pricePerMOutputTokens must be a number of 0 or more (USD per million tokens)",
        ),
        (
            {"pricePerMOutputTokens": True},
            "pricePerMOutputTokens must be a number of 0 or more (USD per million tokens)",
        ),
        (
            {"pricePerMCacheReadTokens": "x"},
            "pricePerMCacheReadTokens must be a number of 0 or more (USD per million tokens)",
        ),
        ({"isDefault": "yes"}, "isDefault must be true or false"),
        ({"provider": "custom"}, "baseUrl is required for a custom model"),
        ({"provider": "custom", "baseUrl": ""}, "baseUrl is required for a custom model"),
        (
            {"provider": "custom", "baseUrl": "file:///etc/passwd"},
            "baseUrl is not usable: The URL must start with http:// or https://",
        ),
        (
            {"provider": "custom", "baseUrl": "http://user:pw@host/v1"},
            "baseUrl is not usable: The URL must not contain a user name or password",
        ),
        ({"apiKey": 5}, "apiKey must be a string or null"),
        ({"apiKey": "a b"}, "apiKey must be one line of at most 1000 plain characters without spaces"),
        ({"effectiveFrom": "soon"}, "effectiveFrom must be an ISO 8601 date"),
        ({"effectiveFrom": 5}, "effectiveFrom must be an ISO 8601 date"),
    ],
)
def test_each_bad_field_is_named(api, change, error):
    answer = api.post(URL, BODY | change)
    assert (answer.status_code, answer.json()) == (400, {"error": error})
    assert ids(api) == []


@pytest.mark.parametrize("missing", ["id", "provider", "label", "pricePerMInputTokens", "pricePerMOutputTokens"])
def test_each_field_that_is_required(api, missing):
    answer = api.post(URL, {name: value for name, value in BODY.items() if name != missing})
    assert answer.status_code == 400
    assert missing in answer.json()["error"]


def test_the_same_id_twice_is_409(api):
    api.post(URL, BODY)
    answer = api.post(URL, BODY)
    assert (answer.status_code, answer.json()) == (409, {"error": "Model my-model already exists"})


def test_ids_with_slashes(api):
    assert api.post(URL, CUSTOM).status_code == 201
    path = f"{URL}/local/llama-3"
    assert api.put(path, {"label": "Llama"}).json()["model"]["label"] == "Llama"
    assert api.put(f"{URL}/local%2Fllama-3", {"label": "Llama 3"}).json()["model"]["label"] == "Llama 3"
    answer = api.delete(path)
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert ids(api) == []


@pytest.mark.parametrize("model_id", ["nope", "no/such/model", "a%00b"])
def test_unknown_ids_are_404(api, model_id):
    for answer in (api.put(f"{URL}/{model_id}", {"label": "x"}), api.delete(f"{URL}/{model_id}")):
        assert (answer.status_code, answer.json()) == (404, {"error": "Model not found"})


def test_an_id_stays_what_it_is(api):
    api.post(URL, BODY)
    assert api.put(f"{URL}/my-model", {"id": "my-model", "label": "L"}).status_code == 200
    answer = api.put(f"{URL}/my-model", {"id": "other"})
    assert (answer.status_code, answer.json()) == (400, {"error": "id cannot be changed; add a new model instead"})


def test_an_edit_holds_from_now_and_history_keeps_its_price(api):
    api.post(URL, BODY)
    before = now_ms() - 1000
    answer = api.put(f"{URL}/my-model", {"pricePerMInputTokens": 3})
    assert answer.json()["model"]["pricePerMInputTokens"] == 3.0
    assert answer.json()["model"]["pricePerMOutputTokens"] == 8.5
    assert price_of("my-model", before).input == 2.0
    assert price_of("my-model", now_ms() + 1).input == 3.0


def test_an_edit_may_say_from_when(api):
    api.post(URL, BODY)
    month_ago = timezone.now() - timedelta(days=30)
    api.put(f"{URL}/my-model", {"pricePerMInputTokens": 3, "effectiveFrom": datetime_to_iso(month_ago)})
    day = 24 * 3600 * 1000
    assert price_of("my-model", now_ms() - 31 * day).input == 2.0
    assert price_of("my-model", now_ms() - 29 * day).input == 3.0
    assert one(api, "my-model")["pricePerMInputTokens"] == 3.0


def test_a_price_of_tomorrow_is_not_todays(api):
    api.post(URL, BODY)
    tomorrow = timezone.now() + timedelta(days=1)
    answer = api.put(f"{URL}/my-model", {"pricePerMInputTokens": 3, "effectiveFrom": datetime_to_iso(tomorrow)})
    assert answer.json()["model"]["pricePerMInputTokens"] == 2.0
    assert price_of("my-model", now_ms() + 2 * 24 * 3600 * 1000).input == 3.0


def test_the_same_price_again_adds_no_history(api):
    api.post(URL, BODY)
    api.put(f"{URL}/my-model", BODY)
    api.put(f"{URL}/my-model", BODY | {"label": "Renamed"})
    assert ModelPrice.objects.count() == 1


def test_cache_prices_are_set_and_cleared(api):
    api.post(URL, BODY | {"pricePerMCacheReadTokens": 0.2, "pricePerMCacheWriteTokens": 2.5})
    assert one(api, "my-model")["pricePerMCacheReadTokens"] == 0.2
    cleared = api.put(f"{URL}/my-model", {"pricePerMCacheReadTokens": None}).json()["model"]
    assert cleared["pricePerMCacheReadTokens"] is None
    assert cleared["pricePerMCacheWriteTokens"] == 2.5
    assert price_of("my-model", now_ms() + 1).cache_read == 2.0


def test_one_default_at_most(api, seeded):
    api.post(URL, BODY | {"isDefault": True})
    assert ids(api)[0] == "my-model"
    assert [model["id"] for model in api.get(URL).json()["models"] if model["isDefault"]] == ["my-model"]
    api.put(f"{URL}/gpt-4o-mini", {"isDefault": True})
    assert ids(api)[0] == "gpt-4o-mini"
    assert not one(api, "my-model")["isDefault"]
    assert default_judge_model() == "gpt-4o-mini"
    api.delete(f"{URL}/gpt-4o-mini")
    assert not any(model["isDefault"] for model in api.get(URL).json()["models"])
    assert default_judge_model() == "gpt-5.6-luna"


def test_a_models_key_is_only_ever_masked(api, caplog):
    made = api.post(URL, CUSTOM | {"apiKey": SECRET})
    assert made.json()["model"]["apiKeyMasked"] == "sk-v…cdef"
    answers = [made, api.get(URL)]
    kept = api.put(f"{URL}/local/llama-3", {"pricePerMInputTokens": 9})
    assert kept.json()["model"]["apiKeyMasked"] == "sk-v…cdef"
    answers += [kept, api.post(URL, CUSTOM | {"apiKey": SECRET}), api.post(URL, {"apiKey": SECRET + " x", **BODY})]
    audit = json.dumps(list(AuditEvent.objects.values()), default=str)
    stored = json.dumps(list(CatalogModel.objects.values()), default=str)
    for text in (*(answer.content.decode() for answer in answers), audit, stored, caplog.text):
        assert SECRET not in text
    assert api.put(f"{URL}/local/llama-3", {"apiKey": ""}).json()["model"]["apiKeyMasked"] is None


def test_changes_are_audited_by_name(api):
    api.post(URL, BODY)
    api.put(f"{URL}/my-model", {"pricePerMInputTokens": 3, "label": "Zebra"})
    api.delete(f"{URL}/my-model")
    rows = AuditEvent.objects.order_by("id").values_list("action", "target_id", "summary")
    assert list(rows) == [
        (
            "model.create",
            "my-model",
            "id, provider, label, pricePerMInputTokens, pricePerMOutputTokens, pricePerMCacheReadTokens, "
            "pricePerMCacheWriteTokens",
        ),
        ("model.update", "my-model", "label, pricePerMInputTokens"),
        ("model.delete", "my-model", ""),
    ]


def test_seeds_come_once_and_staples_always(api, seeded):
    api.put(f"{URL}/claude-opus-4-7", {"pricePerMInputTokens": 1})
    api.put(f"{URL}/gemini-2.5-pro", {"pricePerMInputTokens": 99})
    for model_id in ("gpt-4o-mini", "gpt-5", "gpt-5.6-luna"):
        api.delete(f"{URL}/{model_id}")
    assert seed_catalog() == 1
    assert seed_catalog() == 0
    after = ids(api)
    assert "gpt-4o-mini" in after
    assert "gpt-5" not in after
    assert "gpt-5.6-luna" not in after
    assert one(api, "claude-opus-4-7")["pricePerMInputTokens"] == 1
    assert one(api, "gemini-2.5-pro")["pricePerMInputTokens"] == 99
    assert not any(model["isDefault"] for model in api.get(URL).json()["models"])


def test_seeding_leaves_a_row_of_the_same_name_alone(api, project):
    api.post(URL, BODY | {"id": "gpt-4o-mini", "pricePerMInputTokens": 77})
    seed_catalog()
    assert one(api, "gpt-4o-mini")["pricePerMInputTokens"] == 77


def test_the_sdks_list_of_models(api, seeded):
    url = "/api/v1/custom-agent-evaluations/models"
    models = api.get(url).json()["models"]
    assert models[0] == {
        "name": "gpt-5.6-luna",
        "display": "GPT-5.6 Luna",
        "provider": "openai",
        "contextWindow": None,
        "maxOutputTokens": None,
        "inputCost": 1.25,
        "outputCost": 10.0,
        "knowledgeCutOff": None,
        "legacy": None,
    }
    for wanted in ("Anthropic", "anthropic", "ANTHROPIC"):
        assert {model["provider"] for model in api.get(url, {"provider": wanted}).json()["models"]} == {"anthropic"}
    assert {model["provider"] for model in api.get(url, {"provider": "Google"}).json()["models"]} == {"gemini"}
    assert api.get(url, {"provider": "nobody"}).json() == {"models": []}
    from agentx.evaluations.models import ModelInfo

    assert next(ModelInfo(**model).name for model in models) == "gpt-5.6-luna"


def test_unpriced_models_are_those_in_use_without_a_price(api, project, seeded, monkeypatch):
    from apps.llm.services import usage

    asked: list[tuple[int, int]] = []

    def reader(project_pk: int, since_ms: int) -> list[str]:
        asked.append((project_pk, since_ms))
        return ["mystery-2", "gpt-4o-mini", "mystery-1", "mystery-2", ""]

    monkeypatch.setattr(usage, "_readers", [reader])
    assert api.get(f"{URL}/unpriced").json() == {"models": ["mystery-2", "mystery-1"]}
    api.post(URL, BODY | {"id": "mystery-2"})
    assert api.get(f"{URL}/unpriced").json() == {"models": ["mystery-1"]}
    assert asked[0][0] == project.pk
    assert abs(now_ms() - 30 * 24 * 3600 * 1000 - asked[0][1]) < 60_000
