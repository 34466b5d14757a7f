"""Every token of a tree counts once, whatever its levels say about those below and in whatever order they come (TRC-123)."""

from __future__ import annotations

import itertools
import random

import pytest
from django.db.models import Sum

from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Grain, Rollup, Span
from apps.tracing.rollups.fold import settle
from apps.tracing.selectors import get_span, trace_tree
from apps.tracing.store.browse import tree_totals
from apps.tracing.store.changes import delete_where
from apps.tracing.trajectory import token_totals

pytestmark = pytest.mark.django_db


def span(name: str, parent: str | None, tokens: int | None) -> SpanIn:
    return SpanIn(
        name=name,
        span_id=name,
        parent_span_id=parent,
        session_id="s",
        model="gpt-4o-mini" if tokens else None,
        input_tokens=tokens,
        output_tokens=None if tokens is None else tokens // 10,
        start_ns=1_700_000_000_000_000_000,
    )


TREES = {
    "every level repeats": ([("a", None, 100), ("t", "a", 100), ("l", "t", 100)], 100),
    "only the root": ([("a", None, 100), ("t", "a", None), ("l", "t", None)], 100),
    "nodes between say nothing": (
        [("a", None, 240), ("n1", "a", None), ("n2", "a", None), ("l1", "n1", 100), ("l2", "n2", 140)],
        240,
    ),
    "two levels between say nothing": ([("a", None, 90), ("g", "a", None), ("n", "g", None), ("l", "n", 90)], 90),
    "the root says nothing": ([("a", None, None), ("n", "a", None), ("l1", "n", 100), ("l2", "n", 140)], 240),
    "a level says less than is below": ([("a", None, 50), ("n", "a", 10), ("l1", "n", 100), ("l2", "a", 140)], 240),
    "a level says more": ([("a", None, 500), ("n", "a", None), ("l", "n", 100)], 500),
}


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("size", [1, 2, 9], ids=["one by one", "two at once", "together"])
def test_a_token_counts_once(project, tree, size):
    spans, expected = TREES[tree]
    orders = list(itertools.permutations(spans))
    for order in random.Random(7).sample(orders, min(len(orders), 12)):
        for start in range(0, len(order), size):
            store_spans(project, [span(*item) for item in order[start : start + size]])
        assert _sums(project) == (expected, expected // 10), order
        root = get_span(project, Span.objects.get(span_id="a").id)
        assert token_totals(trace_tree(project, root.id, payloads=False)) == (expected, expected // 10)
        totals = tree_totals(project.pk, [root])[root.id]
        assert (totals.input_tokens, totals.output_tokens) == (expected, expected // 10)
        delete_where(project_id=project.pk, where="TRUE", params=())


def _sums(project) -> tuple[int, int]:
    settle()
    rows = Rollup.objects.filter(project=project, grain=Grain.ALL_TIME)
    sums = rows.aggregate(i=Sum("input_tokens"), o=Sum("output_tokens"))
    return sums["i"] or 0, sums["o"] or 0


def test_a_late_call_below_two_thousand_levels_without_counts(project):
    """What rises goes all the way up, level by level or together."""
    chain = [span("a", None, 70), *(span(f"n{n}", f"n{n - 1}" if n else "a", None) for n in range(2000))]
    store_spans(project, chain)
    for name, tokens in (("late", 30), ("later", 40)):
        store_spans(project, [span(name, "n1999", tokens)])
    assert Span.objects.get(span_id="a").child_input_tokens == 70
    assert set(Span.objects.filter(name__startswith="n").values_list("child_input_tokens", flat=True)) == {70}
    assert _sums(project) == (70, 7)
