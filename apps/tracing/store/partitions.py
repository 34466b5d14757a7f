"""Daily partitions of the spans table on Postgres: made ahead of time by the writer, dropped whole by retention.

A partition `tracing_span_d20261129` holds the ids of one UTC day. Ids outside the days that exist (clocks in 1970 or
2200) live in `tracing_span_default`. A plain table (relkind `r`) is kept as it is and needs none of this.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from django.db import DatabaseError, connection, transaction

from apps.core.ids import time_prefix

logger = logging.getLogger(__name__)

DAY_MS = 86_400_000
PREFIX = "tracing_span_d"
DEFAULT = "tracing_span_default"
# Imports older than this, and clocks ahead of tomorrow, go to the default partition.
DAYS_BACK = 400
DAYS_AHEAD = 1
_LOCK_KEY = 0x6167747870617274

_known: set[int] = set()
_partitioned: bool | None = None


def is_partitioned() -> bool:
    """Whether the spans table of this database is partitioned; asked once per process."""
    global _partitioned
    if _partitioned is None:
        if connection.vendor != "postgresql":
            _partitioned = False
        else:
            with connection.cursor() as cursor:
                cursor.execute("SELECT relkind::text FROM pg_class WHERE oid = to_regclass('tracing_span')")
                row = cursor.fetchone()
            _partitioned = bool(row and row[0] == "p")
    return _partitioned


def forget() -> None:
    """Forget what this process knows about the partitions (after one was dropped, or the database changed)."""
    global _partitioned
    _known.clear()
    _partitioned = None


def name_of(day: int) -> str:
    """The partition's table name for a day number since 1970."""
    return f"{PREFIX}{datetime.fromtimestamp(day * 86_400, UTC):%Y%m%d}"


def bounds_of(day: int) -> tuple[str, str]:
    """First id prefix of the day and of the next one."""
    return time_prefix(day * DAY_MS), time_prefix((day + 1) * DAY_MS)


def existing() -> list[int]:
    """Day numbers of the partitions that exist, ascending."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = to_regclass('tracing_span')"
        )
        names = [row[0] for row in cursor.fetchall()]
    days = []
    for name in names:
        if name.startswith(PREFIX) and name[len(PREFIX) :].isdigit():
            moment = datetime.strptime(name[len(PREFIX) :], "%Y%m%d").replace(tzinfo=UTC)
            days.append(int(moment.timestamp()) // 86_400)
    return sorted(days)


def detached() -> list[str]:
    """Partitions that retention has taken out of the table and not yet dropped."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class c WHERE relkind = 'r' AND relname ~ %s AND pg_table_is_visible(oid)"
            " AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) ORDER BY relname",
            [f"^{PREFIX}[0-9]{{8}}$"],
        )
        return [row[0] for row in cursor.fetchall()]


def ensure(created: set[int], now_ms: int) -> None:
    """Make the partitions for these days (numbers since 1970) where they belong to a partition of their own.

    A failure is logged and harmless: the rows go to the default partition.
    """
    today = now_ms // DAY_MS
    wanted = {day for day in created if today - DAYS_BACK <= day <= today + DAYS_AHEAD} | {today, today + 1}
    if wanted <= _known or not is_partitioned():
        return
    try:
        known = set(existing())
        for day in sorted(wanted - known):
            _create(day)
            known.add(day)
        if not connection.in_atomic_block:  # otherwise it may all be rolled back yet
            _known.update(known)
    except DatabaseError:
        logger.warning("a daily partition could not be made; its spans go to the default one", exc_info=True)


def _create(day: int) -> None:
    name = name_of(day)
    low, high = bounds_of(day)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '3s'")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_KEY])
        cursor.execute("SELECT to_regclass(%s)", [name])
        if cursor.fetchone()[0] is not None:
            return
        cursor.execute(
            f"CREATE TABLE {name} (LIKE tracing_span INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING COMPRESSION)"
        )
        cursor.execute(
            f"WITH moved AS (DELETE FROM {DEFAULT} WHERE id >= %s AND id < %s RETURNING *) "
            f"INSERT INTO {name} SELECT * FROM moved",
            [low, high],
        )
        cursor.execute(f"ALTER TABLE tracing_span ATTACH PARTITION {name} FOR VALUES FROM ('{low}') TO ('{high}')")
