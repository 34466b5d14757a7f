"""The analytics endpoints as a client sees them: keys, nulls, populations, both prefixes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from apps.core.times import now_ms, parse_iso_ms
from apps.core.windows import DAY
from apps.projects.services.projects import create_project
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Agent, OperationalEvent, Traffic
from tests.analytics.rollups import add, add_tool

PREFIXES = ("monitor", "agent-monitoring")
ROUTES = ("kpis", "metrics", "cost-trend", "model-comparison", "trend", "top-failing", "scorer-activity")


@pytest.fixture
def get(client, project):
    def fetch(route: str, expect: int = 200, prefix: str = "monitor", **query: str):
        response = client.get(f"/api/v1/{prefix}/{route}", query, headers={"x-api-key": project.key})
        assert response.status_code == expect, response.content
        return response.json()

    return fetch


@pytest.mark.parametrize("route", ROUTES)
def test_both_prefixes_answer_the_same(get, route):
    assert get(route, prefix=PREFIXES[0]) == get(route, prefix=PREFIXES[1])


@pytest.mark.parametrize("route", ROUTES)
def test_a_key_is_needed(client, db, route):
    response = client.get(f"/api/v1/monitor/{route}")
    assert (response.status_code, response.json()) == (401, {"error": "Invalid or missing API key"})


@pytest.mark.parametrize("route", [route for route in ROUTES if route != "metrics"])
@pytest.mark.parametrize(("asked", "echoed"), [("24h", "24h"), ("30d", "30d"), ("2d", "7d"), ("", "7d")])
def test_windows_are_echoed(get, route, asked, echoed):
    assert get(route, window=asked)["window"] == echoed


@pytest.mark.parametrize(("asked", "echoed"), [("1h", "1h"), ("90d", "90d"), ("91d", "1d"), ("", "1d"), ("x", "1d")])
def test_metrics_has_windows_of_its_own(get, asked, echoed):
    assert get("metrics", window=asked)["window"] == echoed


def test_kpis_of_an_empty_project(get):
    rates = {"healthRate": None, "failureRate": None, "downvoteRate": None, "toolFailureRate": None}
    assert get("kpis") == {
        "window": "7d",
        "totalRuns": 0,
        **rates,
        "p95LatencyMs": None,
        "deltas": rates,
        "breakdown": {
            "totalRuns": 0,
            "healthyRuns": 0,
            "failingRuns": 0,
            "operationalFailingRuns": 0,
            "scorerFailingRuns": 0,
            "healthRate": None,
        },
    }


def test_kpis_count_checked_production_roots_and_compare_with_the_window_before(get, project):
    now = now_ms()
    add(project, now, spans=8, healthy=6, failing=2, tool_failing=1)
    add(project, now, spans=50, traffic=Traffic.EVAL_RUN, failing=50)
    add(project, now, spans=50, traffic=Traffic.UNMONITORED)
    add(project, now, spans=50, is_root=False)
    add(project, now - 10 * DAY * 1000, spans=4, healthy=2, failing=2, tool_failing=2)
    answer = get("kpis")
    assert answer["totalRuns"] == 8
    assert answer["healthRate"] == 6 / 8
    assert answer["failureRate"] == 2 / 8
    assert answer["toolFailureRate"] == 1 / 8
    assert answer["deltas"] == {
        "healthRate": 6 / 8 - 2 / 4,
        "failureRate": 2 / 8 - 2 / 4,
        "downvoteRate": None,
        "toolFailureRate": 1 / 8 - 2 / 4,
    }
    assert answer["breakdown"] == {
        "totalRuns": 8,
        "healthyRuns": 6,
        "failingRuns": 2,
        "operationalFailingRuns": 2,
        "scorerFailingRuns": 0,
        "healthRate": 6 / 8,
    }


def test_p95_of_many_roots_comes_from_the_histograms_within_one_percent(get, project):
    now = now_ms()
    latencies = tuple(float(10 + i) for i in range(4000))
    add(project, now, spans=4000, healthy=4000, latencies=latencies)
    exact = sorted(latencies)[int(0.95 * 4000)]
    assert get("kpis")["p95LatencyMs"] == pytest.approx(exact, rel=0.0101)
    assert get("metrics")["totals"]["latency"]["p50"] == pytest.approx(sorted(latencies)[2000], rel=0.0101)


def test_trend_has_a_point_for_every_day_and_sums_to_the_kpis(get, project):
    now = now_ms()
    for age in range(3):
        add(project, now - age * DAY * 1000, spans=3, healthy=2, failing=1)
    points = get("trend")["points"]
    assert len(points) == 8
    assert set(points[0]) == {"label", "ts", "healthy", "failing", "healthRate", "signals"}
    assert sum(point["healthy"] + point["failing"] for point in points) == get("kpis")["totalRuns"] == 9
    assert points[-1]["healthRate"] == 2 / 3
    assert points[0]["healthRate"] is None


def test_cost_trend_splits_models_and_keeps_evaluation_runs_apart(get, project):
    now = now_ms()
    add(project, now, model="gpt-4o", input_tokens=10, cost_usd=0.5, priced=1)
    add(project, now - DAY * 1000, model="gpt-4o", is_root=False, input_tokens=10, cost_usd=0.25, priced=1)
    add(project, now, model="claude-sonnet-4-5", traffic=Traffic.UNMONITORED, output_tokens=9, cost_usd=2.0, priced=1)
    add(project, now, model="in-house", input_tokens=7)
    add(project, now, model="no-tokens")
    add(project, now, model="gpt-4o", traffic=Traffic.EVAL_RUN, input_tokens=1, cost_usd=0.125, priced=1)
    add_tool(project, now, "search_kb", calls=3)
    answer = get("cost-trend")
    assert answer["totalsByModel"] == {
        "gpt-4o": 0.75,
        "claude-sonnet-4-5": 2.0,
        "in-house": 0.0,
        "eval runs": 0.125,
        "tool calls": 0.0,
    }
    assert answer["models"] == ["claude-sonnet-4-5", "gpt-4o", "eval runs", "in-house", "tool calls"]
    assert answer["totalCost"] == 2.875
    assert answer["totalsByTool"] == {"search_kb": 0.0}
    assert answer["points"][-1]["byModel"] == {"claude-sonnet-4-5": 2.0, "gpt-4o": 0.5, "eval runs": 0.125}
    assert answer["points"][-2]["byModel"] == {"gpt-4o": 0.25}
    assert answer["points"][0]["byModel"] == {}


def test_platforms_beyond_the_top_eight_and_unlabelled_ones_are_other(get, project):
    now = now_ms()
    for number in range(10):
        add(project, now, framework=f"framework-{number}", spans=20 - number)
    add(project, now, spans=3)
    add(project, now, spans=99, framework="framework-9", is_root=False)
    answer = get("metrics")
    assert answer["frameworks"] == {f"framework-{n}": 20 - n for n in range(8)} | {"other": 12 + 11 + 3}
    assert answer["buckets"][-1]["byFramework"] == answer["frameworks"]
    assert sum(answer["frameworks"].values()) == answer["totals"]["traces"]
    assert get("metrics", framework="other")["frameworks"] == {"other": 3}
    assert get("metrics", framework="Framework-9 ")["totals"]["traces"] == 11


def test_metrics_filters_scope_every_number(get, project):
    now = now_ms()
    agent = Agent.objects.create(project=project, name="support")
    twin = Agent.objects.create(project=project, name="support")
    common = {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5, "tool_calls": 2, "tool_failures": 1}
    add(project, now, agent_id=agent.id, framework="langchain", model="gpt-4o", kind="llm", **common)
    add(project, now, agent_id=twin.id, framework="crewai", model="gpt-4o", kind="agent", status=1, **common)
    add(project, now, agent_id=agent.id, kind="retrieval", is_root=False)
    add(project, now, agent_id=agent.id, traffic=Traffic.EVAL_RUN, **common)
    add_tool(project, now, "search_kb", agent_id=agent.id, framework="langchain", calls=2, failures=1, roots=1)
    everything = get("metrics")
    assert everything["totals"]["spansByKind"] == {"agent": 1, "llm": 1, "retrieval": 1}
    assert (everything["totals"]["inputTokens"], everything["totals"]["costUsd"]) == (20, 1.0)
    assert (everything["totals"]["toolCalls"], everything["totals"]["toolFailures"]) == (4, 2)
    assert everything["facets"] == {
        "agents": ["support"],
        "models": ["gpt-4o"],
        "tools": ["search_kb"],
        "frameworks": ["crewai", "langchain", "other"],
    }
    assert get("metrics", agent="support")["totals"] == everything["totals"]
    assert get("metrics", agent=agent.id)["totals"]["spansByKind"] == {"llm": 1, "retrieval": 1}
    assert get("metrics", agent="nobody")["totals"]["spans"] == 0
    assert get("metrics", model="gpt-4o")["totals"]["spansByKind"] == {"agent": 1, "llm": 1}
    assert get("metrics", status="error")["totals"]["spansByKind"] == {"agent": 1}
    by_tool = get("metrics", tool="search_kb")
    assert by_tool["totals"]["spansByKind"] == {"tool": 2}
    assert (by_tool["totals"]["toolCalls"], by_tool["totals"]["toolFailures"]) == (2, 1)
    assert by_tool["frameworks"] == {"langchain": 1}


def test_an_unknown_status_is_refused(get):
    assert get("metrics", 400, status="weird") == {"error": 'status must be "ok" or "error"'}


def test_top_failing_lists_agents_tools_and_patterns(get, project):
    agent = Agent.objects.create(project=project, name="billing")
    keys = ["agent-tool-failure:issue_refund"] * 2 + ["agent-trace-error", "empty-agent-response"]
    for number, key in enumerate(keys):
        OperationalEvent.objects.create(
            project=project, trace_id=f"t{number}", agent_id=agent.id, key=key, created_ms=now_ms()
        )
    OperationalEvent.objects.create(project=project, trace_id="old", key=keys[0], created_ms=now_ms() - 8 * DAY * 1000)
    assert get("top-failing") == {
        "window": "7d",
        "agents": [{"agentId": agent.id, "name": "billing", "count": 4}],
        "tools": [{"tool": "issue_refund", "count": 2}],
        "patterns": [
            {"patternKey": "agent-tool-failure:issue_refund", "count": 2},
            {"patternKey": "agent-trace-error", "count": 1},
            {"patternKey": "empty-agent-response", "count": 1},
        ],
    }


def test_scorer_activity_is_empty_until_scorers_exist(get):
    assert get("scorer-activity") == {"window": "7d", "activity": {}}


def test_evaluations_of_an_unknown_trace(get):
    assert get("traces/nope/evaluations", 404) == {"error": "Trace not found"}


def test_p95_of_twenty_roots_is_the_twentieth(get, project):
    latencies = [float(value) for value in range(10, 210, 10)]
    store_spans(project, [SpanIn(name="a", output=b'"x"', latency_ms=value) for value in reversed(latencies)])
    # sorted[min(n - 1, floor(0.95 n))] with n = 20
    assert get("kpis")["p95LatencyMs"] == latencies[19]
    store_spans(project, [SpanIn(name="a", output=b'"x"', latency_ms=5.0)])
    assert get("kpis")["p95LatencyMs"] == latencies[18]


def test_evaluations_of_a_trace_are_empty_until_scorers_exist(get, project):
    stored, child = store_spans(
        project,
        [
            SpanIn(name="a", span_id="r", output=b'"x"'),
            SpanIn(name="b", span_id="c", parent_span_id="r"),
        ],
    )
    assert get(f"traces/{stored.id}/evaluations") == {"evaluations": []}
    assert get(f"traces/{child.id}/evaluations", 404) == {"error": "Trace not found"}


def test_another_projects_numbers_stay_its_own(get, client, project):
    other, key = create_project(name="Other")
    stored = store_spans(other, [SpanIn(name="a", model="m", output=b'"x"', error="boom", latency_ms=3)])[0]
    assert get("kpis")["totalRuns"] == 0
    assert get("top-failing")["patterns"] == []
    assert get("model-comparison")["models"] == []
    assert get("metrics")["facets"]["models"] == []
    get(f"traces/{stored.id}/evaluations", 404)
    theirs = client.get("/api/v1/monitor/kpis", headers={"x-api-key": key}).json()
    assert (theirs["totalRuns"], theirs["failureRate"]) == (1, 1.0)


def test_metrics_has_exactly_these_keys(get, project):
    store_spans(project, [SpanIn(name="a", output=b'"x"')])
    answer = get("metrics")
    assert set(answer) == {"window", "bucketMs", "buckets", "totals", "frameworks", "facets"}
    shared = {"spansByKind", "latency", "inputTokens", "outputTokens", "costUsd", "toolCalls", "toolFailures"}
    assert {frozenset(bucket) for bucket in answer["buckets"]} == {frozenset(shared | {"ts", "label", "byFramework"})}
    assert set(answer["totals"]) == shared | {"traces", "spans"}
    starts = [parse_iso_ms(bucket["ts"]) for bucket in answer["buckets"]]
    assert {later - earlier for earlier, later in pairwise(starts)} == {answer["bucketMs"]}
