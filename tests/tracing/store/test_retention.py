"""Old spans leave, and everything that hangs on them leaves with them; Postgres drops whole days."""

from __future__ import annotations

import os
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from apps.core.times import now_ms
from apps.llm.models import CatalogModel, ModelPrice
from apps.llm.pricing import forget
from apps.projects.models import MonitoringDefaults
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import (
    CheckItem,
    Grain,
    ModelRollup,
    OperationalEvent,
    Rollup,
    RollupJournal,
    Session,
    Span,
    ToolRollup,
)
from apps.tracing.rollups.fold import settle
from apps.tracing.search import query_words
from apps.tracing.services.purge import purge_project
from apps.tracing.services.retention import apply_retention
from apps.tracing.store import partitions

DAY = 86_400_000
on_postgres = pytest.mark.skipif(not os.environ.get("AGENTX_TEST_DB_URL"), reason="needs AGENTX_TEST_DB_URL")


def days_ago(days, name="agent", **fields):
    """A span created some days ago."""
    return SpanIn(name=name, start_ns=(now_ms() - days * DAY) * 1_000_000, **fields)


def count(sql, *params):
    """The number a query gives."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchone()[0]


def spans_of(project, grain=Grain.ALL_TIME):
    """Spans the aggregates count."""
    settle()
    return sum(Rollup.objects.filter(project=project, grain=grain).values_list("spans", flat=True))


@pytest.mark.django_db
def test_a_project_keeps_as_many_days_as_it_says(project):
    MonitoringDefaults.objects.update_or_create(project=project, defaults={"retention_days": 7})
    store_spans(
        project,
        [
            days_ago(30, span_id="old", session_id="gone", error="x"),
            days_ago(1, span_id="late child", parent_span_id="old"),
            days_ago(30, span_id="orphan", parent_span_id="never", session_id="both"),
            days_ago(2, span_id="new", session_id="both"),
        ],
    )
    assert apply_retention() == 3
    assert list(Span.objects.values_list("span_id", flat=True)) == ["new"]
    assert spans_of(project) == 1
    session = Session.objects.get()
    assert (session.session_id, session.span_count, session.turn_count) == ("both", 1, 1)
    assert session.first_ms == Span.objects.get().created_ms
    assert OperationalEvent.objects.filter(key="agent-trace-error").count() == 0
    assert not RollupJournal.objects.exists()
    # Gone means gone: the identity is free again.
    assert store_spans(project, [SpanIn(name="agent", span_id="old")])[0].deduped is False


@pytest.mark.django_db
def test_without_a_limit_everything_stays(project):
    MonitoringDefaults.objects.update_or_create(project=project, defaults={"retention_days": 0})
    store_spans(project, [days_ago(5000)])
    assert apply_retention() == 0
    assert Span.objects.count() == 1


@pytest.mark.django_db
def test_purging_a_project_leaves_nothing_of_it_and_all_of_others(project):
    from apps.projects.services.projects import create_project

    created = create_project(name="other")
    other = created[0] if isinstance(created, tuple) else created
    for each in (project, other):
        store_spans(
            each,
            [
                days_ago(
                    3, span_id="a", tool_calls=b'[{"name":"t","success":false}]', model="m", input=b'"unusual words"'
                ),
                days_ago(3, span_id="b", parent_span_id="a", session_id="s"),
            ],
        )
    assert purge_project(project.pk) == 2
    assert purge_project(project.pk) == 0
    for model in (Span, Session, Rollup, ToolRollup, ModelRollup, OperationalEvent, CheckItem):
        assert not model.objects.filter(project_id=project.pk).exists(), model
        if model is not CheckItem:
            assert model.objects.filter(project_id=other.pk).exists(), model
    if connection.vendor == "sqlite":
        found = count(
            "SELECT count(*) FROM tracing_spansearch WHERE tracing_spansearch MATCH %s", query_words("unusual")[0]
        )
    else:
        assert count("SELECT count(*) FROM tracing_spanlink") == 2
        found = count("SELECT count(*) FROM tracing_spansearch WHERE body @@ 'unusual'::tsquery")
    assert found == 1
    assert spans_of(other) == 2


@pytest.mark.django_db
def test_repricing_by_command(project):
    store_spans(project, [days_ago(10, model="m", input_tokens=2), days_ago(1, model="m", input_tokens=2)])
    model = CatalogModel.objects.create(model_id="m", provider="openai", label="m")
    ModelPrice.objects.create(
        model=model, valid_from=timezone.now().replace(year=2000), input_per_m=1e6, output_per_m=0
    )
    forget()
    out = StringIO()
    since = timezone.now() - timedelta(days=3)
    call_command("reprice", since=since.isoformat(), project=project.uid, stdout=out)
    assert out.getvalue().strip() == "1 spans looked at, 1 costs changed"
    assert sorted(Span.objects.values_list("cost_usd", flat=True), key=str) == [2.0, None]
    assert sum(Rollup.objects.filter(grain=Grain.ALL_TIME).values_list("cost_usd", flat=True)) == 2
    for options in ({"since": "nonsense"}, {"since": "2026-01-01", "project": "nobody"}):
        with pytest.raises(CommandError):
            call_command("reprice", **options)
    forget()


@on_postgres
@pytest.mark.django_db
def test_days_have_partitions_and_far_clocks_the_default_one(project):
    assert partitions.is_partitioned()
    store_spans(project, [days_ago(0, "today"), days_ago(9, "import"), days_ago(3000, "old"), days_ago(-9000, "ahead")])
    today = now_ms() // DAY
    assert {today - 9, today, today + 1} <= set(partitions.existing())
    assert count(f"SELECT count(*) FROM {partitions.name_of(today - 9)}") == 1
    assert count(f"SELECT count(*) FROM {partitions.DEFAULT}") == 2
    assert Span.objects.count() == 4


@on_postgres
@pytest.mark.django_db
def test_rows_of_a_day_leave_the_default_partition_when_the_day_gets_its_own(project):
    day = now_ms() // DAY - 20
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {partitions.name_of(day)}")
    partitions.forget()
    # As if another process were still making it.
    partitions._known.update({day, now_ms() // DAY, now_ms() // DAY + 1})
    store_spans(project, [days_ago(20, span_id="x")])
    assert count(f"SELECT count(*) FROM {partitions.DEFAULT}") == 1
    partitions.forget()
    store_spans(project, [days_ago(20, span_id="y")])
    assert count(f"SELECT count(*) FROM {partitions.DEFAULT}") == 0
    assert count(f"SELECT count(*) FROM {partitions.name_of(day)}") == 2
    partitions.forget()


@on_postgres
@pytest.mark.django_db
def test_old_partitions_are_dropped_and_taken_back(project, settings):
    settings.PG_PARTITION_RETENTION_DAYS = 5
    store_spans(
        project,
        [
            days_ago(9, span_id="a", session_id="s", input=b'"unusual"'),
            days_ago(9, span_id="b", parent_span_id="a"),
            days_ago(2000, span_id="c"),
            days_ago(1, span_id="d", session_id="s"),
        ],
    )
    assert apply_retention() == 3
    assert now_ms() // DAY - 9 not in partitions.existing()
    assert list(Span.objects.values_list("span_id", flat=True)) == ["d"]
    assert spans_of(project) == 1 == count("SELECT count(*) FROM tracing_spanlink")
    assert Session.objects.get().span_count == 1
    partitions.forget()


@on_postgres
@pytest.mark.django_db
def test_a_drop_that_was_cut_short_is_finished_by_the_next_run(project, settings):
    settings.PG_PARTITION_RETENTION_DAYS = 5
    store_spans(project, [days_ago(9, span_id="a"), days_ago(9, span_id="b", parent_span_id="a")])
    name = partitions.name_of(now_ms() // DAY - 9)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE tracing_span DETACH PARTITION {name}")
    partitions.forget()
    assert partitions.detached() == [name]
    assert apply_retention() == 2
    assert partitions.detached() == [] and spans_of(project) == 0 == count("SELECT count(*) FROM tracing_spanlink")


@on_postgres
@pytest.mark.django_db
def test_a_plain_table_is_kept_and_loses_rows_instead(project, settings):
    settings.PG_PARTITION_RETENTION_DAYS = 5
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE plain (LIKE tracing_span INCLUDING DEFAULTS)")
        cursor.execute("DROP TABLE tracing_span CASCADE")
        cursor.execute("ALTER TABLE plain RENAME TO tracing_span")
    partitions.forget()
    assert not partitions.is_partitioned()
    store_spans(project, [days_ago(9, span_id="a"), days_ago(1, span_id="b"), days_ago(1, parent_span_id="b")])
    assert store_spans(project, [days_ago(9, span_id="a")])[0].deduped is True
    assert apply_retention() == 1
    assert Span.objects.count() == 2
    partitions.forget()
