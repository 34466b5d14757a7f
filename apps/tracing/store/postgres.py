"""The write side on Postgres: COPY into daily partitions, identities and links in one narrow table beside them.

A partitioned table cannot hold a unique key without its partition key, and looking for a parent or a replay must not
visit every partition. `tracing_spanlink` (id, project, span id, parent's span id) answers both, and carries the words
of roots, which the view `tracing_spansearch` shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection, transaction

from apps.tracing.ingest.normalize import stored_tools
from apps.tracing.search import row_tokens
from apps.tracing.store.backend import MAX_ABOVE, Check, Event, Found
from apps.tracing.store.rows import COLUMNS, CORE_COLUMNS, LINK_COLUMNS, Row, column_values, link_values

# First key of the advisory locks; the second is the project.
LOCK_SPACE = 0x61677478

_COPY = f"COPY tracing_span ({', '.join(COLUMNS)}) FROM STDIN"
_BETWEEN = "' '"
_COPY_LINKS = "COPY tracing_spanlink (id, project_id, span_id, parent_span_id, body) FROM STDIN"
_LOAD = (
    f"SELECT {', '.join('s.' + name for name in CORE_COLUMNS)},"
    " CASE WHEN s.parent_span_id IS NULL AND s.tool_count > 0 THEN s.tool_calls END"
    " FROM tracing_spanlink l JOIN tracing_span s ON s.id = l.id WHERE l.project_id = %s AND "
)
_LOAD_BY_SPAN_IDS = _LOAD + "l.span_id = ANY(%s)"
_LOAD_BY_PARENTS = _LOAD + "l.parent_span_id = ANY(%s)"
_LOAD_BY_IDS = _LOAD + "s.id = ANY(%s)"
# UNION, not UNION ALL: a circle of parents comes to an end.
_LOAD_WITH_ANCESTORS = (
    "WITH RECURSIVE up(id, parent) AS ("
    " SELECT id, parent_span_id FROM tracing_spanlink WHERE project_id = %(project)s AND span_id = ANY(%(span_ids)s)"
    " UNION SELECT l.id, l.parent_span_id FROM up"
    " JOIN tracing_spanlink l ON l.project_id = %(project)s AND l.span_id = up.parent"
    f") {_LOAD.replace('l.project_id = %s AND ', f'l.id IN (SELECT id FROM up LIMIT {MAX_ABOVE})')}"
)
_EXISTING = "SELECT id FROM tracing_spanlink WHERE id = ANY(%s)"
_LOCK = "SELECT pg_advisory_xact_lock(%s, p) FROM unnest(%s::int[]) AS p"
_FIND = (
    "SELECT span_id, id FROM tracing_spanlink WHERE project_id = %s AND span_id = ANY(%s)"
    " UNION ALL "
    "(SELECT NULL, id FROM tracing_spanlink WHERE project_id = %s AND parent_span_id = ANY(%s) LIMIT 1)"
)
_UPDATE = f"UPDATE tracing_span SET {', '.join(f'{name} = %s' for name in LINK_COLUMNS)} WHERE id = %s"
_INSERT_CHECK = (
    "INSERT INTO tracing_checkitem (project_id, trace_id, pattern_ids, enqueued_ms, claimed_until_ms, attempts)"
    " VALUES (%s,%s,%s,%s,0,0)"
)
_INSERT_EVENT = (
    "INSERT INTO tracing_operationalevent (id, project_id, trace_id, agent_id, key, created_ms)"
    " VALUES (%s,%s,%s,%s,%s,%s)"
)


def _raw() -> psycopg.Connection[Any]:
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    return raw


def _cursor() -> psycopg.Cursor[Any]:
    """A plain server-side-binding cursor: prepares what repeats."""
    return psycopg.Cursor(_raw())


class Postgres:
    """See apps.tracing.store.backend.Backend."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction."""
        with transaction.atomic():
            yield

    def lock_projects(self, project_ids: Sequence[int]) -> None:
        """Take the advisory write lock of every project until the transaction ends."""
        with _cursor() as cursor:
            cursor.execute(_LOCK, (LOCK_SPACE, list(project_ids)))

    def begin(self, batch: dict[int, tuple[list[str], list[str]]]) -> dict[int, Found]:
        """Lock, then look up, in one round trip: the look-ups run once the locks are ours and see what was committed."""
        raw = _raw()
        cursors: dict[int, psycopg.Cursor[Any]] = {}
        with raw.pipeline():
            psycopg.Cursor(raw).execute(_LOCK, (LOCK_SPACE, list(batch)))
            for project_id, (span_ids, parents) in batch.items():
                if span_ids or parents:
                    cursors[project_id] = psycopg.Cursor(raw).execute(
                        _FIND, (project_id, span_ids + parents, project_id, span_ids)
                    )
        result = {}
        for project_id in batch:
            found = Found({}, False)
            if project_id in cursors:
                for span_id, row_id in cursors[project_id].fetchall():
                    if span_id is None:
                        found.children = True
                    else:
                        found.ids[span_id] = row_id
            result[project_id] = found
        return result

    def load_by_span_ids(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored rows by span id."""
        with _cursor() as cursor:
            return [_row(values) for values in cursor.execute(_LOAD_BY_SPAN_IDS, (project_id, list(span_ids)))]

    def load_by_parents(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored children by their parents' span ids."""
        with _cursor() as cursor:
            return [_row(values) for values in cursor.execute(_LOAD_BY_PARENTS, (project_id, list(span_ids)))]

    def load_by_ids(self, project_id: int, ids: Sequence[str]) -> list[Row]:
        """Stored rows by id; they must have links, as everything with a span id has."""
        with _cursor() as cursor:
            return [_row(values) for values in cursor.execute(_LOAD_BY_IDS, (project_id, list(ids)))]

    def load_with_ancestors(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored rows by span id, and what is above them."""
        with _cursor() as cursor:
            found = cursor.execute(_LOAD_WITH_ANCESTORS, {"project": project_id, "span_ids": list(span_ids)})
            return [_row(values) for values in found]

    def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Row ids that are stored."""
        with _cursor() as cursor:
            return {row[0] for row in cursor.execute(_EXISTING, (list(ids),))}

    def insert(self, rows: Sequence[Row]) -> None:
        """Copy rows, then their links with the words of roots."""
        with _cursor() as cursor:
            with cursor.copy(_COPY) as copy:
                for row in rows:
                    copy.write_row(column_values(row))
            with cursor.copy(_COPY_LINKS) as copy:
                for row in rows:
                    body = f"'{_BETWEEN.join(row_tokens(row))}'" if row.parent_span_id is None else None
                    copy.write_row((row.id, row.project_id, row.span_id, row.parent_span_id, body))

    def update_links(self, rows: Sequence[Row]) -> None:
        """Write changed links, sums and costs."""
        with _cursor() as cursor:
            cursor.executemany(_UPDATE, [link_values(row) for row in rows])

    def update_costs(self, rows: Sequence[Row]) -> None:
        """Write costs."""
        with _cursor() as cursor:
            cursor.executemany(
                "UPDATE tracing_span SET cost_usd = %s, own_cost_usd = %s WHERE id = %s",
                [(row.cost_usd, row.own_cost_usd, row.id) for row in rows],
            )

    def insert_events(self, events: Sequence[Event]) -> None:
        """Insert operational events."""
        if events:
            with _cursor() as cursor:
                cursor.executemany(_INSERT_EVENT, events)

    def insert_checks(self, items: Sequence[Check]) -> None:
        """Queue roots for the live checks."""
        if items:
            with _cursor() as cursor:
                cursor.executemany(_INSERT_CHECK, items)

    def insert_journal(self, payload: bytes) -> None:
        """Insert one journal row."""
        with _cursor() as cursor:
            cursor.execute("INSERT INTO tracing_rollupjournal (payload) VALUES (%s)", (payload,))

    def load_rows(self, where: str, params: Sequence[object], limit: int, *, ordered: bool = True) -> list[Row]:
        """Whole rows in the order of their ids; unordered, any that an index of the project finds first."""
        order = "ORDER BY id" if ordered else ""
        sql = f"SELECT {', '.join(COLUMNS)} FROM tracing_span WHERE {where} {order} LIMIT {int(limit)}"
        rows = []
        with _cursor() as cursor:
            for values in cursor.execute(sql.encode(), tuple(params)):
                row = Row(*values)
                if row.parent_span_id is None:
                    row.tools = stored_tools(row.tool_calls)
                rows.append(row)
        return rows

    def delete_rows(self, rows: Sequence[Row]) -> None:
        """Delete rows, their links, words and events."""
        ids = [row.id for row in rows]
        roots = [row.id for row in rows if row.parent_span_id is None]
        with _cursor() as cursor:
            cursor.execute("DELETE FROM tracing_operationalevent WHERE trace_id = ANY(%s)", (roots,))
            cursor.execute("DELETE FROM tracing_spanlink WHERE id = ANY(%s)", (ids,))
            cursor.execute("DELETE FROM tracing_span WHERE id = ANY(%s)", (ids,))


def take_rows(table: str, limit: int) -> list[Row]:
    """Delete up to `limit` rows of a detached partition, with their links and events, and return them."""
    sql = (
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} ORDER BY id LIMIT {int(limit)})"
        f" RETURNING {', '.join(COLUMNS)}"
    )
    rows = []
    with _cursor() as cursor:
        for values in cursor.execute(sql.encode()):
            row = Row(*values)
            if row.parent_span_id is None:
                row.tools = stored_tools(row.tool_calls)
            rows.append(row)
        ids = [row.id for row in rows]
        cursor.execute("DELETE FROM tracing_operationalevent WHERE trace_id = ANY(%s)", (ids,))
        cursor.execute("DELETE FROM tracing_spanlink WHERE id = ANY(%s)", (ids,))
    return rows


def _row(values: tuple[Any, ...]) -> Row:
    row = Row(*values[:-1])
    if values[-1]:
        row.tools = stored_tools(values[-1])
    return row


POSTGRES = Postgres()
