"""Full-text search over traces: which words of a root are found, and the tables that find them.

Words are runs of letters and digits in any script, case-folded; Chinese, Japanese and Korean text, which has no spaces,
is split into single characters. A root is indexed by its distinct words only, bounded in number and length.
SQLite: the contentless FTS5 table `tracing_spansearch` (rowid = rowid of the span). Postgres: the table
`tracing_spansearch(span_id, project_id, body tsvector)` with a GIN index.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from django.db import connection

from apps.tracing.store.rows import Row

MAX_WORDS = 800
MAX_WORD_CHARS = 40
# How much of each payload is looked at.
MAX_SCANNED_CHARS = 30_000

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_ESCAPE = re.compile(r"\\[^u]")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
# ASCII: letters and digits stay (in lower case), everything else separates.
_ASCII = {code: (chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)}
_ASCII_TABLE = "".join(_ASCII[code] for code in range(128))


def words(text: str) -> set[str]:
    """The distinct searchable words of a text that may be JSON; escapes in it count as what they stand for."""
    text = text[:MAX_SCANNED_CHARS]
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
        if "\\u" in text:
            text = _UNICODE_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if text.isascii():
        found = set(text.translate(_ASCII_TABLE).split())
    else:
        text = _CJK.sub(lambda match: f" {match.group(0)} ", text.casefold())
        found = set(_WORD.findall(text))
    return found


def _bounded(found: set[str]) -> list[str]:
    if len(found) > MAX_WORDS:
        # Shorter words first: long ones are mostly encoded data nobody types.
        found = set(sorted(found, key=lambda word: (len(word), word))[:MAX_WORDS])
    if any(len(word) > MAX_WORD_CHARS for word in found):
        found = {word[:MAX_WORD_CHARS] for word in found}
    return list(found)


def tokens(payload: str | bytes) -> list[str]:
    """The distinct searchable words of a text or of JSON bytes, bounded in number and length."""
    return _bounded(words(payload if isinstance(payload, str) else payload.decode("utf-8", "replace")))


def row_tokens(row: Row) -> list[str]:
    """The words a root is found by: name, input, output, error and session id (its own id is looked up directly)."""
    parts = [row.name, row.input or "", row.output or "", row.error or "", row.session_id or ""]
    if sum(map(len, parts)) <= MAX_SCANNED_CHARS:
        return _bounded(words(" ".join(parts)))
    found: set[str] = set()
    for part in parts:
        found |= words(part)
    return _bounded(found)


class Match(msgspec.Struct, frozen=True):
    """A condition on span rows: SQL with %s placeholders for `WHERE`, and its parameters."""

    sql: str
    params: list[Any]


def matching(project_id: int, query: str, *, alias: str = "tracing_span") -> Match | None:
    """The condition that a root of the project holds every word of the query, the last one as a prefix.

    None when the query holds no word at all: nothing can match.
    """
    found = [word[:MAX_WORD_CHARS] for word in _ordered_words(query)]
    if not found:
        return None
    if connection.vendor == "sqlite":
        quoted = " ".join(f'"{word}"' for word in found[:-1])
        last = f'"{found[-1]}"*'
        return Match(
            f"{alias}.rowid IN (SELECT rowid FROM tracing_spansearch WHERE tracing_spansearch MATCH %s)",
            [f"{quoted} {last}".strip()],
        )
    query_text = " & ".join([*(f"'{word}'" for word in found[:-1]), f"'{found[-1]}':*"])
    return Match(
        f"{alias}.id IN (SELECT span_id FROM tracing_spansearch WHERE project_id = %s AND body @@ %s::tsquery)",
        [project_id, query_text],
    )


def _ordered_words(query: str) -> list[str]:
    text = _CJK.sub(lambda match: f" {match.group(0)} ", query[:1000].casefold())
    return list(dict.fromkeys(_WORD.findall(text)))[:20]
