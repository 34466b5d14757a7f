"""SELECTs over the full-text index: how many roots match, and which are the newest of them.

The index knows the words of roots and marks of their dimensions (apps.tracing.search), so a search with filters is
one expression. Few matches are fetched and sorted; of many, the newest roots are walked in growing chunks and each
chunk is tested, which takes about as long for a word in every row as for one in every hundredth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from apps.tracing.store.reads import TABLE, SpanRow, by_ids

INDEX = "tracing_spansearch"
# Up to this many matches are fetched and sorted.
FEW = 4000
CHUNK_FIRST = 256
CHUNK_MOST = 16_384
# A chunk whose row numbers lie in more runs than this is tested against all matches at once.
RUNS_MOST = 48
# The last word finds words that begin with it, from this length on.
PREFIX_CHARS = 3
PREFIX_TERMS = 16


@dataclass(frozen=True)
class Query:
    """Words (the last one may be the beginning of a word) and marks: all of `marks`, one of each of `groups`, none of
    `without`."""

    words: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    without: tuple[str, ...] = ()


def expression(query: Query) -> str:
    """The query in the language of this database's index."""
    parts = [_term(word) for word in query.words[:-1]]
    if query.words:
        parts.append(_last(query.words[-1]))
    parts += [_term(mark) for mark in query.marks]
    parts += [_any([_term(mark) for mark in group]) for group in query.groups]
    if connection.vendor == "sqlite":
        text = " AND ".join(parts)
        return f"({text})" + "".join(f" NOT {_term(mark)}" for mark in query.without)
    return " & ".join([*parts, *(f"!{_term(mark)}" for mark in query.without)])


def _term(word: str) -> str:
    return f'"{word}"' if connection.vendor == "sqlite" else f"'{word}'"


def _any(terms: Sequence[str]) -> str:
    return "(" + (" OR " if connection.vendor == "sqlite" else " | ").join(terms) + ")"


def _last(word: str) -> str:
    """The last word, which may be typed only half.

    SQLite evaluates a prefix by merging all its words first, so the words themselves are put in its place where they
    are few: their lists are then read only as far as needed.
    """
    if len(word) < PREFIX_CHARS:
        return _term(word)
    if connection.vendor != "sqlite":
        return f"'{word}':*"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.tracing_words USING fts5vocab(main, {INDEX}, row)")
        cursor.execute(
            "SELECT term FROM temp.tracing_words WHERE term >= %s AND term < %s LIMIT %s",
            [word, word + "\U0010ffff", PREFIX_TERMS + 1],
        )
        terms = [_term(row[0]) for row in cursor.fetchall()]
    if len(terms) > PREFIX_TERMS:
        return _term(word) + "*"
    return _any(terms) if terms else _term(word)


def count(expr: str) -> int:
    """How many roots match."""
    return _number(f"SELECT count(*) FROM {INDEX} WHERE {_matches()}", [expr])


def count_between(project_id: int, expr: str, low: str | None, high: str | None) -> int:
    """How many roots with ids in `[low, high)` match."""
    bounds, params = _bounds("id", low, high)
    if connection.vendor == "sqlite":
        sql = (
            f"SELECT count(*) FROM {TABLE} WHERE project_id = %s AND parent_span_id IS NULL{bounds}"
            f" AND rowid IN (SELECT rowid FROM {INDEX} WHERE {_matches()})"
        )
        return _number(sql, [project_id, *params, expr])
    bounds, params = _bounds("span_id", low, high)
    return _number(f"SELECT count(*) FROM {INDEX} WHERE {_matches()}{bounds}", [expr, *params])


def newest(
    project_id: int,
    expr: str,
    total: int,
    *,
    low: str | None = None,
    high: str | None = None,
    limit: int,
) -> list[str]:
    """Ids of the newest `limit` matching roots in `[low, high)`; `total` is how many match without those bounds."""
    if total <= FEW:
        ids = sorted(_all_ids(expr), reverse=True)
        return [item for item in ids if (high is None or item < high) and (low is None or item >= low)][:limit]
    found: list[str] = []
    everything: set[int] | None = None
    for ids, numbers in _chunks(project_id, low, high):
        if connection.vendor != "sqlite":
            hits = _among(expr, ids)
            found += [item for item in ids if item in hits]
        else:
            runs = _runs(numbers)
            if everything is None and len(runs) > RUNS_MOST:
                everything = set(_numbers(expr, None))
            matching = everything if everything is not None else {n for run in runs for n in _numbers(expr, run)}
            found += [item for item, number in zip(ids, numbers, strict=True) if number in matching]
        if len(found) >= limit:
            break
    return found[:limit]


def rows(project_id: int, ids: Sequence[str], select: str) -> list[SpanRow]:
    """The project's rows of these ids, newest first."""
    return sorted(by_ids(project_id, ids, select=select), key=_id, reverse=True) if ids else []


def _id(row: SpanRow) -> str:
    return row.id


def _matches() -> str:
    return f"{INDEX} MATCH %s" if connection.vendor == "sqlite" else "body @@ %s::tsquery"


def _bounds(column: str, low: str | None, high: str | None) -> tuple[str, list[str]]:
    sql, params = "", []
    if low is not None:
        sql += f" AND {column} >= %s"
        params.append(low)
    if high is not None:
        sql += f" AND {column} < %s"
        params.append(high)
    return sql, params


def _number(sql: str, params: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.fetchone()[0])


def _all_ids(expr: str) -> list[str]:
    if connection.vendor == "sqlite":
        sql = f"SELECT id FROM {TABLE} WHERE rowid IN (SELECT rowid FROM {INDEX} WHERE {_matches()})"
    else:
        sql = f"SELECT span_id FROM {INDEX} WHERE {_matches()}"
    with connection.cursor() as cursor:
        cursor.execute(sql, [expr])
        return [row[0] for row in cursor.fetchall()]


def _chunks(project_id: int, low: str | None, high: str | None) -> Iterator[tuple[list[str], list[int]]]:
    """Roots, newest first, in chunks that double in size: their ids, and on SQLite their row numbers."""
    size = CHUNK_FIRST
    number = "rowid" if connection.vendor == "sqlite" else "0"
    while True:
        bounds, params = _bounds("id", low, high)
        sql = (
            f"SELECT id, {number} FROM {TABLE} WHERE project_id = %s AND parent_span_id IS NULL{bounds}"
            " ORDER BY id DESC LIMIT %s"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, [project_id, *params, size])
            found = cursor.fetchall()
        if found:
            yield [row[0] for row in found], [row[1] for row in found]
        if len(found) < size:
            return
        high = found[-1][0]
        size = min(size * 2, CHUNK_MOST)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The numbers as few ranges; a gap is bridged when reading over it costs less than another query."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and number - runs[-1][1] <= 2000:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _numbers(expr: str, run: tuple[int, int] | None) -> list[int]:
    """Row numbers of matches, all of them or those in a range (SQLite)."""
    sql, params = f"SELECT rowid FROM {INDEX} WHERE {_matches()}", [expr]
    if run is not None:
        sql += " AND rowid BETWEEN %s AND %s"
        params += run  # type: ignore[arg-type]
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [row[0] for row in cursor.fetchall()]


def _among(expr: str, ids: list[str]) -> set[str]:
    """Which of these ids match (Postgres). OFFSET 0 makes it read these rows instead of the index of all words."""
    sql = (
        f"SELECT span_id FROM (SELECT span_id, body FROM {INDEX} WHERE span_id = ANY(%s) OFFSET 0) few"
        f" WHERE {_matches()}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [ids, expr])
        return {row[0] for row in cursor.fetchall()}
