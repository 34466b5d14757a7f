"""What the Live Traces page shows: the filters of its address, its rows, and how to say that there are none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core.ids import LENGTH, is_id
from apps.core.times import now_ms
from apps.dashboard import texts
from apps.dashboard.formats import count, duration
from apps.dashboard.previews import READ, beginning, first_line
from apps.projects.models import Project
from apps.tracing import browse, selectors
from apps.tracing.models import Agent, Status, Traffic
from apps.tracing.selectors import TraceFilters
from apps.tracing.store.browse import TreeTotals, tree_totals
from apps.tracing.store.reads import SpanRow

PAGE = 50
OTHER = "other"
WINDOWS = {
    "1h": (3_600_000, gettext_lazy("Last 60 minutes")),
    "24h": (86_400_000, gettext_lazy("Last 24 hours")),
    "7d": (7 * 86_400_000, gettext_lazy("Last 7 days")),
    "30d": (30 * 86_400_000, gettext_lazy("Last 30 days")),
}
SOURCES = (
    ("production", gettext_lazy("Production")),
    ("eval", gettext_lazy("Eval")),
    ("all", gettext_lazy("All")),
)
STATUSES = (("ok", gettext_lazy("Succeeded")), ("error", gettext_lazy("Failed")))


@dataclass(frozen=True)
class Applied:
    """One filter in force: its chip, the address without it, and the filters without it."""

    name: str
    text: str
    value: str
    without: TraceFilters
    url: str


def _clean(text: str) -> str:
    # Postgres cannot take the NUL character in a parameter.
    return text.replace("\x00", "").strip()


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


@dataclass
class TraceQuery:
    """The address of the list, read; anything unknown in it is ignored."""

    params: QueryDict
    now: int = field(default_factory=now_ms)

    def _one(self, name: str, limit: int = 300) -> str:
        return _clean(self.params.get(name, ""))[:limit]

    @cached_property
    def search(self) -> str:
        """Words to look for, or an id."""
        return self._one("q")

    @cached_property
    def source(self) -> str:
        """`production` (what the page opens on), `eval` or `all`."""
        value = self._one("source")
        return value if value in selectors.SOURCES else "production"

    @cached_property
    def frameworks(self) -> tuple[str, ...]:
        """Chosen labels; `other` stands for unlabelled traces."""
        return tuple(
            dict.fromkeys(_clean(label).lower()[:64] for label in self.params.getlist("framework") if label.strip())
        )

    @cached_property
    def window(self) -> str:
        """One of WINDOWS, or "" for all time or an exact range."""
        value = self._one("window")
        return value if value in WINDOWS and not self.has_range else ""

    @property
    def has_range(self) -> bool:
        """Whether the address names an exact range (a click into the volume chart)."""
        return self.since is not None or self.until is not None

    @cached_property
    def since(self) -> int | None:
        """Exact start in milliseconds since 1970."""
        return _integer(self._one("since"))

    @cached_property
    def until(self) -> int | None:
        """Exact end in milliseconds since 1970, exclusive."""
        return _integer(self._one("until"))

    @cached_property
    def status(self) -> str:
        """`ok`, `error` or ""."""
        value = self._one("status")
        return value if value in ("ok", "error") else ""

    @property
    def since_ms(self) -> int | None:
        """Start of what is shown."""
        return self.now - WINDOWS[self.window][0] if self.window else self.since

    @cached_property
    def filters(self) -> TraceFilters:
        """The selector's filters."""
        return TraceFilters(
            search=self.search,
            frameworks=self.frameworks,
            source=self.source,
            agent_id=self._one("agent", LENGTH),
            model=self._one("model"),
            status=self.status,
            since_ms=self.since_ms,
            until_ms=self.until,
            tool=self._one("tool"),
        )

    @property
    def cursor(self) -> str | None:
        """The row before the first one shown; None on the first page."""
        value = self._one("cursor", 64)
        return value if is_id(value) else None

    @property
    def offset(self) -> int:
        """How many rows stand before this page, for the pager's text only."""
        return (_integer(self._one("at")) or 0) if self.cursor else 0

    def url(self, **changes: str | None) -> str:
        """The list's address with changes; the place in the list goes with any of them."""
        pairs = [(name, value) for name, values in self.params.lists() for value in values if value]
        drop = set(changes) | ({"cursor", "at"} - set(changes))
        pairs = [(name, value) for name, value in pairs if name not in drop]
        pairs += [(name, value) for name, value in changes.items() if value]
        base = reverse("dashboard:traces")
        return f"{base}?{urlencode(pairs)}" if pairs else base

    def applied(self, agents: dict[str, str]) -> list[Applied]:
        """Filters in force beyond the page's own default, in the order of the toolbar."""
        filters, found = self.filters, []

        def add(name: str, text: str, value: str, drop: dict[str, Any], *names: str) -> None:
            url = self.url(**dict.fromkeys(names or (name,)))
            found.append(Applied(name, text, value, replace(filters, **drop), url))

        if filters.search:
            add("q", _("search is"), filters.search, {"search": ""})
        if filters.frameworks:
            labels = [_("Other / custom") if label == OTHER else label for label in filters.frameworks]
            shown = " / ".join(labels[:2]) + (f" + {len(labels) - 2}" if len(labels) > 2 else "")
            add("framework", _("framework is"), shown, {"frameworks": ()})
        if filters.agent_id:
            add("agent", _("agent is"), agents.get(filters.agent_id, filters.agent_id), {"agent_id": ""})
        if filters.model:
            add("model", _("model is"), filters.model, {"model": ""})
        if filters.tool:
            add("tool", _("calls tool"), filters.tool, {"tool": ""})
        if filters.status:
            add("status", _("status is"), str(dict(STATUSES)[filters.status]), {"status": ""})
        if self.has_range:
            drop = {"since_ms": None, "until_ms": None}
            add("range", _("time is"), _("a range of the chart"), drop, "since", "until")
        elif self.window:
            add("window", _("time is"), str(WINDOWS[self.window][1]), {"since_ms": None})
        return found


@dataclass(frozen=True)
class TraceRow:
    """One row as the page shows it."""

    row: SpanRow
    agent: str
    asked: str
    answered: str
    totals: TreeTotals
    share: float

    @property
    def id(self) -> str:
        """The trace's id."""
        return self.row.id

    @property
    def failed(self) -> bool:
        """Whether the root carries an error."""
        return self.row.status == Status.ERROR

    @property
    def is_eval(self) -> bool:
        """Whether an evaluation run made this trace."""
        return self.row.traffic == Traffic.EVAL_RUN

    @property
    def title(self) -> str:
        """What was asked, else the trace's name."""
        return self.asked or self.row.name

    @property
    def error(self) -> str:
        """First line of the error."""
        return first_line(self.row.error)

    @property
    def tokens(self) -> int | None:
        """Input and output tokens of the whole tree, each counted once."""
        parts = [n for n in (self.totals.input_tokens, self.totals.output_tokens) if n is not None]
        return sum(parts) if parts else None

    @property
    def model(self) -> str:
        """The root's model, else that of its model calls."""
        return self.row.model or self.totals.model or ""

    @property
    def more_models(self) -> int:
        """How many other models the trace used."""
        return max(0, self.totals.models - 1)

    @property
    def tools_passed(self) -> int:
        """Tool calls of the root that did not fail."""
        return self.row.tool_count - self.row.tool_failures

    @property
    def summary(self) -> str:
        """The row in one sentence, for readers who do not see it."""
        return _("%(state)s, %(duration)s, %(spans)s spans") % {
            "state": _("failed") if self.failed else _("succeeded"),
            "duration": duration(self.row.latency_ms),
            "spans": count(self.totals.spans),
        }


def rows_of(project: Project, rows: list[SpanRow], agents: dict[str, str]) -> list[TraceRow]:
    """The page's rows with their trees' totals, in one query more."""
    totals = tree_totals(project.pk, rows)
    # One very slow trace must not make all other bars invisible: beyond the ninth tenth a bar is simply full.
    lengths = sorted(row.latency_ms or 0 for row in rows)
    slowest = (lengths[int(len(lengths) * 0.9)] if lengths else 0) or 1
    return [
        TraceRow(
            row,
            agents.get(row.agent_id or "", ""),
            first_line(texts.asked(beginning(row.input))),
            first_line(texts.answered(beginning(row.output))),
            totals[row.id],
            min(100.0, round((row.latency_ms or 0) / slowest * 100, 1)),
        )
        for row in rows
    ]


@dataclass(frozen=True)
class TraceListing:
    """Everything the list region needs."""

    rows: list[TraceRow]
    total: int
    first: int
    last: int
    newer: str
    older: str
    newest: str
    applied: list[Applied]

    @property
    def pager(self) -> str:
        """`1-50 of 2,284`."""
        if not self.rows:
            return _("0 traces")
        return _("%(first)s-%(last)s of %(total)s") % {
            "first": count(self.first),
            "last": count(self.last),
            "total": count(self.total),
        }


def listing(project: Project, query: TraceQuery, agents: dict[str, str]) -> TraceListing:
    """One page of the list. A cursor that names no row any more (retention) shows the first page."""
    cursor = query.cursor
    try:
        page = selectors.list_traces(project, query.filters, cursor, PAGE, preview=READ)
    except selectors.UnknownCursor:
        cursor = None
        page = selectors.list_traces(project, query.filters, None, PAGE, preview=READ)
    offset = query.offset if cursor else 0
    rows = rows_of(project, page.rows, agents)
    older = newer = newest = ""
    if page.next_cursor:
        older = query.url(cursor=page.next_cursor, at=str(offset + len(rows)))
    if cursor:
        newest = query.url()
        before = browse.cursor_of_newer_page(project, query.filters, cursor, PAGE)
        newer = query.url(cursor=before, at=str(max(0, offset - PAGE))) if before else newest
    return TraceListing(
        rows,
        page.total,
        offset + 1,
        offset + len(rows),
        newer,
        older,
        newest if newer != newest else "",
        query.applied(agents),
    )


@dataclass(frozen=True)
class Way:
    """A filter whose removal would show something."""

    text: str
    url: str
    count: int


def ways_out(project: Project, query: TraceQuery, applied: list[Applied]) -> list[Way]:
    """For an empty list: each filter that can be dropped, with how many traces that shows; the most first."""
    ways = [
        Way(_("Drop “%(filter)s”") % {"filter": f"{item.text} {item.value}"}, item.url, n)
        for item in applied
        if (n := selectors.count_traces(project, item.without))
    ]
    if query.source != "all":
        n = selectors.count_traces(project, replace(query.filters, source="all"))
        if n:
            ways.append(Way(_("Show production and eval traffic"), query.url(source="all"), n))
    if not ways and applied:
        n = selectors.count_traces(project, TraceFilters(source=query.source))
        if n:
            ways.append(Way(_("Drop all filters"), reverse("dashboard:traces"), n))
    return sorted(ways, key=lambda way: -way.count)


def agent_names(project: Project) -> dict[str, str]:
    """Names by id of the project's agents."""
    return dict(Agent.objects.filter(project=project).order_by("name", "id").values_list("id", "name")[:2_000])
