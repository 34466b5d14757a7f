"""Removing everything recorded for a project, in batches beside running ingest."""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction

from apps.tracing.models import CheckItem, ModelRollup, OperationalEvent, Rollup, Session, ToolRollup
from apps.tracing.rollups.fold import settle
from apps.tracing.store.agents import forget_cached_agents
from apps.tracing.store.changes import delete_where
from apps.tracing.store.write import refuse_project

_SMALL_BATCH = 5000


def purge_project(project_id: int) -> int:
    """Delete spans, words, links, sessions, aggregates, events and queued checks of a project; returns the spans.

    May be called again at any time, also when the project's own row is gone.
    """
    refuse_project(project_id)
    forget_cached_agents()
    deleted = _delete_at_once(project_id) if connection.vendor == "postgresql" else 0
    while count := delete_where(project_id=project_id, where="TRUE", params=(), count=False):
        deleted += count
    # What was pending is folded first, so that no later fold brings an aggregate back.
    settle()
    for model in (Session, Rollup, ToolRollup, ModelRollup, OperationalEvent, CheckItem):
        while True:
            ids: list[Any] = list(
                model.objects.filter(project_id=project_id).values_list("pk", flat=True)[:_SMALL_BATCH]
            )
            if not ids:
                break
            with transaction.atomic(), connection.cursor() as cursor:
                marks = ", ".join(["%s"] * len(ids))
                cursor.execute(f"DELETE FROM {model._meta.db_table} WHERE id IN ({marks})", ids)
    return deleted


def _delete_at_once(project_id: int) -> int:
    """On Postgres: one statement a table, each a transaction; returns the spans.

    Nobody else wants these rows, so long row locks hinder no one, while small batches would step over the dead rows of
    the former ones again and again.
    """
    with connection.cursor() as cursor:
        for table in ("tracing_spansearch", "tracing_spanlink", "tracing_span"):
            cursor.execute(f"DELETE FROM {table} WHERE project_id = %s", [project_id])
        return int(cursor.rowcount)
