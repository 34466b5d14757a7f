"""Every SELECT on the spans table. Called by `apps.tracing.selectors`, the fold of the aggregates and retention only.

Rows come back as `SpanRow`, a plain struct with the names of `apps.tracing.models.Span`: building a model instance
costs ten times as much, and a trace may have thousands of rows. Payload members are the JSON text as it was stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from django.db import connection

from apps.tracing.models import Span

TABLE = Span._meta.db_table
# "+project_id" keeps an optimizer without statistics from preferring an index of a whole project to that of an id.


class SpanRow(msgspec.Struct):
    """One stored span; see `apps.tracing.models.Span` for what each member means."""

    id: str
    span_id: str | None
    parent_span_id: str | None
    root_id: str | None
    session_id: str | None
    agent_id: str | None
    name: str
    kind: str
    status: int
    traffic: int
    outcome: int | None
    framework: str | None
    model: str | None
    created_ms: int
    received_ms: int
    start_ns: int | None
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    own_cost_usd: float | None
    tool_count: int
    tool_failures: int
    error: str | None
    input: str | None
    output: str | None
    tool_calls: str | None
    metadata: str | None
    performance_summary: str | None

    @property
    def is_root(self) -> bool:
        """Whether the row is a trace of its own."""
        return self.parent_span_id is None


_PAYLOADS = ("input", "output", "tool_calls", "metadata", "performance_summary")
_FIELDS = SpanRow.__struct_fields__
ALL = ", ".join(_FIELDS)
# What a list shows: the two payloads that only the detail carries stay on disk.
LISTED = ", ".join(f"NULL AS {name}" if name in ("metadata", "performance_summary") else name for name in _FIELDS)
LIGHT = ", ".join(f"NULL AS {name}" if name in _PAYLOADS else name for name in _FIELDS)


def columns(*, payloads: bool = True, preview: int | None = None) -> str:
    """The select list: everything, everything but payloads, or input and output cut to `preview` characters of JSON
    and no other payload."""
    if preview is not None:
        cut = f"substr(input, 1, {preview:d}), substr(output, 1, {preview:d}), NULL AS tool_calls,"
        return LISTED.replace("input, output, tool_calls,", cut)
    return ALL if payloads else LIGHT


def fetch(sql: str, params: Sequence[Any]) -> list[SpanRow]:
    """The rows of a SELECT over one of the column lists above."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [SpanRow(*row) for row in cursor.fetchall()]


def scalar(sql: str, params: Sequence[Any]) -> Any:
    """The first column of the first row, or None."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        row = cursor.fetchone()
    return row[0] if row else None


def one(project_id: int, span_id: str) -> SpanRow | None:
    """A row of the project by its id."""
    rows = fetch(f"SELECT {ALL} FROM {TABLE} WHERE id = %s AND project_id = %s", [span_id, project_id])
    return rows[0] if rows else None


def is_root_of(project_id: int, span_id: str) -> bool:
    """Whether the id names a root of the project; cheaper than reading the row."""
    sql = f"SELECT 1 FROM {TABLE} WHERE id = %s AND project_id = %s AND parent_span_id IS NULL"
    return scalar(sql, [span_id, project_id]) is not None


def roots(
    project_id: int,
    where: str,
    params: Sequence[Any],
    *,
    before: str | None = None,
    limit: int,
    select: str = LISTED,
) -> list[SpanRow]:
    """At most `limit` roots, newest first, that satisfy the condition `where`, with ids below `before`."""
    conditions = ["project_id = %s", "parent_span_id IS NULL"]
    values: list[Any] = [project_id]
    if before is not None:
        conditions.append("id < %s")
        values.append(before)
    if where:
        conditions.append(where)
    sql = f"SELECT {select} FROM {TABLE} WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT %s"
    return fetch(sql, [*values, *params, limit])


def count_roots(project_id: int, where: str, params: Sequence[Any]) -> int:
    """How many roots satisfy the condition."""
    condition = f" AND {where}" if where else ""
    sql = f"SELECT count(*) FROM {TABLE} WHERE project_id = %s AND parent_span_id IS NULL{condition}"
    return int(scalar(sql, [project_id, *params]))


def newest_root(project_id: int) -> str | None:
    """The id of the newest root of the project."""
    sql = f"SELECT id FROM {TABLE} WHERE project_id = %s AND parent_span_id IS NULL ORDER BY id DESC LIMIT 1"
    found: str | None = scalar(sql, [project_id])
    return found


def others_have_roots(project_id: int) -> bool:
    """Whether any other project has a root."""
    sql = (
        "SELECT 1 FROM projects_project p WHERE p.id <> %s AND EXISTS"
        f" (SELECT 1 FROM {TABLE} s WHERE s.project_id = p.id AND s.parent_span_id IS NULL) LIMIT 1"
    )
    return scalar(sql, [project_id]) is not None


def of_session(project_id: int, session_id: str, *, select: str = ALL) -> list[SpanRow]:
    """Every row of a session, in no particular order."""
    return fetch(
        f"SELECT {select} FROM {TABLE} WHERE project_id = %s AND session_id = %s",
        [project_id, session_id],
    )


def by_ids(project_id: int, ids: Sequence[str], *, select: str = ALL) -> list[SpanRow]:
    """Rows of the project by their ids, in no particular order."""
    marks = ", ".join(["%s"] * len(ids))
    return fetch(f"SELECT {select} FROM {TABLE} WHERE id IN ({marks}) AND +project_id = %s", [*ids, project_id])


def first_roots_of_sessions(project_id: int, session_ids: Sequence[str], *, preview: int) -> list[SpanRow]:
    """The oldest root of each of the sessions, its input and output cut to `preview` characters of JSON."""
    marks = ", ".join(["%s"] * len(session_ids))
    sql = (
        f"SELECT MIN(id) FROM {TABLE} WHERE project_id = %s AND session_id IN ({marks})"
        " AND parent_span_id IS NULL GROUP BY session_id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [project_id, *session_ids])
        ids = [row[0] for row in cursor.fetchall()]
    return by_ids(project_id, ids, select=columns(preview=preview)) if ids else []


def of_tree(project_id: int, root_id: str, *, select: str = ALL) -> list[SpanRow]:
    """The rows below a root whose chain of parents is complete, without the root."""
    sql = f"SELECT {select} FROM {TABLE} WHERE root_id = %s AND parent_span_id IS NOT NULL AND +project_id = %s"
    return fetch(sql, [root_id, project_id])


def rootless_of_session(project_id: int, session_id: str, *, select: str = ALL, limit: int = 10_000) -> list[SpanRow]:
    """Rows of a session that no root has claimed, because a span between them was never stored."""
    sql = f"SELECT {select} FROM {TABLE} WHERE project_id = %s AND session_id = %s AND root_id IS NULL LIMIT %s"
    return fetch(sql, [project_id, session_id, limit])


def root_starts_of_session(project_id: int, session_id: str) -> list[tuple[str, int]]:
    """(id, start in nanoseconds) of the session's roots, oldest first."""
    sql = (
        f"SELECT id, COALESCE(start_ns, created_ms * 1000000) AS began FROM {TABLE}"
        " WHERE project_id = %s AND session_id = %s AND parent_span_id IS NULL ORDER BY began, id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [project_id, session_id])
        return [(row[0], row[1]) for row in cursor.fetchall()]


def all_rows(project_id: int, *, since: str = "", batch: int = 200) -> Iterator[SpanRow]:
    """Every row of the project, oldest first, from the id `since` on; reads `batch` rows at a time by keyset."""
    sql = f"SELECT {ALL} FROM {TABLE} WHERE id {{}} %s AND +project_id = %s ORDER BY id LIMIT %s"
    operator, last = ">=", since
    while True:
        rows = fetch(sql.format(operator), [last, project_id, batch])
        yield from rows
        if len(rows) < batch:
            return
        operator, last = ">", rows[-1].id
