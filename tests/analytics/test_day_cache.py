"""Kept answers about whole days: used while a day stands still, dropped as soon as anything in it moves."""

from __future__ import annotations

import random

import pytest

from apps.analytics import kpis, metrics, selectors
from apps.analytics.day_cache import CACHE, DayCache
from apps.analytics.filters import MetricFilters
from apps.core.times import now_ms
from apps.core.windows import DAY
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from tests.analytics.test_scan import _trace


@pytest.fixture(autouse=True)
def _from_aggregates(monkeypatch):
    """Every window counts as too big to be read root by root."""
    monkeypatch.setattr(metrics, "EXACT_ROOTS", 0)
    monkeypatch.setattr(kpis, "EXACT_ROOTS", 0)
    CACHE.clear()


def _fresh(function, *arguments):
    """The answer without the cache, and the cache as it was."""
    kept = dict(CACHE._entries)
    CACHE.clear()
    answer = function(*arguments)
    CACHE._entries.update(kept)
    return answer


@pytest.mark.parametrize("seed", range(3))
def test_answers_with_and_without_the_cache_are_the_same_while_spans_come_in(project, seed):
    rng, now = random.Random(seed), now_ms()
    asked = [
        (selectors.metrics, window, filters)
        for window in ("1d", "7d", "30d")
        for filters in (MetricFilters(), MetricFilters(agent="support"), MetricFilters(tool="search_kb"))
    ]
    others = (
        selectors.kpis,
        selectors.trend,
        selectors.cost_trend,
        selectors.model_comparison,
        selectors.top_failing,
    )
    asked += [(function, window) for window in ("24h", "7d", "30d") for function in others]
    for number in range(25):
        spans = _trace(rng, number, now)
        cut = rng.randrange(len(spans) + 1)
        for part in (spans[:cut], spans[cut:]):
            store_spans(project, part)
            for function, *arguments in rng.sample(asked, 4):
                assert function(project, *arguments) == _fresh(function, project, *arguments)


def test_a_child_adopted_from_another_day_changes_that_day(project):
    late = now_ms() - 2 * DAY * 1000
    store_spans(
        project,
        [SpanIn(name="step", span_id="c", parent_span_id="r", kind="tool", start_ns=(late - DAY * 1000) * 1_000_000)],
    )
    filters = MetricFilters(agent="support")
    assert selectors.metrics(project, "7d", filters)["totals"]["spans"] == 0
    store_spans(project, [SpanIn(name="support", span_id="r", output=b'"x"', start_ns=late * 1_000_000)])
    assert selectors.metrics(project, "7d", filters)["totals"]["spansByKind"] == {"chain": 1, "tool": 1}


def test_a_model_first_seen_in_a_child_of_the_next_day_counts_in_its_roots_day(project):
    yesterday = now_ms() - DAY * 1000
    store_spans(project, [SpanIn(name="support", span_id="r", output=b'"x"', start_ns=yesterday * 1_000_000)])
    assert selectors.model_comparison(project, "7d")["models"] == []
    store_spans(project, [SpanIn(name="step", span_id="c", parent_span_id="r", model="in-house")])
    assert [row["traceCount"] for row in selectors.model_comparison(project, "7d")["models"]] == [1]


def test_days_that_stand_still_are_not_read_again(project, django_assert_num_queries):
    store_spans(project, [SpanIn(name="support", output=b'"x"', latency_ms=5)])
    first = selectors.metrics(project, "7d")
    with django_assert_num_queries(3):  # pending contributions, signatures, names of agents
        assert selectors.metrics(project, "7d") == first


def test_the_cache_forgets_what_was_longest_unused():
    cache: DayCache[str] = DayCache(max_entries=2)
    cache.put("a", (1,), "A")
    cache.put("b", (1,), "B")
    assert cache.get("a", (1,)) == "A"
    cache.put("c", (1,), "C")
    assert cache.get("b", (1,)) is None
    assert cache.get("a", (2,)) is None
    assert cache.get("c", (1,)) == "C"
