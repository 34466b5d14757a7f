"""Tokens count once, whoever repeats them and whoever stands in between without counts."""

from __future__ import annotations

import itertools
import random

import pytest
from django.utils import timezone

from apps.analytics.selectors import cost_trend, metrics
from apps.llm.models import CatalogModel, ModelPrice
from apps.llm.pricing import forget
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Grain, Rollup, Session, Span
from apps.tracing.rollups.fold import settle
from apps.tracing.selectors import trace_tree
from apps.tracing.store.browse import tree_totals
from apps.tracing.trajectory import token_totals

pytestmark = pytest.mark.django_db

MODEL = "priced"


@pytest.fixture
def priced(project):
    model = CatalogModel.objects.create(model_id=MODEL, provider="openai", label=MODEL)
    ModelPrice.objects.create(
        model=model, valid_from=timezone.now().replace(year=2000), input_per_m=1e6, output_per_m=2e6
    )
    forget()
    yield project
    forget()


def counted(name, parent=None, tokens=(100, 20), **fields):
    return SpanIn(
        name=name,
        span_id=name,
        parent_span_id=parent,
        session_id="s",
        model=MODEL,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        **fields,
    )


def countless(name, parent=None):
    return SpanIn(name=name, span_id=name, parent_span_id=parent, session_id="s", kind="chain")


def totals(project):
    """(input, output, cost) as the aggregates, the session, the trace list and the trace page have them."""
    settle()
    rows = Rollup.objects.filter(project=project, grain=Grain.ALL_TIME)
    sums = [sum(getattr(row, name) for row in rows) for name in ("input_tokens", "output_tokens", "cost_usd")]
    session = Session.objects.get(session_id="s")
    assert [session.input_tokens, session.output_tokens] == sums[:2]
    assert (session.cost_usd or 0) == pytest.approx(sums[2])
    roots = list(Span.objects.filter(project=project, parent_span_id=None))
    for_list = tree_totals(project.pk, roots)
    assert sum(item.input_tokens or 0 for item in for_list.values()) == sums[0]
    assert sum(item.cost_usd or 0 for item in for_list.values()) == pytest.approx(sums[2])
    trees = [token_totals(trace_tree(project, root.id, payloads=False)) for root in roots]
    assert [sum(tree[n] or 0 for tree in trees) for n in (0, 1)] == sums[:2]
    assert sum(row.own_cost_usd or 0 for row in Span.objects.filter(project=project)) == pytest.approx(sums[2])
    return tuple(sums)


TREES = {
    "wrappers repeat": [counted("a"), counted("t", "a"), counted("l", "t")],
    "nested calls": [counted("l"), counted("m", "l")],
    "root alone": [counted("a")],
    "graph nodes between": [counted("a"), countless("n", "a"), countless("o", "n"), counted("l", "o")],
    "two nodes": [
        counted("a"),
        countless("n", "a"),
        counted("l", "n", (60, 12)),
        countless("o", "a"),
        counted("m", "o", (40, 8)),
    ],
    "no counts above": [countless("a"), countless("n", "a"), counted("l", "n")],
    "one count missing": [
        counted("a"),
        SpanIn(name="n", span_id="n", parent_span_id="a", session_id="s", model=MODEL, input_tokens=100),
        counted("l", "n"),
    ],
}


@pytest.mark.parametrize("shape", TREES)
def test_each_shape_counts_once_in_every_order_of_arrival(priced, shape):
    from apps.tracing.store.changes import delete_where

    orders = list(itertools.permutations(TREES[shape]))
    for order in random.Random(1).sample(orders, min(len(orders), 24)):
        for size in (1, 2, len(order)):
            for start in range(0, len(order), size):
                store_spans(priced, list(order[start : start + size]))
            assert totals(priced) == (100, 20, pytest.approx(140))
            while delete_where(project_id=priced.pk, where="TRUE", params=()):
                pass
            settle()


def test_dashboards_say_the_same(priced):
    store_spans(priced, TREES["graph nodes between"])
    assert cost_trend(priced, "24h")["totalCost"] == pytest.approx(140)
    found = metrics(priced, "24h")["totals"]
    assert (found["inputTokens"], found["outputTokens"]) == (100, 20)


def test_a_lost_root_changes_nothing_below_it(priced):
    store_spans(priced, [counted("l", "n"), countless("n", "t"), counted("t", "lost")])
    settle()
    assert Session.objects.get().input_tokens == 100


def test_a_late_call_deep_below_nodes_without_counts(priced):
    depth = 60
    store_spans(
        priced, [counted("a", tokens=(500, 0)), *[countless(f"n{n}", f"n{n - 1}" if n else "a") for n in range(depth)]]
    )
    for n in range(5):
        store_spans(priced, [counted(f"l{n}", f"n{depth - 1}", (100, 0))])
        assert totals(priced)[0] == 500
    store_spans(priced, [counted("more", "n0", (100, 0))])
    assert totals(priced)[0] == 600
    assert Span.objects.get(span_id="n30").child_input_tokens == 500


def test_a_cycle_of_nodes_without_counts_ends(project):
    store_spans(project, [countless("x", "y"), counted("l", "x", (5, 1))])
    store_spans(project, [countless("y", "x"), counted("m", "y", (7, 1))])
    store_spans(project, [counted("k", "x", (3, 1))])
    settle()
    assert Session.objects.get().input_tokens == 15
