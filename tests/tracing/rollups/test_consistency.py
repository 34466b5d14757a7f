"""Aggregates equal a recomputation from the spans, whatever the order of arrival, deletions and re-pricing."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core.times import now_ms
from apps.llm.models import CatalogModel, ModelPrice
from apps.llm.pricing import bump_version, forget
from apps.tracing.histogram import from_json
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Grain, Rollup, Session, Span, ToolRollup
from apps.tracing.rollups.contributions import ROLLUP_KEY, ROLLUP_SUMS, SESSION_SUMS, TOOL_KEY, TOOL_SUMS, Batch
from apps.tracing.rollups.fold import settle
from apps.tracing.services.repricing import reprice
from apps.tracing.services.retention import expire
from apps.tracing.store.backend import backend
from apps.tracing.store.changes import delete_where

DAY = 86_400_000
WIDTH = {Grain.FIVE_MINUTES: 300, Grain.HOUR: 3600, Grain.DAY: 86_400}


@st.composite
def span_lists(draw):
    """Spans of a few sessions with parents anywhere: missing, later, cyclic, in other trees."""
    count = draw(st.integers(1, 14))
    ids = [f"s{n}" for n in range(count)]
    spans = []
    for n in range(count):
        parent = draw(st.sampled_from([None, None, *ids, "missing"]))
        trace = draw(st.sampled_from([None, None, "t"]))  # OpenTelemetry: stands in for a session that nobody named
        tools = draw(st.lists(st.sampled_from([("t", True), ("t", False), ("u", None)]), max_size=3))
        spans.append(
            SpanIn(
                name=draw(st.sampled_from(["a", "b"])),
                span_id=draw(st.sampled_from([ids[n], ids[n], ids[n], None, ids[0]])),
                parent_span_id=parent,
                session_id=draw(st.sampled_from([None, "x", "y"])) or trace,
                trace_id=trace,
                model=draw(st.sampled_from([None, "m", "unpriced"])),
                framework=draw(st.sampled_from([None, "F"])),
                source=draw(st.sampled_from([None, None, "eval-run"])),
                monitor=draw(st.sampled_from([None, True, False])),
                error=draw(st.sampled_from([None, "boom"])),
                latency_ms=draw(st.sampled_from([None, 0, 5, 5000])),
                input_tokens=draw(st.sampled_from([None, 3, 10])),
                output_tokens=draw(st.sampled_from([None, 1])),
                cache_read_tokens=draw(st.sampled_from([None, 2, 50])),
                start_ns=(now_ms() - draw(st.sampled_from([0, 1, 30, 100])) * DAY) * 1_000_000,
                tool_calls=json.dumps([{"name": name, "success": ok} for name, ok in tools]).encode()
                if tools
                else None,
                output=b'"out"',
            )
        )
    return draw(st.permutations(spans)), draw(st.lists(st.integers(1, 5), max_size=6))


def check_tree(project):
    """Links and child sums are what the parent relation says, computed the slow way."""
    rows = list(Span.objects.filter(project=project))
    by_span_id = {row.span_id: row for row in rows if row.span_id}

    def chain_of(row):
        """The row and its ancestors; the last one again where they run in a circle."""
        chain = [row]
        while row.parent_span_id is not None and (row := by_span_id.get(row.parent_span_id)) is not None:
            chain.append(row)
            if row in chain[:-1]:
                break
        return chain

    children = defaultdict(list)
    for row in rows:
        parent = by_span_id.get(row.parent_span_id) if row.parent_span_id else None
        if parent is not None and parent.id != row.id:
            children[parent.id].append(row)
            if parent.session_id is not None:
                assert row.session_id is not None

    def stands_for(row, name):
        return max(getattr(row, name) or 0, sum(stands_for(child, name) for child in children[row.id]))

    for row in rows:
        chain = chain_of(row)
        root = chain[-1] if chain[-1].parent_span_id is None else None
        assert row.root_id == (root.id if root else None)
        assert row.agent_id == (root.agent_id if root else None)
        if len(chain) > 1 and row == chain[-1]:
            continue  # in a circle the order of arrival decides where the counts stay
        for name in ("input_tokens", "output_tokens", "cache_read_tokens"):
            assert getattr(row, f"child_{name}") == sum(stands_for(child, name) for child in children[row.id])


def check_aggregates(project):
    """Every aggregate row equals the sum of contributions of the rows that are stored now."""
    settle()
    batch = Batch()
    sessions = defaultdict(list)
    for row in backend().load_rows("project_id = %s", (project.pk,), 10_000):
        batch.add(row)
        if row.session_id is not None and row.traffic != 1:
            sessions[row.session_id].append(row)
    for model, key, names, entries in (
        (Rollup, ROLLUP_KEY, ROLLUP_SUMS, batch.rollups),
        (ToolRollup, TOOL_KEY, TOOL_SUMS, batch.tools),
    ):
        for grain in Grain:
            expected = {}
            for (project_id, bucket, *rest), (sums, histogram) in entries.items():
                if grain == Grain.FIVE_MINUTES and bucket < now_ms() // 1000 - 8 * 86_400:
                    continue
                start = 0 if grain == Grain.ALL_TIME else bucket - bucket % WIDTH[grain]
                vector, counts = expected.setdefault((project_id, start, *rest), ([0.0] * len(names), defaultdict(int)))
                for position, value in enumerate(sums):
                    vector[position] += value
                for slot, number in histogram.items():
                    counts[slot] += number
            found = {
                tuple(getattr(row, name) for name in key): row
                for row in model.objects.filter(project=project, grain=grain)
            }
            assert set(found) == set(expected)
            for values, (vector, counts) in expected.items():
                row = found[values]
                assert [getattr(row, name) for name in names] == pytest.approx(vector, abs=1e-9)
                assert from_json(row.latency) == counts
    stored = {row.session_id: row for row in Session.objects.filter(project=project)}
    assert set(stored) == set(sessions)
    for session_id, rows in sessions.items():
        row = stored[session_id]
        sums = batch.sessions[(project.pk, session_id)].sums
        expected = [
            value if name != "cost_usd" or sums[7] else None for name, value in zip(SESSION_SUMS, sums, strict=True)
        ]
        assert [getattr(row, name) for name in SESSION_SUMS] == pytest.approx(expected, abs=1e-9)
        roots = sorted((item.id, item.agent_id, item.framework) for item in rows if item.parent_span_id is None)
        assert (row.first_turn_id, row.agent_id, row.framework) == (roots[0] if roots else (None, None, None))
        assert row.first_ms == min(item.created_ms for item in rows)
        assert row.last_ms == max(item.created_ms + int(item.latency_ms or 0) for item in rows)


@pytest.mark.django_db
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=span_lists(), price=st.sampled_from([1.0, 7.0]), cut=st.sampled_from([0, 10, 50]))
def test_aggregates_equal_a_scan(project, data, price, cut):
    spans, sizes = data
    try:
        model, _ = CatalogModel.objects.get_or_create(model_id="m", defaults={"provider": "openai", "label": "m"})
        dated, _ = ModelPrice.objects.update_or_create(
            model=model,
            valid_from=timezone.now().replace(year=2000, month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
            defaults={"input_per_m": 1e6, "output_per_m": 2e6},
        )
        forget()
        rest = list(spans)
        for size in [*sizes, len(rest) or 1]:
            batch, rest = rest[:size], rest[size:]
            store_spans(project, batch)
        check_tree(project)
        check_aggregates(project)

        dated.input_per_m = price * 1e6
        dated.save()
        bump_version()
        forget()
        reprice(since_ms=0, until_ms=now_ms() + DAY, project=project)
        check_aggregates(project)

        expire(project_id=project.pk, before_ms=now_ms() - cut * DAY)
        check_aggregates(project)
        if cut == 0:
            assert not Span.objects.filter(project=project, parent_span_id=None).exists()
    finally:
        while delete_where(project_id=project.pk, where="TRUE", params=()):
            pass
        check_aggregates(project)
        assert not Session.objects.filter(project=project).exists()
        assert not Rollup.objects.filter(project=project).exists()
        forget()
