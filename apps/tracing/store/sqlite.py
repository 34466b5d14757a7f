"""The write side on SQLite: raw statements on Django's connection, one immediate transaction a batch."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from django.db import connection, transaction

from apps.tracing.ingest.normalize import stored_tools
from apps.tracing.search import row_tokens
from apps.tracing.store.backend import MAX_ABOVE, Check, Event, Found
from apps.tracing.store.rows import COLUMNS, CORE_COLUMNS, LINK_COLUMNS, Row, column_values, link_values

_INSERT = f"INSERT INTO tracing_span (rowid, {', '.join(COLUMNS)}) VALUES (?, {', '.join('?' * len(COLUMNS))})"
_LOAD = (
    f"SELECT {', '.join(CORE_COLUMNS)}, CASE WHEN parent_span_id IS NULL AND tool_count > 0 THEN tool_calls END"
    " FROM tracing_span WHERE project_id = ? AND "
)
_LOAD_BY_SPAN_IDS = _LOAD + "span_id IN (SELECT value FROM json_each(?))"
_LOAD_BY_PARENTS = _LOAD + "parent_span_id IN (SELECT value FROM json_each(?))"
_LOAD_BY_IDS = _LOAD + "id IN (SELECT value FROM json_each(?))"
_EXISTING = "SELECT id FROM tracing_span WHERE id IN (SELECT value FROM json_each(?))"
# UNION, not UNION ALL: a circle of parents comes to an end.
_LOAD_WITH_ANCESTORS = (
    "WITH RECURSIVE up(id, parent) AS ("
    " SELECT id, parent_span_id FROM tracing_span"
    " WHERE project_id = ?1 AND span_id IN (SELECT value FROM json_each(?2))"
    " UNION SELECT s.id, s.parent_span_id FROM up JOIN tracing_span s"
    " ON s.project_id = ?1 AND s.span_id = up.parent"
    ") " + _LOAD.replace("project_id = ? AND ", f"id IN (SELECT id FROM up LIMIT {MAX_ABOVE})")
)
_FIND = "SELECT span_id, id FROM tracing_span WHERE project_id = ? AND span_id IN (SELECT value FROM json_each(?))"
_ANY_CHILD = (
    "SELECT 1 FROM tracing_span WHERE project_id = ? AND parent_span_id IN (SELECT value FROM json_each(?)) LIMIT 1"
)
_UPDATE = f"UPDATE tracing_span SET {', '.join(f'{name} = ?' for name in LINK_COLUMNS)} WHERE id = ?"
_INSERT_WORDS = "INSERT INTO tracing_spansearch (rowid, body) VALUES (?, ?)"
_DELETE_WORDS = "INSERT INTO tracing_spansearch (tracing_spansearch, rowid, body) VALUES ('delete', ?, ?)"
_INSERT_CHECK = (
    "INSERT INTO tracing_checkitem (project_id, trace_id, pattern_ids, enqueued_ms, claimed_until_ms, attempts)"
    " VALUES (?,?,?,?,0,0)"
)
_INSERT_EVENT = (
    "INSERT INTO tracing_operationalevent (id, project_id, trace_id, agent_id, key, created_ms) VALUES (?,?,?,?,?,?)"
)


def _raw() -> sqlite3.Connection:
    connection.ensure_connection()
    raw: sqlite3.Connection = connection.connection
    return raw


def _list(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()


class Sqlite:
    """See apps.tracing.store.backend.Backend. The database has one writer at a time, so the lock is the transaction."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """An immediate transaction."""
        with transaction.atomic():
            yield

    def lock_projects(self, project_ids: Sequence[int]) -> None:
        """Nothing to do: the transaction is immediate."""

    def begin(self, batch: dict[int, tuple[list[str], list[str]]]) -> dict[int, Found]:
        """Look up span ids and children; the transaction is the lock."""
        raw = _raw()
        result = {}
        for project_id, (span_ids, parents) in batch.items():
            ids = dict(raw.execute(_FIND, (project_id, _list(span_ids + parents)))) if span_ids or parents else {}
            children = bool(span_ids) and raw.execute(_ANY_CHILD, (project_id, _list(span_ids))).fetchone() is not None
            result[project_id] = Found(ids, children)
        return result

    def load_by_span_ids(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored rows by span id."""
        return [_row(values) for values in _raw().execute(_LOAD_BY_SPAN_IDS, (project_id, _list(span_ids)))]

    def load_by_parents(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored children by their parents' span ids."""
        return [_row(values) for values in _raw().execute(_LOAD_BY_PARENTS, (project_id, _list(span_ids)))]

    def load_by_ids(self, project_id: int, ids: Sequence[str]) -> list[Row]:
        """Stored rows by id."""
        return [_row(values) for values in _raw().execute(_LOAD_BY_IDS, (project_id, _list(ids)))]

    def load_with_ancestors(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored rows by span id, and what is above them."""
        return [_row(values) for values in _raw().execute(_LOAD_WITH_ANCESTORS, (project_id, _list(span_ids)))]

    def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Row ids that are stored."""
        return {row[0] for row in _raw().execute(_EXISTING, (_list(ids),))}

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert with row numbers of our own, under which the words of roots are filed."""
        raw = _raw()
        first = (raw.execute("SELECT max(rowid) FROM tracing_span").fetchone()[0] or 0) + 1
        raw.executemany(_INSERT, [(number, *column_values(row)) for number, row in enumerate(rows, first)])
        raw.executemany(
            _INSERT_WORDS,
            [
                (number, " ".join(row_tokens(row)))
                for number, row in enumerate(rows, first)
                if row.parent_span_id is None
            ],
        )

    def update_links(self, rows: Sequence[Row]) -> None:
        """Write changed links, sums and costs."""
        _raw().executemany(_UPDATE, [link_values(row) for row in rows])

    def update_costs(self, rows: Sequence[Row]) -> None:
        """Write costs."""
        _raw().executemany(
            "UPDATE tracing_span SET cost_usd = ?, own_cost_usd = ? WHERE id = ?",
            [(row.cost_usd, row.own_cost_usd, row.id) for row in rows],
        )

    def insert_events(self, events: Sequence[Event]) -> None:
        """Insert operational events."""
        if events:
            _raw().executemany(_INSERT_EVENT, events)

    def insert_checks(self, items: Sequence[Check]) -> None:
        """Queue roots for the live checks."""
        if items:
            _raw().executemany(_INSERT_CHECK, items)

    def insert_journal(self, payload: bytes) -> None:
        """Insert one journal row."""
        _raw().execute("INSERT INTO tracing_rollupjournal (payload) VALUES (?)", (payload,))

    def load_rows(self, where: str, params: Sequence[object], limit: int, *, ordered: bool = True) -> list[Row]:
        """Whole rows in the order of their ids; unordered, any that an index of the project finds first."""
        order = "ORDER BY id" if ordered else ""
        sql = f"SELECT {', '.join(COLUMNS)} FROM tracing_span WHERE {where} {order} LIMIT {int(limit)}"
        rows = []
        for values in _raw().execute(sql.replace("%s", "?"), tuple(params)):
            row = Row(*values)
            if row.parent_span_id is None:
                row.tools = stored_tools(row.tool_calls)
            rows.append(row)
        return rows

    def delete_rows(self, rows: Sequence[Row]) -> None:
        """Delete rows, their words and their events."""
        raw = _raw()
        ids = _list([row.id for row in rows])
        numbers = dict(
            raw.execute("SELECT id, rowid FROM tracing_span WHERE id IN (SELECT value FROM json_each(?))", (ids,))
        )
        roots = [row for row in rows if row.parent_span_id is None and row.id in numbers]
        raw.executemany(_DELETE_WORDS, [(numbers[row.id], " ".join(row_tokens(row))) for row in roots])
        raw.execute(
            "DELETE FROM tracing_operationalevent WHERE trace_id IN (SELECT value FROM json_each(?))",
            (_list([row.id for row in roots]),),
        )
        raw.execute("DELETE FROM tracing_span WHERE id IN (SELECT value FROM json_each(?))", (ids,))


def _row(values: tuple[object, ...]) -> Row:
    row = Row(*values[:-1])  # type: ignore[arg-type]
    if values[-1]:
        row.tools = stored_tools(str(values[-1]))
    return row


SQLITE = Sqlite()
