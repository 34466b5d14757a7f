"""The door to models, against providers that speak the real wires on loopback."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from django.test import override_settings
from werkzeug import Request, Response

from apps.llm import gateway
from apps.llm.models import CatalogModel, ModelCall
from apps.llm.services.catalog import seed_catalog
from apps.llm.services.provider_keys import save_provider_keys


class Verdict(msgspec.Struct):
    rating: float
    justification: str


def openai_body(text: str, finish: str = "stop") -> dict:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 10,
            "total_tokens": 1010,
            "prompt_tokens_details": {"cached_tokens": 400},
        },
    }


@pytest.fixture
def openai(httpserver, monkeypatch, project):
    seed_catalog()
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    save_provider_keys(keys={"openai": "sk-test-000000000000"})
    return httpserver


def ask(project, **more):
    return gateway.chat(project=project, prompt="Hello?", purpose="draft", model="gpt-4o-mini", **more)


def test_an_answer_carries_text_tokens_and_cost(openai, project):
    openai.expect_request("/v1/chat/completions", method="POST").respond_with_json(openai_body("Hi."))
    answer = ask(project)
    assert (answer.text, answer.provider, answer.finish_reason) == ("Hi.", "openai", "stop")
    assert (answer.input_tokens, answer.output_tokens, answer.cache_read_tokens) == (1000, 10, 400)
    price = CatalogModel.objects.get(model_id="gpt-4o-mini").prices.get()
    read = price.cache_read_per_m if price.cache_read_per_m is not None else price.input_per_m
    assert answer.cost_usd == pytest.approx(
        (600 * price.input_per_m + 400 * read + 10 * price.output_per_m) / 1_000_000
    )
    row = ModelCall.objects.get()
    assert (row.purpose, row.model, row.failure) == ("draft", "gpt-4o-mini", "")


def test_the_prompt_and_the_key_are_sent_as_the_wire_wants_them(openai, project):
    seen: list[Request] = []

    def handler(request: Request) -> Response:
        seen.append(request)
        return Response(json.dumps(openai_body("ok")), content_type="application/json")

    openai.expect_request("/v1/chat/completions").respond_with_handler(handler)
    ask(project, system="Be brief.")
    body = seen[0].get_json()
    assert body["model"] == "gpt-4o-mini"
    assert [(m["role"], m["content"]) for m in body["messages"]] == [("system", "Be brief."), ("user", "Hello?")]
    assert body["temperature"] == 0
    assert seen[0].headers["Authorization"] == "Bearer sk-test-000000000000"


def test_without_a_key_the_text_names_the_variable(project):
    seed_catalog()
    with pytest.raises(gateway.ModelUnavailable, match="OPENAI_API_KEY") as caught:
        ask(project)
    assert caught.value.kind == "no_key"
    with pytest.raises(gateway.ModelUnavailable, match="OPENROUTER_API_KEY"):
        gateway.chat(project=project, prompt="x", purpose="draft", model="acme/unknown")


def test_a_refused_key_is_told_without_showing_it(openai, project):
    openai.expect_request("/v1/chat/completions").respond_with_json(
        {"error": {"message": "Incorrect API key provided: sk-test-000000000000", "code": "invalid_api_key"}},
        status=401,
    )
    with pytest.raises(gateway.ModelUnavailable, match="OpenAI answered 401") as caught:
        ask(project)
    assert "000000" not in caught.value.reason
    assert caught.value.retryable is False
    assert "401" in ModelCall.objects.get().failure


def test_too_many_requests_are_tried_again_after_the_wait_asked_for(openai, project):
    openai.expect_ordered_request("/v1/chat/completions").respond_with_json(
        {"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "0"}
    )
    openai.expect_ordered_request("/v1/chat/completions").respond_with_json(openai_body("second"))
    assert ask(project).text == "second"
    assert ModelCall.objects.get().attempts == 2


def test_a_server_that_keeps_failing_is_given_up(openai, project):
    openai.expect_request("/v1/chat/completions").respond_with_json({"error": {"message": "boom"}}, status=500)
    with pytest.raises(gateway.ModelUnavailable, match="OpenAI answered 500") as caught:
        ask(project)
    assert caught.value.retryable is True
    assert len(openai.log) == 3


def test_a_stalled_provider_ends_at_the_deadline(openai, project):
    def stall(request: Request) -> Response:
        time.sleep(2)
        return Response("late")

    openai.expect_request("/v1/chat/completions").respond_with_handler(stall)
    with pytest.raises(gateway.ModelUnavailable) as caught:
        ask(project, timeout_s=0.4)
    assert caught.value.kind in {"timeout", "network"}


def test_an_address_that_does_not_answer_is_a_network_failure(openai, project, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(gateway.ModelUnavailable, match="could not be reached") as caught:
        ask(project)
    assert caught.value.kind == "network"


def test_an_answer_that_is_no_json_is_a_provider_failure(openai, project):
    openai.expect_request("/v1/chat/completions").respond_with_data("<html>proxy</html>", content_type="text/html")
    with pytest.raises(gateway.ModelUnavailable):
        ask(project)


def test_a_model_that_refuses_the_temperature_is_asked_without_it(openai, project):
    openai.expect_ordered_request("/v1/chat/completions").respond_with_json(
        {"error": {"message": "Unsupported value: 'temperature'"}}, status=400
    )
    openai.expect_ordered_request("/v1/chat/completions").respond_with_json(openai_body("fine"))
    assert ask(project).text == "fine"
    assert "temperature" not in openai.log[1][0].get_json()


def test_anthropic_and_gemini_speak_their_own_wires(httpserver, monkeypatch, project):
    seed_catalog()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", httpserver.url_for(""))
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", httpserver.url_for(""))
    save_provider_keys(keys={"anthropic": "sk-ant-0000000000", "gemini": "AIza0000000000"})
    httpserver.expect_request("/v1/messages", method="POST").respond_with_json(
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5",
            "content": [{"type": "text", "text": "Claude here."}],
            "stop_reason": "max_tokens",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 5,
                "output_tokens": 3,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 5,
            },
        }
    )
    httpserver.expect_request("/v1beta/models/gemini-2.5-flash:generateContent", method="POST").respond_with_json(
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Gemini here."}]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 4, "totalTokenCount": 11},
            "modelVersion": "gemini-2.5-flash",
        }
    )
    claude = gateway.chat(project=project, prompt="x", purpose="draft", model="claude-haiku-4-5")
    assert (claude.text, claude.finish_reason) == ("Claude here.", "length")
    assert (claude.input_tokens, claude.cache_read_tokens, claude.cache_write_tokens) == (100, 90, 5)
    gemini = gateway.chat(project=project, prompt="x", purpose="draft", model="gemini-2.5-flash")
    assert (gemini.text, gemini.input_tokens, gemini.output_tokens) == ("Gemini here.", 7, 4)


def test_openrouter_and_custom_models_are_asked_at_their_own_address(httpserver, monkeypatch, project):
    monkeypatch.setenv("OPENROUTER_BASE_URL", httpserver.url_for("/router"))
    save_provider_keys(keys={"openrouter": "sk-or-0000000000"})
    httpserver.expect_request("/router/chat/completions").respond_with_json(openai_body("routed"))
    httpserver.expect_request("/own/chat/completions").respond_with_json(openai_body("own"))
    assert gateway.chat(project=project, prompt="x", purpose="draft", model="acme/large").text == "routed"
    CatalogModel.objects.create(
        model_id="acme/large", provider="custom", label="Own", base_url=httpserver.url_for("/own")
    )
    assert gateway.chat(project=project, prompt="x", purpose="draft", model="acme/large").text == "own"


@override_settings(QUOTA_JUDGE_CALLS_PER_DAY=1)
def test_the_judge_quota_refuses_the_next_call_and_leaves_other_purposes_alone(openai, project):
    openai.expect_request("/v1/chat/completions").respond_with_json(openai_body("ok"))
    gateway.chat(project=project, prompt="x", purpose="judge", model="gpt-4o-mini")
    with pytest.raises(gateway.ModelUnavailable, match="AGENTX_QUOTA_JUDGE_CALLS_PER_DAY") as caught:
        gateway.chat(project=project, prompt="x", purpose="judge", model="gpt-4o-mini")
    assert caught.value.kind == "quota"
    assert ask(project).text == "ok"
    assert len(openai.log) == 2


def test_a_structured_answer_is_asked_for_twice_at_most(openai, project):
    openai.expect_ordered_request("/v1/chat/completions").respond_with_json(openai_body("It is good, I think."))
    openai.expect_ordered_request("/v1/chat/completions").respond_with_json(
        openai_body('```json\n{"rating": 7, "justification": "ok"}\n```')
    )
    value, _ = gateway.structured(project=project, prompt="Rate", purpose="draft", model="gpt-4o-mini", schema=Verdict)
    assert value == Verdict(7, "ok")
    assert "no JSON object" in openai.log[1][0].get_json()["messages"][-1]["content"]


def test_two_unusable_answers_keep_the_raw_text(openai, project):
    openai.expect_request("/v1/chat/completions").respond_with_json(openai_body('{"rating": 7, "justi', "length"))
    with pytest.raises(gateway.UnusableAnswer, match="cut off at the token limit") as caught:
        gateway.structured(project=project, prompt="Rate", purpose="draft", model="gpt-4o-mini", schema=Verdict)
    assert caught.value.raw == '{"rating": 7, "justi'
    assert len(openai.log) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no object",
        '{"rating": NaN, "justification": ""}',
        '{"rating": 1, "justification": "a"} {"rating": 9, "justification": "b"}',
        '{"rating": 1}',
        "[" * 5000,
    ],
)
def test_unusable_answers_are_refused(text):
    with pytest.raises(ValueError, match=r"."):
        gateway.decode_answer(text, Verdict)


@pytest.mark.parametrize(
    "text",
    [
        '{"rating": 8, "justification": "x"}',
        'Here it is: {"rating": 8, "justification": "x"} Done.',
        '```json\n{"rating": 8, "justification": "x"}\n```',
        '{"rating": "8", "justification": "x"}',
    ],
)
def test_readable_answers_are_read(text):
    assert gateway.decode_answer(text, Verdict) == Verdict(8, "x")


def test_embeddings_come_from_the_provider_when_a_key_is_set(openai, project):
    openai.expect_request("/v1/embeddings").respond_with_json(
        {
            "object": "list",
            "model": "text-embedding-3-small",
            "data": [{"object": "embedding", "index": i, "embedding": [3.0, 4.0]} for i in range(2)],
            "usage": {"prompt_tokens": 2, "total_tokens": 2},
        }
    )
    result = gateway.embed(project=project, texts=["a", "b"])
    assert result is not None
    assert result.offline is False
    assert result.vectors.tolist() == [pytest.approx([0.6, 0.8])] * 2


def test_an_embedding_failure_is_told(openai, project):
    openai.expect_request("/v1/embeddings").respond_with_json({"error": {"message": "no"}}, status=401)
    with pytest.raises(gateway.ModelUnavailable, match="answered 401"):
        gateway.embed(project=project, texts=["a"])
