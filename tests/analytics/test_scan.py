"""Aggregates against the rows themselves: every number, under every filter, equals a scan of the spans."""

from __future__ import annotations

import math
import random
from collections import Counter

import msgspec
import pytest

from apps.analytics import selectors
from apps.analytics.day_cache import CACHE
from apps.analytics.filters import MetricFilters
from apps.core.times import now_ms
from apps.core.windows import DAY, parse_free, parse_named
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Agent, OperationalEvent, Outcome, Span, Traffic

AGENTS = ("support", "billing", "research")
FRAMEWORKS = ("langchain", "crewai", None)
MODELS = ("gpt-4o-mini", "in-house", None)
TOOLS = ("search_kb", "issue_refund")


def _trace(rng: random.Random, number: int, now: int) -> list[SpanIn]:
    created = now - rng.randrange(0, 20 * DAY) * 1000
    framework = rng.choice(FRAMEWORKS)
    calls = [{"name": rng.choice(TOOLS), "success": rng.random() > 0.2} for _ in range(rng.randrange(3))]
    common = {"framework": framework, "start_ns": created * 1_000_000}
    source = "eval-run" if rng.random() < 0.15 else None
    root = SpanIn(
        name=rng.choice(AGENTS),
        span_id=f"r{number}",
        model=rng.choice(MODELS),
        source=source,
        monitor=False if rng.random() < 0.15 else None,
        error="boom" if rng.random() < 0.2 else None,
        output=b'"fine"' if rng.random() < 0.9 else None,
        latency_ms=rng.choice([None, rng.uniform(1, 9000)]),
        input_tokens=rng.randrange(500),
        tool_calls=msgspec.json.encode(calls) if calls else None,
        **common,
    )
    children = [
        SpanIn(
            name=f"step {step}",
            span_id=f"r{number}.{step}",
            parent_span_id=f"r{number}",
            kind=rng.choice(["llm", "tool", "retrieval"]),
            model=rng.choice(MODELS),
            source=source,
            error="late" if rng.random() < 0.1 else None,
            input_tokens=rng.randrange(500),
            output_tokens=rng.randrange(100),
            **common,
        )
        for step in range(rng.randrange(4))
    ]
    spans = [root, *children]
    rng.shuffle(spans)
    return spans


@pytest.fixture(params=range(4))
def traffic(request, project):
    rng = random.Random(request.param)
    now = now_ms()
    for number in range(60):
        store_spans(project, _trace(rng, number, now))
    return project


def _in(window, span):
    return window.start_ms <= span.created_ms < window.end_ms


def _own(recorded, below):
    return max(0, (recorded or 0) - below)


def _p(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.floor(q * len(ordered)))] if ordered else None


@pytest.mark.parametrize("window", ["1d", "7d", "30d"])
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"agent": "support"},
        {"model": "in-house"},
        {"framework": "crewai"},
        {"framework": "other"},
        {"status": "error"},
        {"status": "ok", "agent": "billing", "model": "gpt-4o-mini"},
    ],
    ids=str,
)
def test_metrics_equal_a_scan(traffic, window, filters):
    window = parse_free(window)
    names = dict(Agent.objects.values_list("id", "name"))
    wanted = MetricFilters(**filters)
    spans = [
        span
        for span in Span.objects.filter(project=traffic).exclude(traffic=Traffic.EVAL_RUN)
        if _in(window, span)
        and (wanted.agent is None or names.get(span.agent_id) == wanted.agent)
        and (wanted.model is None or span.model == wanted.model)
        and (wanted.framework is None or (span.framework or "other") == wanted.framework)
        and (wanted.status is None or span.status == wanted.status_value)
    ]
    roots = [span for span in spans if span.parent_span_id is None]
    answer = selectors.metrics(traffic, window, wanted)
    totals = answer["totals"]
    assert totals["spans"] == len(spans)
    assert totals["traces"] == len(roots)
    assert totals["spansByKind"] == dict(Counter(span.kind for span in spans))
    assert answer["frameworks"] == dict(Counter(span.framework or "other" for span in roots))
    assert totals["inputTokens"] == sum(_own(span.input_tokens, span.child_input_tokens) for span in spans)
    assert totals["outputTokens"] == sum(_own(span.output_tokens, span.child_output_tokens) for span in spans)
    assert totals["toolCalls"] == sum(span.tool_count for span in roots)
    assert totals["toolFailures"] == sum(span.tool_failures for span in roots)
    latencies = [span.latency_ms for span in roots if span.latency_ms is not None]
    assert totals["latency"] == {"p50": _p(latencies, 0.5), "p95": _p(latencies, 0.95), "p99": _p(latencies, 0.99)}
    for name in ("inputTokens", "outputTokens", "toolCalls", "toolFailures"):
        assert sum(bucket[name] for bucket in answer["buckets"]) == totals[name]
    assert sum(sum(bucket["byFramework"].values()) for bucket in answer["buckets"]) == len(roots)


@pytest.mark.parametrize("window", ["24h", "7d", "30d"])
def test_kpis_and_trend_equal_a_scan(traffic, window):
    window = parse_named(window)

    def outcomes(window):
        return Counter(
            span.outcome
            for span in Span.objects.filter(project=traffic, parent_span_id=None, traffic=Traffic.PRODUCTION)
            if _in(window, span)
        )

    now, before = outcomes(window), outcomes(window.previous())
    answer = selectors.kpis(traffic, window)
    failing = now.total() - now[Outcome.HEALTHY]
    assert answer["totalRuns"] == now.total()
    assert answer["breakdown"]["healthyRuns"] == now[Outcome.HEALTHY]
    assert answer["breakdown"]["failingRuns"] == failing
    if now.total() and before.total():
        expected = now[Outcome.TOOL_FAILURE] / now.total() - before[Outcome.TOOL_FAILURE] / before.total()
        assert answer["deltas"]["toolFailureRate"] == pytest.approx(expected)
    points = selectors.trend(traffic, window)["points"]
    assert sum(point["failing"] for point in points) == failing
    top = selectors.top_failing(traffic, window)
    assert sum(item["count"] for item in top["patterns"]) == failing
    assert sum(item["count"] for item in top["agents"]) == failing
    assert OperationalEvent.objects.filter(project=traffic).exists()


@pytest.mark.parametrize(
    ("function", "arguments", "queries"),
    [
        ("kpis", {}, 5),
        ("trend", {}, 3),
        ("metrics", {}, 7),
        ("metrics", {"filters": MetricFilters(agent="support", tool="search_kb")}, 8),
        ("cost_trend", {}, 4),
        ("model_comparison", {}, 5),
        ("top_failing", {}, 4),
        ("scorer_activity", {}, 0),
    ],
    ids=str,
)
def test_the_number_of_queries_has_a_bound_whatever_the_data(
    traffic, function, arguments, queries, django_assert_max_num_queries
):
    selectors.kpis(traffic)  # whatever was pending is folded now
    for window in ("24h", "7d", "30d"):
        CACHE.clear()
        with django_assert_max_num_queries(queries):
            getattr(selectors, function)(traffic, window, **arguments)
