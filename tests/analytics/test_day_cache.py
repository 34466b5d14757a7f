"""Kept answers about whole days: used while a day stands still, dropped as soon as anything in it moves."""

from __future__ import annotations

import random

import pytest

from apps.analytics import metrics, selectors
from apps.analytics.day_cache import DayCache
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
    metrics._CACHE.clear()


def _fresh(project, window, filters):
    """The answer without the cache, and the cache as it was."""
    kept = dict(metrics._CACHE._entries)
    metrics._CACHE.clear()
    answer = selectors.metrics(project, window, filters)
    metrics._CACHE._entries.update(kept)
    return answer


@pytest.mark.parametrize("seed", range(3))
def test_answers_with_and_without_the_cache_are_the_same_while_spans_come_in(project, seed):
    rng, now = random.Random(seed), now_ms()
    asked = [
        (window, filters)
        for window in ("1d", "7d", "30d")
        for filters in (MetricFilters(), MetricFilters(agent="support"), MetricFilters(tool="search_kb"))
    ]
    for number in range(25):
        spans = _trace(rng, number, now)
        cut = rng.randrange(len(spans) + 1)
        for part in (spans[:cut], spans[cut:]):
            store_spans(project, part)
            window, filters = rng.choice(asked)
            assert selectors.metrics(project, window, filters) == _fresh(project, window, filters)


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


def test_days_that_stand_still_are_not_read_again(project, django_assert_num_queries):
    store_spans(project, [SpanIn(name="support", output=b'"x"', latency_ms=5)])
    first = selectors.metrics(project, "7d")
    with django_assert_num_queries(5):
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
