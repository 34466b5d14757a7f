"""Cases as CSV files: import with every fault named by its row, and an export that the import takes back whole.

Columns: `query` is required; `expected_results` and the semicolon lists `expected_capabilities`,
`expected_knowledge_base` and `expected_delegations` are those of the published client (source 1:4841-4862; sdk
evaluations/datasets.py:207-260). The further columns of an export carry everything else a case can have, as JSON where
it is no text. Rows are counted like a spreadsheet does: the header is row 1.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.core.api.errors import APIError
from apps.datasets.questions import normalized
from apps.tracing.ingest.cleaning import clean_text

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 100_000
# A cell may hold a query of a megabyte; the module's own limit of 128 kB holds for the whole process.
csv.field_size_limit(MAX_BYTES)

# Column: key of the main question.
_TEXTS = {
    "query": "query",
    "expected_results": "expectedResults",
    "judge_guideline": "judgeGuideline",
    "retrieval_context": "retrievalContext",
}
_LISTS = {
    "expected_capabilities": "expectedCapabilities",
    "expected_knowledge_base": "expectedKnowledgeBase",
    "expected_delegations": "expectedDelegations",
    "splits": "splits",
}
_JSON = {"expected_trajectory": "expectedTrajectory", "smoke_test": "smokeTest"}
_CONTEXT = "expected_retrieval_context"
# Of the case itself, and keys nobody knows.
_FOLLOW_UPS, _SOURCE, _QUESTION_EXTRA, _CASE_EXTRA = "follow_up_questions", "source", "question_extra", "case_extra"
COLUMNS = (
    "query",
    "expected_results",
    "expected_capabilities",
    "expected_knowledge_base",
    "expected_delegations",
    "judge_guideline",
    "retrieval_context",
    _CONTEXT,
    "expected_trajectory",
    "smoke_test",
    "splits",
    _FOLLOW_UPS,
    _SOURCE,
    _QUESTION_EXTRA,
    _CASE_EXTRA,
)
_DELIMITERS = (",", ";", "\t", "|")
# What a spreadsheet would run as a formula, and the mark that makes it text.
_FORMULA = re.compile(r"^'*[=+\-@\t\r\n＝＋－＠]")
_MARKED = re.compile(r"^'+[=+\-@\t\r\n＝＋－＠]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class CSVRefused(APIError):
    """A file that cannot be read as cases at all; 400, for one that is too large 413."""


@dataclass(frozen=True)
class BadRow:
    """A row that makes no case: its number in a spreadsheet and why."""

    row: int
    reason: str


@dataclass
class ParsedCSV:
    """The cases of a file, the rows that make none, and what was noticed about the file."""

    cases: list[dict[str, Any]] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    ignored_columns: list[str] = field(default_factory=list)
    delimiter: str = ","
    encoding: str = "utf-8"

    @property
    def warnings(self) -> list[str]:
        """Everything that a person should know before agreeing, one line each."""
        lines = [f"Row {bad.row}: {bad.reason}" for bad in self.bad_rows]
        if self.ignored_columns:
            lines.append(f"Columns that are not used: {', '.join(self.ignored_columns)}")
        if self.encoding == "cp1252":
            lines.append("The file is not UTF-8; it was read as Windows-1252. Check special characters.")
        return lines


def parse(data: bytes) -> ParsedCSV:
    """The cases of a CSV file: commas, semicolons, tabs or bars; UTF-8 with or without BOM, UTF-16 or Windows-1252.

    Raises CSVRefused for a file that is too large, empty, no text, or whose header is not usable. A row that makes no
    case is listed with its number; the others are not held up by it.
    """
    if len(data) > MAX_BYTES:
        raise CSVRefused(
            f"The file has {len(data) / 1024 / 1024:.0f} MB; at most {MAX_BYTES // 1024 // 1024} MB are taken. "
            "Split it into several datasets.",
            413,
        )
    text, encoding = _decoded(data)
    delimiter, text = _delimiter(text)
    rows = _Rows(text, delimiter)
    header = next((cells for _, cells, _ in rows if cells and any(cell.strip() for cell in cells)), None)
    if header is None:
        raise CSVRefused("The file is empty")
    columns = _header(header)
    parsed = ParsedCSV(delimiter=delimiter, encoding=encoding)
    parsed.ignored_columns = [
        cell.strip()[:60] or f"column {n + 1}" for n, cell in enumerate(header) if columns[n] is None
    ]
    for number, cells, fault in rows:
        if fault:
            parsed.bad_rows.append(BadRow(number, fault))
        elif any(cell.strip() for cell in cells):
            _read(parsed, number, cells, columns)
        elif len(cells) > 1:
            parsed.bad_rows.append(BadRow(number, "empty query"))
        if len(parsed.cases) + len(parsed.bad_rows) > MAX_ROWS:
            raise CSVRefused(f"The file has more than {MAX_ROWS:,} rows")
    return parsed


class _Rows:
    """(row number, cells, fault) of each record; a record the CSV rules forbid is a fault, not the end."""

    def __init__(self, text: str, delimiter: str) -> None:
        self._reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        self._number = 0

    def __iter__(self) -> Iterator[tuple[int, list[str], str]]:
        return self

    def __next__(self) -> tuple[int, list[str], str]:
        self._number += 1
        try:
            return self._number, next(self._reader), ""
        except csv.Error as error:
            reason = str(error)
            if "unexpected end of data" in reason:
                reason = "a quote that is never closed"
            elif "expected after" in reason:
                reason = "text after a closing quote; quotes inside a cell are written twice"
            return self._number, [], reason


def _decoded(data: bytes) -> tuple[str, str]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return clean_text(data.decode("utf-16")), "utf-16"
        except UnicodeDecodeError:
            raise CSVRefused("The file is not readable text") from None
    if b"\x00" in data[:4096] or data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"%PDF")):
        raise CSVRefused("The file is not a CSV file. Save the spreadsheet as CSV first.")
    try:
        return clean_text(data.decode("utf-8-sig")), "utf-8"
    except UnicodeDecodeError:
        return clean_text(data.decode("cp1252", "replace")), "cp1252"


def _delimiter(text: str) -> tuple[str, str]:
    """The delimiter under which the header names `query`, and the text without a leading `sep=` line."""
    text = text.lstrip("\ufeff")
    told = re.match(r"sep=(.)\r?\n", text, re.IGNORECASE)
    if told:
        return told.group(1), text[told.end() :]
    start = text.lstrip("\r\n")[:20_000]
    best = ","
    most = 0
    for candidate in _DELIMITERS:
        try:
            cells = next(csv.reader(io.StringIO(start, newline=""), delimiter=candidate), [])
        except csv.Error:
            continue
        score = len(cells) + (1000 if "query" in {_column(cell) for cell in cells} else 0)
        if score > most:
            best, most = candidate, score
    return best, text


def _column(cell: str) -> str:
    """A header cell as a column name: `Expected Results` and `expectedResults` are `expected_results`."""
    name = _CAMEL.sub("_", cell.strip().strip("\ufeff").strip())
    return re.sub(r"[\s\-]+", "_", name).lower()


def _header(cells: list[str]) -> list[str | None]:
    columns: list[str | None] = []
    for number, cell in enumerate(cells, 1):
        name = _column(cell)
        if name not in COLUMNS:
            columns.append(None)
            continue
        if name in columns:
            first = columns.index(name) + 1
            raise CSVRefused(f"The column “{name}” stands twice in the header (columns {first} and {number})")
        columns.append(name)
    if "query" not in columns:
        found = ", ".join(f"“{cell.strip()[:40]}”" for cell in cells[:20])
        raise CSVRefused(f"The header has no column “query”. It has: {found}")
    return columns


def _read(parsed: ParsedCSV, number: int, cells: list[str], columns: list[str | None]) -> None:
    if len(cells) > len(columns) and any(cell.strip() for cell in cells[len(columns) :]):
        parsed.bad_rows.append(BadRow(number, f"{len(cells)} cells, the header has {len(columns)}"))
        return
    values = {name: _unmarked(cell) for name, cell in zip(columns, cells, strict=False) if name is not None}
    if not values.get("query", "").strip():
        parsed.bad_rows.append(BadRow(number, "empty query"))
        return
    try:
        case = _case(values)
    except ValueError as error:
        parsed.bad_rows.append(BadRow(number, str(error)))
        return
    parsed.cases += normalized([case])


def _case(values: dict[str, str]) -> dict[str, Any]:
    main: dict[str, Any] = _object(values, _QUESTION_EXTRA)
    for column, key in _TEXTS.items():
        if values.get(column):
            main[key] = values[column]
    for column, key in _LISTS.items():
        if values.get(column, "").strip():
            main[key] = _list(values[column])
    for column, key in _JSON.items():
        if values.get(column, "").strip():
            main[key] = _object(values, column)
    context = values.get(_CONTEXT, "")
    if context.strip():
        main["expectedRetrievalContext"] = _text_or_list(context)
    case: dict[str, Any] = {**_object(values, _CASE_EXTRA), "main_question": main, "follow_up_questions": []}
    if values.get(_FOLLOW_UPS, "").strip():
        case["follow_up_questions"] = _follow_ups(values[_FOLLOW_UPS])
    source = _object(values, _SOURCE)
    if source:
        case["source"] = source
    return case


def _object(values: dict[str, str], column: str) -> dict[str, Any]:
    text = values.get(column, "").strip()
    if not text:
        return {}
    found = _json(text)
    if not isinstance(found, dict):
        raise ValueError(f"{column} is not a JSON object")
    return found


def _follow_ups(text: str) -> list[dict[str, Any]]:
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(item, dict | str) for item in found):
        raise ValueError(f"{_FOLLOW_UPS} is not a JSON list of questions")
    return [{"query": item} if isinstance(item, str) else item for item in found]


def _list(text: str) -> list[str]:
    found = _json(text) if text.lstrip().startswith("[") else None
    if isinstance(found, list) and all(isinstance(item, str) for item in found):
        return found
    return [item.strip() for item in text.split(";") if item.strip()]


def _text_or_list(text: str) -> str | list[str]:
    if text[0] in '["':
        found = _json(text)
        if isinstance(found, str) or (isinstance(found, list) and all(isinstance(item, str) for item in found)):
            return found
    return text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unmarked(cell: str) -> str:
    return cell[1:] if _MARKED.match(cell) else cell


# --- Export


def lines(questions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A dataset's cases as lines of a CSV file; only columns that some case uses, `query` first.

    Without a BOM, which the published client's own reader would take for a part of the first header. A cell that a
    spreadsheet would run as a formula begins with an apostrophe; the import takes it off again.
    """
    rows = [_cells(case) for case in questions]
    used = [column for column in COLUMNS if column == "query" or any(row.get(column) for row in rows)]
    if "expected_results" not in used:
        used.insert(1, "expected_results")
    yield _line(used)
    for row in rows:
        yield _line([_marked(row.get(column, "")) for column in used])


def _line(cells: list[str]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_MINIMAL, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue()


def _marked(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _cells(case: dict[str, Any]) -> dict[str, str]:
    main = dict(case.get("main_question") or {})
    rest = {key: value for key, value in case.items() if key not in ("main_question", "follow_up_questions", "source")}
    cells = {column: main.pop(key, "") for column, key in _TEXTS.items()}
    for column, key in _LISTS.items():
        if key in main:
            cells[column] = _joined(main.pop(key))
    for column, key in _JSON.items():
        if key in main:
            cells[column] = _dump(main.pop(key))
    if "expectedRetrievalContext" in main:
        context = main.pop("expectedRetrievalContext")
        plain = isinstance(context, str) and context.strip() and context[0] not in '["'
        cells[_CONTEXT] = context if plain else _dump(context)
    if case.get("follow_up_questions"):
        cells[_FOLLOW_UPS] = _dump(case["follow_up_questions"])
    if case.get("source"):
        cells[_SOURCE] = _dump(case["source"])
    if main:
        cells[_QUESTION_EXTRA] = _dump(main)
    if rest:
        cells[_CASE_EXTRA] = _dump(rest)
    return cells


def _joined(items: list[str]) -> str:
    """`a;b` as the client reads it, JSON where that would not come back equal."""
    simple = items and all(item and ";" not in item and item == item.strip() for item in items)
    return ";".join(items) if simple and not items[0].startswith("[") else _dump(items)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
