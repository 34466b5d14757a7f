"""Folding: pending contributions in the journal become part of the aggregates.

`fold()` runs in the writer thread about once a second and in readers through `settle()`. One fold runs at a time in a
whole deployment (SQLite: the immediate transaction; Postgres: an advisory lock); journal rows are removed in the
transaction that applies them, so a crash neither loses nor doubles a count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.db import OperationalError, connection, transaction

from apps.core.times import now_ms
from apps.tracing.histogram import from_json, merge, to_json
from apps.tracing.models import Grain, Traffic
from apps.tracing.rollups.contributions import (
    MODEL_KEY,
    MODEL_SUMS,
    ROLLUP_KEY,
    ROLLUP_SUMS,
    SESSION_SUMS,
    TOOL_KEY,
    TOOL_SUMS,
    Batch,
    SessionDelta,
)

logger = logging.getLogger(__name__)

# Five-minute rows are for recent windows only; older time has hours and days.
FIVE_MINUTES_KEPT_DAYS = 8
MAX_JOURNAL_ROWS = 2000
MAX_JOURNAL_BYTES = 2_000_000
_LOCK_KEY = 0x61677478666F6C64
_EVAL = int(Traffic.EVAL_RUN)
_WIDTHS = ((int(Grain.HOUR), 3600), (int(Grain.DAY), 86_400))

# Set by the writer: asks it to fold and waits; False when it does not run in this process.
_fold_elsewhere: Callable[[], bool] | None = None


def use_writer(ask: Callable[[], bool] | None) -> None:
    """Let `settle()` ask the process's writer thread to fold instead of competing with it for the database."""
    global _fold_elsewhere
    _fold_elsewhere = ask


def pending() -> bool:
    """Whether the journal holds contributions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM tracing_rollupjournal LIMIT 1")
        return cursor.fetchone() is not None


def settle() -> None:
    """Make the aggregates count every span whose ingest was answered before this call. Readers call it first.

    Costs one small query when nothing is pending.
    """
    if not pending():
        return
    ask = _fold_elsewhere
    if ask is not None and not connection.in_atomic_block and ask():
        return
    try:
        while fold():
            pass
    except OperationalError:
        if connection.in_atomic_block:
            raise
        logger.warning("pending contributions could not be folded for a reader", exc_info=True)


def fold(*, wait: bool = True) -> int:
    """Apply up to MAX_JOURNAL_ROWS journal rows; returns how many. With `wait=False` another running fold wins."""
    with connection.wrap_database_errors, transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if wait:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_KEY])
            else:
                cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK_KEY])
                if not cursor.fetchone()[0]:
                    return 0
        cursor.execute(f"SELECT id, payload FROM tracing_rollupjournal ORDER BY id LIMIT {MAX_JOURNAL_ROWS}")
        journal = cursor.fetchall()
        if not journal:
            return 0
        batch = Batch()
        size = taken = 0
        for _, payload in journal:
            size += len(payload)
            if taken and size > MAX_JOURNAL_BYTES:
                break
            batch.merge_encoded(bytes(payload))
            taken += 1
        journal = journal[:taken]
        apply(batch)
        ids = ",".join(str(int(row[0])) for row in journal)
        cursor.execute(f"DELETE FROM tracing_rollupjournal WHERE id IN ({ids})")
        return len(journal)


def apply(batch: Batch) -> None:
    """Add a batch to the aggregates; call it under the fold's lock."""
    oldest = now_ms() // 1000 - FIVE_MINUTES_KEPT_DAYS * 86_400
    _apply_sums("tracing_rollup", ROLLUP_KEY, ROLLUP_SUMS, _by_grain(batch.rollups, oldest))
    _apply_sums("tracing_toolrollup", TOOL_KEY, TOOL_SUMS, _by_grain(batch.tools, oldest))
    _apply_sums("tracing_modelrollup", MODEL_KEY, MODEL_SUMS, _by_grain(batch.models, oldest))
    if batch.sessions:
        _apply_sessions(batch.sessions)


def _by_grain(entries: dict[tuple[Any, ...], Any], oldest: int) -> dict[tuple[Any, ...], Any]:
    """Spread five-minute entries over the four grains; keys gain the grain in front, position 1 stays the bucket."""
    result: dict[tuple[Any, ...], Any] = {}

    def add(key: tuple[Any, ...], sums: list[float], histogram: dict[int, int]) -> None:
        entry = result.get(key)
        if entry is None:
            result[key] = (list(sums), dict(histogram))
        else:
            for position, value in enumerate(sums):
                entry[0][position] += value
            merge(entry[1], histogram)

    for key, (sums, histogram) in entries.items():
        project_id, bucket, *rest = key
        if bucket >= oldest:
            add((int(Grain.FIVE_MINUTES), project_id, bucket, *rest), sums, histogram)
        for grain, width in _WIDTHS:
            add((grain, project_id, bucket - bucket % width, *rest), sums, histogram)
        add((int(Grain.ALL_TIME), project_id, 0, *rest), sums, histogram)
    return result


def _execute_many(sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
    rows = list(rows)
    if not rows:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            connection.connection.executemany(sql.replace("%s", "?"), rows)
        else:
            cursor.executemany(sql, rows)


def _existing(table: str, key: tuple[str, ...], keys: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[int, str]]:
    """Row number and stored histogram by key."""
    columns = ("grain", *key)
    found: dict[tuple[Any, ...], tuple[int, str]] = {}
    if connection.vendor == "sqlite":
        where = " AND ".join(f"{name} = ?" for name in columns)
        sql = f"SELECT id, latency FROM {table} WHERE {where}"
        raw = connection.connection
        for values in keys:
            row = raw.execute(sql, values).fetchone()
            if row is not None:
                found[values] = row
        return found
    types = {
        "grain": "int2",
        "project_id": "int8",
        "bucket": "int8",
        "is_root": "bool",
        "traffic": "int2",
        "status": "int2",
    }
    arrays = ", ".join(f"%s::{types.get(name, 'text')}[]" for name in columns)
    join = " AND ".join(f"t.{name} = k.{name}" for name in columns)
    names = ", ".join(columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join('k.' + name for name in columns)}, t.id, t.latency"
            f" FROM unnest({arrays}) AS k({names}) JOIN {table} t ON {join}",
            [list(values) for values in zip(*keys, strict=True)],
        )
        for row in cursor.fetchall():
            found[tuple(row[:-2])] = (row[-2], row[-1])
    return found


def _apply_sums(table: str, key: tuple[str, ...], sums: tuple[str, ...], entries: dict[tuple[Any, ...], Any]) -> None:
    """Update or insert aggregate rows; a row that counts nothing any more goes away."""
    if not entries:
        return
    found = _existing(table, key, list(entries))
    updates: list[tuple[Any, ...]] = []
    inserts: list[tuple[Any, ...]] = []
    shrunk: list[int] = []
    for values, (vector, histogram) in entries.items():
        known = found.get(values)
        if known is None:
            if any(vector) or any(histogram.values()):
                counts = {slot: count for slot, count in histogram.items() if count}
                inserts.append((*values, *vector, to_json(counts)))
            continue
        row_id, latency = known
        if histogram:
            latency = to_json(merge(from_json(latency), histogram))
        updates.append((*vector, latency, row_id))
        if vector[0] < 0:
            shrunk.append(row_id)
    assignments = ", ".join(f"{name} = {name} + %s" for name in sums)
    _execute_many(f"UPDATE {table} SET {assignments}, latency = %s WHERE id = %s", updates)
    columns = ("grain", *key, *sums, "latency")
    _execute_many(
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})",
        inserts,
    )
    _execute_many(f"DELETE FROM {table} WHERE id = %s AND {sums[0]} = 0", [(row_id,) for row_id in shrunk])


_SESSION_STATE = ("simulated", "first_ms", "last_ms", "stored_ms", "first_turn_id", "agent_id", "framework")


def _apply_sessions(sessions: dict[tuple[int, str], SessionDelta]) -> None:
    columns = (*SESSION_SUMS, *_SESSION_STATE)
    found = _existing_sessions(list(sessions), columns)
    updates: list[tuple[Any, ...]] = []
    inserts: list[tuple[Any, ...]] = []
    gone: list[int] = []
    for key, delta in sessions.items():
        known = found.get(key)
        if known is None:
            if delta.sums[1] <= 0:
                continue
            sums: list[Any] = list(delta.sums)
            state = [
                delta.simulated,
                delta.first_ms,
                delta.last_ms,
                delta.stored_ms,
                delta.first_turn_id,
                delta.agent_id,
                delta.framework,
            ]
            if delta.rescan and (scanned := _scan(key)) is not None:
                state[1:] = scanned
        else:
            stored = known[1 : 1 + len(SESSION_SUMS)]
            sums = [(old or 0) + new for old, new in zip(stored, delta.sums, strict=True)]
            if sums[1] <= 0:
                gone.append(known[0])
                continue
            simulated, first_ms, last_ms, stored_ms, first_turn, agent_id, framework = known[1 + len(SESSION_SUMS) :]
            if delta.rescan:
                state = [bool(simulated), *(_scan(key) or (first_ms, last_ms, stored_ms, None, None, None))]
            else:
                if delta.first_turn_id is not None and (first_turn is None or delta.first_turn_id < first_turn):
                    first_turn, agent_id, framework = delta.first_turn_id, delta.agent_id, delta.framework
                state = [
                    bool(simulated) or delta.simulated,
                    min(first_ms, delta.first_ms),
                    max(last_ms, delta.last_ms),
                    max(stored_ms, delta.stored_ms),
                    first_turn,
                    agent_id,
                    framework,
                ]
        sums[6] = sums[6] if sums[7] > 0 else None
        if known is None:
            inserts.append((*key, *sums, *state))
        else:
            updates.append((*sums, *state, known[0]))
    _execute_many(
        f"UPDATE tracing_session SET {', '.join(f'{name} = %s' for name in columns)} WHERE id = %s",
        updates,
    )
    names = ("project_id", "session_id", *columns)
    _execute_many(
        f"INSERT INTO tracing_session ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})",
        inserts,
    )
    _execute_many("DELETE FROM tracing_session WHERE id = %s", [(row_id,) for row_id in gone])


def _existing_sessions(keys: list[tuple[int, str]], columns: tuple[str, ...]) -> dict[tuple[int, str], tuple[Any, ...]]:
    names = ", ".join("t." + name for name in ("id", *columns))
    if connection.vendor == "sqlite":
        sql = f"SELECT {names} FROM tracing_session t WHERE t.project_id = ? AND t.session_id = ?"
        raw = connection.connection
        return {key: row for key in keys if (row := raw.execute(sql, key).fetchone()) is not None}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT k.project_id, k.session_id, {names}"
            " FROM unnest(%s::int8[], %s::text[]) AS k(project_id, session_id)"
            " JOIN tracing_session t ON t.project_id = k.project_id AND t.session_id = k.session_id",
            [[key[0] for key in keys], [key[1] for key in keys]],
        )
        return {(row[0], row[1]): row[2:] for row in cursor.fetchall()}


def _scan(key: tuple[int, str]) -> tuple[Any, ...] | None:
    """A session's extremes and first root, read from its spans."""
    condition = f"project_id = %s AND session_id = %s AND traffic <> {_EVAL}"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(created_ms), max(created_ms + CAST(COALESCE(latency_ms, 0) AS bigint)), max(received_ms),"
            f" min(CASE WHEN parent_span_id IS NULL THEN id END) FROM tracing_span WHERE {condition}",
            list(key),
        )
        first_ms, last_ms, stored_ms, first_turn = cursor.fetchone()
        if first_ms is None:
            return None
        agent_id = framework = None
        if first_turn is not None:
            cursor.execute("SELECT agent_id, framework FROM tracing_span WHERE id = %s", [first_turn])
            row = cursor.fetchone()
            agent_id, framework = row if row else (None, None)
        return first_ms, last_ms, stored_ms, first_turn, agent_id, framework
