"""The trace list as CSV or JSON, row by row."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.text import slugify

from apps.core.times import to_iso
from apps.dashboard import texts
from apps.dashboard.previews import READ, beginning, first_line
from apps.projects.models import Project
from apps.tracing import selectors
from apps.tracing.models import Status
from apps.tracing.selectors import TraceFilters
from apps.tracing.store.browse import tree_totals

MAX_ROWS = 10_000
_BATCH = 100
COLUMNS = (
    "id",
    "createdAt",
    "name",
    "status",
    "agent",
    "framework",
    "model",
    "latencyMs",
    "inputTokens",
    "outputTokens",
    "costUSD",
    "toolCalls",
    "toolFailures",
    "sessionId",
    "spans",
    "input",
    "output",
    "error",
)
# A cell that starts so is a formula to a spreadsheet; an apostrophe makes it text.
_FORMULA = re.compile(r"^[=+\-@\t\r]")


def file_name(page: str, project: str, window: str, form: str) -> str:
    """`traces-larkfield-supply-7d.csv`."""
    return f"{page}-{slugify(project) or 'project'}-{window}.{form}"


def rows(project: Project, filters: TraceFilters, agents: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The matching traces, newest first, with previews of what was said (the NDJSON export has the whole)."""
    cursor: str | None = None
    sent = 0
    while sent < MAX_ROWS:
        page = selectors.list_traces(project, filters, cursor, _BATCH, preview=READ)
        totals = tree_totals(project.pk, page.rows)
        for row in page.rows:
            tree = totals[row.id]
            yield {
                "id": row.id,
                "createdAt": to_iso(row.created_ms),
                "name": row.name,
                "status": "error" if row.status == Status.ERROR else "ok",
                "agent": agents.get(row.agent_id or ""),
                "framework": row.framework,
                "model": row.model,
                "latencyMs": row.latency_ms,
                "inputTokens": tree.input_tokens,
                "outputTokens": tree.output_tokens,
                "costUSD": tree.cost_usd,
                "toolCalls": row.tool_count,
                "toolFailures": row.tool_failures,
                "sessionId": row.session_id,
                "spans": tree.spans,
                "input": first_line(texts.asked(beginning(row.input)), 500),
                "output": first_line(texts.answered(beginning(row.output)), 500),
                "error": first_line(row.error, 500) or None,
            }
        sent += len(page.rows)
        cursor = page.next_cursor
        if cursor is None:
            return


def _cell(value: Any) -> Any:
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return "" if value is None else value


def as_csv(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """CSV lines with a header; cells that a spreadsheet would run as formulas are made text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for item in items:
        writer.writerow([_cell(item[name]) for name in COLUMNS])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def as_json(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One JSON array, one object a line."""
    yield "["
    separator = "\n"
    for item in items:
        yield separator + json.dumps(item, ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n"
