"""The judge over the real wires of three providers, on their good and bad days: only a certain rating is a rating."""

from __future__ import annotations

import json

import pytest

from apps.llm.services.catalog import seed_catalog
from apps.llm.services.provider_keys import save_provider_keys
from apps.scorers.judging import judge as judging
from apps.scorers.judging.judge import Judged, JudgeMaterial, Skipped
from tests.support.providers import Answer as Says

GOOD = json.dumps({"rating": 8, "justification": "2 of 2 claims supported."})
MATERIAL = JudgeMaterial(input="Refund?", output="Within 30 days.")
MODELS = ["gpt-4o-mini", "claude-haiku-4-5", "gemini-2.5-pro"]
CUT = {"gpt-4o-mini": "length", "claude-haiku-4-5": "max_tokens", "gemini-2.5-pro": "MAX_TOKENS"}
FILTERED = {"gpt-4o-mini": "content_filter", "claude-haiku-4-5": "refusal", "gemini-2.5-pro": "SAFETY"}


@pytest.fixture
def provider(fake_provider, monkeypatch, project):
    seed_catalog()
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake_provider.anthropic_url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake_provider.gemini_url)
    save_provider_keys(keys=dict.fromkeys(("openai", "anthropic", "gemini"), "sk-test-000000000000"))
    return fake_provider


def judge(project, model):
    return judging.judge(project, {"id": "m", "name": "Quality", "judgeModel": model}, MATERIAL)


@pytest.mark.parametrize("model", MODELS)
def test_a_good_answer_is_a_rating(provider, project, model):
    provider.respond = lambda request: Says(GOOD)
    outcome = judge(project, model)
    assert isinstance(outcome, Judged)
    assert (outcome.rating, outcome.model) == (8, model)
    assert outcome.cost_usd > 0


@pytest.mark.parametrize("model", MODELS)
def test_a_cut_answer_is_none_even_when_it_looks_whole(provider, project, model):
    provider.respond = lambda request: Says(GOOD, finish=CUT[model])
    outcome = judge(project, model)
    assert isinstance(outcome, Skipped)
    assert "token limit" in outcome.reason


@pytest.mark.parametrize("model", MODELS)
def test_a_filtered_answer_is_none(provider, project, model):
    provider.respond = lambda request: Says(GOOD, finish=FILTERED[model])
    assert isinstance(judge(project, model), Skipped)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "says",
    [
        Says(""),
        Says.failure(401, "bad key"),
        Says.failure(404, "no such model"),
        Says.failure(429, "slow down", headers={"Retry-After": "3600"}),
        Says.failure(500, "boom"),
        Says(body="<html>502</html>"),
        Says(body="{"),
        Says(body={}),
        Says(body=[]),
        Says(GOOD, close_after=20),
    ],
    ids=["empty", "401", "404", "429", "500", "html", "broken", "object", "list", "closed"],
)
def test_a_bad_day_of_a_provider_is_a_skip_with_a_reason(provider, project, model, says):
    provider.respond = lambda request: says
    outcome = judge(project, model)
    assert isinstance(outcome, Skipped)
    assert len(outcome.reason) > 20
    assert "sk-test" not in outcome.reason + outcome.raw


@pytest.mark.parametrize("model", MODELS)
def test_a_body_that_stalls_ends_at_the_deadline(provider, project, model, monkeypatch):
    monkeypatch.setattr(judging, "JUDGE_TIMEOUT_S", 1.0)
    provider.respond = lambda request: Says(GOOD, stall_after=20)
    outcome = judge(project, model)
    assert isinstance(outcome, Skipped)


def test_a_model_nobody_knows_is_a_skip_that_says_so(provider, project):
    provider.respond = lambda request: Says.failure(404, "The model `gpt-99` does not exist")
    assert "gpt-99" in judge(project, "gpt-99").reason


def test_a_provider_that_recovers_gives_its_rating(provider, project):
    provider.answer(Says.failure(429, "slow down", headers={"Retry-After": "0"}), Says.failure(500), Says(GOOD))
    assert judge(project, "gpt-4o-mini").rating == 8
