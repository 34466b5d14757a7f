"""GET …/models/unpriced over recorded spans (PROJ-042)."""

from __future__ import annotations

from apps.core.times import now_ms
from apps.llm.services.catalog import seed_catalog
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn

URL = "/api/v1/agent-monitoring/portability/models"
DAY_MS = 24 * 3600 * 1000


def span(model: str | None, *, days_ago: float = 0, tokens: int | None = 10) -> SpanIn:
    start = (now_ms() - int(days_ago * DAY_MS)) * 1_000_000
    return SpanIn(name="call", model=model, start_ns=start, input_tokens=tokens, output_tokens=tokens)


def test_only_recent_token_bearing_models_without_a_price_most_used_first(api, project):
    seed_catalog()
    store_spans(
        project,
        [
            span("mystery-small"),
            span("mystery-big", tokens=5_000, days_ago=29),
            span("mystery-old", days_ago=31),
            span("mystery-without-tokens", tokens=None),
            span("mystery-of-zero-tokens", tokens=0),
            span("gpt-4o-mini"),
            span("gpt-4o-mini-2024-07-18"),
            span(None),
        ],
    )
    assert api.get(f"{URL}/unpriced").json() == {"models": ["mystery-big", "mystery-small"]}


def test_another_projects_models_are_not_listed(api, project):
    from apps.projects.services.projects import create_project

    other, _ = create_project(name="B")
    store_spans(other, [span("mystery-b")])
    assert api.get(f"{URL}/unpriced").json() == {"models": []}


def test_a_trace_costs_what_its_time_says(api, project):
    """An edit changes what comes after it; a price given from an earlier date on also counts for late arrivals."""
    body = {
        "id": "m",
        "provider": "openai",
        "label": "M",
        "pricePerMInputTokens": 1.0,
        "pricePerMOutputTokens": 0,
    }
    api.post(URL, body)

    def cost_now(days_ago: float = 0) -> float:
        (stored,) = store_spans(project, [span("m", tokens=1_000_000, days_ago=days_ago)])
        return api.get(f"/api/v1/ingest/traces/{stored.id}").json()["estimatedCostUSD"]

    assert cost_now() == 1.0
    api.put(f"{URL}/m", {"pricePerMInputTokens": 3.0})
    assert cost_now() == 3.0
    assert cost_now(days_ago=2) == 1.0
