"""Retention: spans older than a project keeps leave, and sessions, aggregates, events and words follow them.

Postgres can besides drop whole daily partitions (AGENTX_PG_PARTITION_RETENTION_DAYS); what they held is taken back
from the aggregates in the same transaction.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from apps.core.ids import time_prefix
from apps.core.times import now_ms
from apps.projects.models import MonitoringDefaults, Project
from apps.tracing.models import Grain, ModelRollup, Rollup, ToolRollup
from apps.tracing.rollups.contributions import Batch
from apps.tracing.rollups.fold import FIVE_MINUTES_KEPT_DAYS, settle
from apps.tracing.store import partitions
from apps.tracing.store.backend import backend
from apps.tracing.store.changes import delete_where

logger = logging.getLogger(__name__)

DAY_MS = partitions.DAY_MS
_ROOTS = 100
# Rows of a detached partition that one transaction takes back.
_TAKEN_ROWS = 1000


def apply_retention() -> int:
    """One pass over all projects and partitions; returns how many spans left. The daily job."""
    deleted = 0
    days_by_project = MonitoringDefaults.objects.filter(retention_days__gt=0).values_list(
        "project_id", "retention_days"
    )
    for project_id, days in days_by_project:
        deleted += expire(project_id=project_id, before_ms=now_ms() - days * DAY_MS)
    if connection.vendor == "postgresql" and settings.PG_PARTITION_RETENTION_DAYS is not None:
        deleted += _expire_partitions(settings.PG_PARTITION_RETENTION_DAYS)
    forget_fine_rollups()
    settle()
    return deleted


def expire(*, project_id: int, before_ms: int) -> int:
    """Delete a project's traces created before a moment, each with its whole tree, then what has no root."""
    bound = time_prefix(before_ms)
    deleted = 0
    while roots := _old_roots(project_id, bound):
        marks = ", ".join(["%s"] * len(roots))
        while count := delete_where(
            project_id=project_id,
            where=f"root_id IN ({marks}) AND parent_span_id IS NOT NULL",
            params=roots,
        ):
            deleted += count
        deleted += delete_where(project_id=project_id, where=f"id IN ({marks})", params=roots)
    while count := delete_where(project_id=project_id, where="id < %s AND parent_span_id IS NOT NULL", params=(bound,)):
        deleted += count
    if deleted:
        logger.info("retention removed spans", extra={"project_id": project_id, "spans": deleted})
    return deleted


def _old_roots(project_id: int, bound: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM tracing_span WHERE project_id = %s AND id < %s AND parent_span_id IS NULL"
            f" ORDER BY id LIMIT {_ROOTS}",
            [project_id, bound],
        )
        return [row[0] for row in cursor.fetchall()]


def forget_fine_rollups() -> None:
    """Drop five-minute aggregates that no window reads any more."""
    oldest = now_ms() // 1000 - (FIVE_MINUTES_KEPT_DAYS + 1) * 86_400
    for model in (Rollup, ToolRollup, ModelRollup):
        model.objects.filter(grain=Grain.FIVE_MINUTES, bucket__lt=oldest).delete()


def _expire_partitions(days: int) -> int:
    """Drop partitions whose whole day is older than `days`; a plain table and the default partition lose rows."""
    oldest_day = now_ms() // DAY_MS - days
    deleted = 0
    if partitions.is_partitioned():
        for name in partitions.detached():
            deleted += _take_back(name)
        for day in partitions.existing():
            if day < oldest_day:
                try:
                    deleted += _drop_partition(day)
                except DatabaseError:
                    logger.warning("a partition could not be dropped; the next run tries again", exc_info=True)
    for project_id in Project.objects.values_list("pk", flat=True):
        deleted += expire(project_id=project_id, before_ms=oldest_day * DAY_MS)
    return deleted


def _drop_partition(day: int) -> int:
    """Take a day out of the table, which is quick, then take back what it held, in batches beside running ingest."""
    name = partitions.name_of(day)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '5s'")
        backend().lock_projects(sorted(Project.objects.values_list("pk", flat=True)))
        cursor.execute(f"ALTER TABLE tracing_span DETACH PARTITION {name}")
    partitions.forget()
    return _take_back(name)


def _take_back(name: str) -> int:
    """Empty a detached partition and drop it; a run that was cut short is taken up by the next."""
    from apps.tracing.store.postgres import take_rows

    store = backend()
    count = 0
    while True:
        with transaction.atomic():
            rows = take_rows(name, _TAKEN_ROWS)
            if not rows:
                break
            contributions = Batch()
            for row in rows:
                contributions.remove_deleted(row)
            store.insert_journal(contributions.encode())
        count += len(rows)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {name}")
    logger.info("partition dropped", extra={"partition": name, "spans": count})
    return count
