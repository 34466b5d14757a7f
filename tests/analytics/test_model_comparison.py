"""Models side by side: distinct traces, whichever spans ran on the model and in whatever order they came."""

from __future__ import annotations

import itertools

import pytest

from apps.analytics import selectors
from apps.llm.services.catalog import seed_catalog
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn


def _compare(project):
    return {row["model"]: row for row in selectors.model_comparison(project)["models"]}


def _tree():
    root = SpanIn(name="agent", span_id="r", output=b'"fine"', latency_ms=900, kind="agent")
    plan = SpanIn(name="plan", span_id="p", parent_span_id="r", kind="chain")
    one = SpanIn(
        name="a", span_id="a", parent_span_id="p", model="gpt-4o-mini", input_tokens=1_000_000, output_tokens=0
    )
    two = SpanIn(name="b", span_id="b", parent_span_id="r", model="gpt-4o-mini")
    other = SpanIn(name="c", span_id="c", parent_span_id="p", model="in-house")
    return [root, plan, one, two, other]


@pytest.mark.parametrize("order", list(itertools.permutations(range(5))), ids=lambda order: "".join(map(str, order)))
def test_a_trace_counts_once_for_each_model_in_any_order_of_arrival(project, order):
    spans = _tree()
    for position in order:
        store_spans(project, [spans[position]])
    rows = _compare(project)
    assert set(rows) == {"gpt-4o-mini", "in-house"}
    assert [rows[model]["traceCount"] for model in ("gpt-4o-mini", "in-house")] == [1, 1]
    assert rows["in-house"]["healthRate"] == 1.0
    assert rows["in-house"]["p95LatencyMs"] == pytest.approx(900, rel=0.0101)


def test_numbers_of_several_traces(project):
    seed_catalog()
    store_spans(project, _tree())
    store_spans(project, [SpanIn(name="flat", model="gpt-4o-mini", error="boom", latency_ms=100)])
    store_spans(project, [SpanIn(name="flat", model="gpt-4o-mini", output=b'"x"', source="eval-run")])
    store_spans(project, [SpanIn(name="flat", model="in-house", output=b'"x"', monitor=False)])
    first, second = selectors.model_comparison(project)["models"]
    assert first == {
        "model": "gpt-4o-mini",
        "traceCount": 2,
        "healthRate": 0.5,
        "failureRate": 0.5,
        "p95LatencyMs": pytest.approx(900, rel=0.0101),
        "totalCostUSD": pytest.approx(0.15),
    }
    assert (second["model"], second["traceCount"]) == ("in-house", 2)
    assert (second["healthRate"], second["failureRate"], second["totalCostUSD"]) == (1.0, 0.0, None)


def test_a_model_of_unmonitored_traces_alone_has_no_rates(project):
    store_spans(project, [SpanIn(name="flat", model="in-house", output=b'"x"', monitor=False)])
    assert _compare(project)["in-house"] == {
        "model": "in-house",
        "traceCount": 1,
        "healthRate": None,
        "failureRate": None,
        "p95LatencyMs": None,
        "totalCostUSD": None,
    }
