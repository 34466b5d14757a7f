"""The demo project: lively, believable, the same for the same seed, and never twice."""

from __future__ import annotations

import time
from collections import Counter

import msgspec
import pytest
from django.core.management import call_command

from apps.analytics import selectors
from apps.analytics.filters import MetricFilters
from apps.core.times import now_ms
from apps.core.windows import DAY
from apps.llm.services.catalog import seed_catalog
from apps.operations.demo import background, build_demo, demo_progress, demo_project, load_demo, start_demo
from apps.operations.demo.history import INCIDENT_DAYS_BEFORE, month
from apps.operations.demo.scripts import cast
from apps.tracing.models import Agent, Session, Span, Traffic
from apps.tracing.rollups.fold import settle

END = 1_773_750_000_000


@pytest.fixture(scope="module")
def traces():
    return list(month(seed=1, end_ms=END))


@pytest.fixture
def demo(project):
    seed_catalog()
    project = build_demo(seed=1).project
    settle()
    return project


def test_the_same_seed_and_moment_give_the_same_spans(traces):
    again = list(month(seed=1, end_ms=END))
    assert [trace.spans for trace in again] == [trace.spans for trace in traces]
    assert [trace.spans for trace in month(seed=2, end_ms=END)] != [trace.spans for trace in traces]


def test_a_month_of_a_few_thousand_spans_with_ids_of_their_own(traces):
    spans = [span for trace in traces for span in trace.spans]
    assert 4000 <= len(spans) <= 8000
    assert len({span.span_id for span in spans}) == len(spans)
    starts = [trace.start_ms for trace in traces]
    assert min(starts) > END - 31 * DAY * 1000
    assert END - 10 * 60_000 < max(starts) <= END
    by_hour = Counter(start // 3_600_000 % 24 for start in starts)
    assert sum(by_hour[hour] for hour in (9, 10, 14, 15)) > 5 * sum(by_hour[hour] for hour in (1, 2, 3, 23))


def test_trees_are_whole_and_children_lie_inside_their_root(traces):
    for trace in traces:
        root, *children = trace.spans
        assert root.parent_span_id is None
        ids = {span.span_id for span in trace.spans}
        end = root.start_ns + root.latency_ms * 1e6
        for child in children:
            assert child.parent_span_id in ids
            assert child.session_id == root.session_id
            assert root.start_ns <= child.start_ns
            assert child.start_ns + child.latency_ms * 1e6 <= end + 2e6


def test_no_text_is_left_with_a_placeholder(traces):
    names = [f"${name}".encode() for name in ("customer", "order", "company", "amount", "topic", "weekday", "service")]
    for trace in traces:
        for span in trace.spans:
            for payload in (span.input, span.output, span.tool_calls):
                assert payload is None or not any(name in payload for name in names), payload


def test_the_cast_covers_frameworks_kinds_and_mishaps(traces):
    spans = [span for trace in traces for span in trace.spans]
    frameworks = {span.framework for span in spans}
    assert {"langchain", "openai-agents", "crewai", "google-adk", "llamaindex", "moveworks", None} <= frameworks
    kinds = {span.kind for span in spans}
    assert {"agent", "llm", "tool", "retrieval", "memory", "guardrail", "embedding", "reranker"} <= kinds
    assert len({span.model for span in spans if span.model}) >= 8
    assert any(span.metadata and b"timeToFirstTokenMs" in span.metadata for span in spans)
    roots = [trace.spans[0] for trace in traces]
    assert any(root.error for root in roots)
    assert any(root.output == b'""' for root in roots)
    assert any(root.source == "eval-run" for root in roots)
    latencies = sorted(root.latency_ms for root in roots)
    assert latencies[-1] > 10 * latencies[len(latencies) // 2]
    turns = Counter(root.session_id for root in roots)
    assert max(turns.values()) >= 3
    imported = [root for root in roots if root.framework == "moveworks"]
    assert imported
    assert all(b"success" not in (root.tool_calls or b"") and root.input_tokens is None for root in imported)


def test_an_incident_lies_two_days_back(traces):
    day = END // 1000 // DAY - INCIDENT_DAYS_BEFORE
    failed = Counter(
        trace.start_ms // 1000 // DAY
        for trace in traces
        if any(
            call["name"] == "issue_refund" and call.get("success") is False
            for call in msgspec.json.decode(trace.spans[0].tool_calls or b"[]")
        )
    )
    assert failed[day] >= 20
    assert all(count < 5 for other, count in failed.items() if other != day)


def test_a_built_demo_fills_every_page(demo):
    assert demo.name == "Demo"
    assert Agent.objects.filter(project=demo).count() == len(cast())
    assert Session.objects.filter(project=demo, turn_count__gt=1).count() > 50
    assert Span.objects.filter(project=demo, traffic=Traffic.EVAL_RUN).exists()
    kpis = selectors.kpis(demo, "30d")
    assert kpis["totalRuns"] > 800
    assert 0.85 < kpis["healthRate"] < 0.99
    day = selectors.kpis(demo, "24h")
    assert day["totalRuns"] > 0
    assert "issue_refund" in [row["tool"] for row in selectors.top_failing(demo, "7d")["tools"]]
    cost = selectors.cost_trend(demo, "30d")
    assert cost["totalCost"] > 1
    assert cost["totalsByModel"]["eval runs"] > 0
    compared = selectors.model_comparison(demo, "30d")["models"]
    assert len(compared) >= 10
    assert all(row["totalCostUSD"] for row in compared)
    grid = selectors.metrics(demo, "30d", MetricFilters())
    assert len(grid["frameworks"]) >= 8
    assert grid["frameworks"]["other"] > 0


def test_a_second_load_adds_nothing_even_later(demo):
    before = Span.objects.filter(project=demo).count()
    again = build_demo(seed=1, end_ms=now_ms() + 5 * DAY * 1000)
    assert (again.project.pk, again.stored) == (demo.pk, 0)
    assert Span.objects.filter(project=demo).count() == before


def test_a_project_of_ones_own_can_be_filled(project):
    result = build_demo(project=project, seed=3)
    assert result.stored == result.spans > 4000
    assert demo_project() is None


def test_a_deleted_demo_project_is_made_anew(demo):
    demo.deleting = True
    demo.save()
    assert demo_project() is None
    assert build_demo(seed=1).project.pk != demo.pk


def test_the_command_loads_and_tells_its_progress(project, capsys):
    assert demo_progress().state == "idle"
    call_command("load_demo")
    progress = demo_progress()
    assert (progress.state, progress.percent, progress.project_id) == ("done", 100, demo_project().uid)
    assert f"{progress.spans} spans" in capsys.readouterr().out
    assert not progress.running


def test_live_traces_trickle_in_until_the_time_is_over(demo, monkeypatch):
    monkeypatch.setattr(background, "_LIVE_PAUSE_SECONDS", (0.01, 0.02))
    before = Span.objects.filter(project=demo, parent_span_id=None).count()
    stored = background.trickle(demo, seconds=0.3)
    assert stored > 0
    assert Span.objects.filter(project=demo, parent_span_id=None).count() == before + stored


def test_a_load_that_is_under_way_is_left_alone(project):
    running = background._note(background.DemoProgress(state="running", percent=40))
    assert start_demo() == running
    assert demo_project() is None


@pytest.mark.django_db(transaction=True)
def test_a_click_loads_in_the_background():
    from apps.projects.services.projects import ensure_default_project

    ensure_default_project()
    assert start_demo().state == "running"
    end = time.monotonic() + 60
    while demo_progress().state == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert demo_progress().state == "done"
    assert Span.objects.filter(project=demo_project()).count() > 4000
    assert load_demo().state == "done"
