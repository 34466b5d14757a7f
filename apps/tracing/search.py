"""Full-text search over traces: which words of a root are found, and the tables that find them.

Words are runs of letters and digits in any script, case-folded; Chinese, Japanese and Korean text, which has no spaces,
is split into single characters. A root is indexed by its distinct words only, bounded in number and length.
SQLite: the contentless FTS5 table `tracing_spansearch` (rowid = rowid of the span). Postgres: the table
view `tracing_spansearch(span_id, project_id, body tsvector)` over the links, with a GIN index.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

from apps.tracing.models import Traffic
from apps.tracing.store.rows import Row

# A prompt with retrieved context has thousands of words; more than this is data rather than text.
MAX_WORDS = 4000
MAX_WORD_CHARS = 40
# How much of each payload is looked at: what the default AGENTX_INGEST_MAX_FIELD_CHARS keeps of it.
MAX_SCANNED_CHARS = 100_000

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(
    r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_ESCAPE = re.compile(r"\\[^u]")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
# ASCII: letters and digits stay (in lower case), everything else separates.
_ASCII = {code: (chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)}
_ASCII_TABLE = "".join(_ASCII[code] for code in range(128))
_EVAL_RUN = int(Traffic.EVAL_RUN)
# Marks of an eval-run root and of a failed one.
EVAL_RUN = "§e"
FAILED = "§x"


@lru_cache(maxsize=8192)
@lru_cache(maxsize=4096)
def mark(kind: str, value: str) -> str:
    """The mark of a value: p project, f framework ("" for none), m model, a agent, t tool."""
    return f"§{kind}{blake2b(value.encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


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
    if found and len(max(found, key=len)) > MAX_WORD_CHARS:
        found = {word[:MAX_WORD_CHARS] for word in found}
    return list(found)


def tokens(payload: str | bytes) -> list[str]:
    """The distinct searchable words of a text or of JSON bytes, bounded in number and length."""
    return _bounded(words(payload if isinstance(payload, str) else payload.decode("utf-8", "replace")))


def row_tokens(row: Row) -> list[str]:
    """What a root is found by: words of name, input, output, error and session id, and its marks.

    Its own id is looked up directly.
    """
    parts = [row.name, row.input or "", row.output or "", row.error or "", row.session_id or ""]
    if sum(map(len, parts)) <= MAX_SCANNED_CHARS:
        return _bounded(words(" ".join(parts))) + row_marks(row)
    found: set[str] = set()
    for part in parts:
        found |= words(part)
    return _bounded(found) + row_marks(row)


def row_marks(row: Row) -> list[str]:
    """Marks filed beside the words of a root, so that filters are answered by the same index.

    They begin with a character that is in no word. All of them hang on columns of a root that never change.
    """
    found = [mark("p", str(row.project_id))]
    if row.traffic == _EVAL_RUN:
        found.append(EVAL_RUN)
    if row.status:
        found.append(FAILED)
    found.append(mark("f", row.framework or ""))
    if row.model:
        found.append(mark("m", row.model))
    if row.agent_id:
        found.append(mark("a", row.agent_id))
    found.extend(mark("t", tool) for tool, _, _ in row.tools)
    return found


def query_words(text: str) -> list[str]:
    """The distinct words of what a person typed, in their order, at most 20."""
    text = _CJK.sub(lambda match: f" {match.group(0)} ", text[:1000].casefold())
    return list(dict.fromkeys(word[:MAX_WORD_CHARS] for word in _WORD.findall(text)))[:20]
