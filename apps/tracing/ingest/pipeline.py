"""The ingest pipeline every door uses: normalize, queue, store, answer.

`submit` (async) is what a running server uses; `store_spans` does the same synchronously for commands, tasks and
tests. Both return one `Stored` per span in order, committed, or raise QueueFull / StorageUnavailable with nothing stored.
"""

from __future__ import annotations

import asyncio
import sqlite3

from django.conf import settings
from django.db import DatabaseError, connection

from apps.core.times import now_ms
from apps.projects.models import Project
from apps.tracing.ingest.errors import StorageUnavailable
from apps.tracing.ingest.normalize import to_row
from apps.tracing.ingest.records import SpanIn, Stored
from apps.tracing.ingest.writer import WRITER, Counters, Group, on_stored, write_committed
from apps.tracing.store.rows import Row

__all__ = ["Counters", "on_stored", "start", "stats", "stop", "store_spans", "submit"]


def start() -> None:
    """Start the writer of this process."""
    WRITER.start()


def stop(timeout: float = 30.0) -> None:
    """Drain the queue, answer everything, stop the writer."""
    WRITER.stop(timeout)


def stats() -> Counters:
    """Counters of this process since its start."""
    return WRITER.counters


def _rows(project: Project, spans: list[SpanIn], door: str) -> list[Row]:
    now = now_ms()
    project_id, organization_id = project.pk, project.organization_id
    return [
        to_row(project_id=project_id, organization_id=organization_id, span=span, door=door, now_ms=now)
        for span in spans
    ]


async def submit(project: Project, spans: list[SpanIn], *, door: str = "sdk") -> list[Stored]:
    """Store spans through the group-commit writer. Raises QueueFull or StorageUnavailable."""
    if not spans:
        return []
    rows = _rows(project, spans, door)
    if not WRITER.running:
        if WRITER.accepting or not settings.INGEST_INLINE:
            raise StorageUnavailable
        return await asyncio.to_thread(_write_directly, rows)
    group = Group(rows, asyncio.get_running_loop())
    WRITER.put(group)
    return await group.result()


def store_spans(project: Project, spans: list[SpanIn], *, door: str = "sdk") -> list[Stored]:
    """Store spans synchronously. Raises QueueFull or StorageUnavailable."""
    if not spans:
        return []
    rows = _rows(project, spans, door)
    if settings.INGEST_INLINE or not WRITER.running or connection.in_atomic_block:
        return _write_directly(rows)
    group = Group(rows, None)
    WRITER.put(group)
    return group.wait()


def _write_directly(rows: list[Row]) -> list[Stored]:
    try:
        return write_committed(rows).answers
    except (DatabaseError, sqlite3.Error) as error:
        raise StorageUnavailable from error
