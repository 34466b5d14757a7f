"""Reads of traces, sessions and agents. Pages, API and export all come through here.

Lists walk indexes by keyset, totals come from the all-time rollup wherever the filters are its dimensions, and the
number of queries of each function is fixed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, Q, Sum

from apps.core.ids import LENGTH, MAX_MS, is_id, time_prefix
from apps.projects.models import Project
from apps.tracing import search
from apps.tracing.ingest.normalize import stored_identifier
from apps.tracing.models import Agent, Grain, Rollup, Session, Status, ToolRollup, Traffic
from apps.tracing.rollups.fold import settle
from apps.tracing.store import reads, searches
from apps.tracing.store.reads import SpanRow
from apps.tracing.trajectory import in_order

SOURCES = ("production", "eval", "all")
UNLABELLED = "other"
PAGE_DEFAULT = 50
PAGE_MAX = 100
_HOUR_MS = 3_600_000
# Rows a filtered page may be expected to read before the search index is asked instead.
_SCAN_MOST = 2000
_SEARCHES_MOST = 500
_search_locks = [threading.Lock() for _ in range(16)]
_searches: dict[Any, tuple[Any, str, int]] = {}


class UnknownCursor(ValueError):
    """The cursor names no row of the list; the API answers 400."""


@dataclass(frozen=True)
class TraceFilters:
    """What a trace list is narrowed to. Labels must come folded (trimmed, lower case); "other" finds unlabelled roots.

    `status` is "ok", "error" or "" for both; times are milliseconds since 1970, `since_ms` inclusive and `until_ms`
    exclusive.
    """

    search: str = ""
    frameworks: tuple[str, ...] = ()
    source: str = "all"
    agent_id: str = ""
    model: str = ""
    status: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    tool: str = ""

    @property
    def timeless(self) -> bool:
        """Whether no range of time is asked for."""
        return self.since_ms is None and self.until_ms is None

    @property
    def by_dimension(self) -> bool:
        """Whether a filter other than search and time is set."""
        return bool(self.source != "all" or self.frameworks or self.agent_id or self.model or self.status or self.tool)


@dataclass(frozen=True)
class TracePage:
    """A page of roots, newest first. `total` counts all pages; `next_cursor` is None on the last one."""

    rows: list[SpanRow]
    total: int
    next_cursor: str | None = None


@dataclass(frozen=True)
class SessionRow:
    """One listed session with its agent's name. Times are milliseconds since 1970."""

    session_id: str
    agent_id: str | None
    agent_name: str | None
    framework: str | None
    turn_count: int
    span_count: int
    error_count: int
    total_latency_ms: float
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    simulated: bool
    first_ms: int
    last_ms: int


@dataclass(frozen=True)
class SessionPage:
    """Sessions, most recently active first; `total` counts all pages, 0 when it was not asked for."""

    rows: list[SessionRow] = field(default_factory=list)
    total: int = 0
    next_cursor: str | None = None


# --- Traces


def list_traces(
    project: Project,
    filters: TraceFilters | None = None,
    cursor: str | None = None,
    limit: int = PAGE_DEFAULT,
    *,
    preview: int | None = None,
) -> TracePage:
    """A page of the project's roots, newest first, after the row `cursor`.

    `limit` is clamped to 1..100. `preview` cuts the JSON text of input and output, for pages that show one line of it.
    Raises UnknownCursor for a cursor that is no root of this project.
    """
    filters = filters or TraceFilters()
    limit = min(max(limit, 1), PAGE_MAX)
    if cursor is not None and not (is_id(cursor) and reads.is_root_of(project.pk, cursor)):
        raise UnknownCursor(cursor)
    settle()
    select = reads.LISTED if preview is None else reads.columns(preview=preview)
    if filters.search:
        found = _trace_by_id(project, filters, select)
        if found is not None:
            return TracePage([] if cursor is not None and found.id >= cursor else [found], 1)
        if not search.query_words(filters.search):
            return TracePage([], 0)
    expr, matching = _indexed(project, filters)
    total = _count(project, filters, expr, matching)
    if total == 0:
        return TracePage([], 0)
    if not expr and _sparse(project, filters, total, limit):
        expr, matching = _expression(project, filters), total
    if expr:
        low, high = _id_bounds(filters)
        upper = cursor if high is None or (cursor is not None and cursor < high) else high
        ids = searches.newest(project.pk, expr, matching, low=low, high=upper, limit=limit + 1)
        rows = searches.rows(project.pk, ids, select)
    else:
        where, params = conditions(filters)
        rows = reads.roots(project.pk, where, params, before=cursor, limit=limit + 1, select=select)
    more = len(rows) > limit
    rows = rows[:limit]
    return TracePage(rows, max(total, len(rows)), rows[-1].id if more else None)


def count_traces(project: Project, filters: TraceFilters | None = None) -> int:
    """How many roots match, over all pages."""
    filters = filters or TraceFilters()
    settle()
    if filters.search:
        if _trace_by_id(project, filters, reads.LIGHT) is not None:
            return 1
        if not search.query_words(filters.search):
            return 0
    return _count(project, filters, *_indexed(project, filters))


def _trace_by_id(project: Project, filters: TraceFilters, select: str) -> SpanRow | None:
    """The root that the search text is the id of, when it passes the other filters."""
    text = filters.search.strip()
    if len(text) != LENGTH:
        return None
    where, params = conditions(replace(filters, search="", tool=""))
    rows = reads.roots(
        project.pk, f"id = %s AND {where}" if where else "id = %s", [text, *params], limit=1, select=select
    )
    return rows[0] if rows else None


def _count(project: Project, filters: TraceFilters, expr: str, matching: int) -> int:
    """How many roots match; `expr` and `matching` are of `_indexed`. The aggregates are settled."""
    if not expr:
        return (
            _roots_in(project, filters, Grain.ALL_TIME, 0, 1) if filters.timeless else _count_in_time(project, filters)
        )
    return matching if filters.timeless else searches.count_between(project.pk, expr, *_id_bounds(filters))


def _roots_in(project: Project, filters: TraceFilters, grain: Grain, start: int, end: int) -> int:
    """Roots with these dimensions in the buckets `[start, end)` of one grain."""
    rows = Rollup.objects.filter(project=project, grain=grain, is_root=True, bucket__gte=start, bucket__lt=end)
    return dimensions(rows, filters).aggregate(n=Sum("spans"))["n"] or 0


def _count_in_time(project: Project, filters: TraceFilters) -> int:
    """Whole hours and days come from the rollups, the begun hours at both ends are counted from the rows."""
    since = filters.since_ms if filters.since_ms is not None else 0
    until = filters.until_ms if filters.until_ms is not None else MAX_MS
    first, last = -(-since // _HOUR_MS), until // _HOUR_MS
    if filters.until_ms is None:
        last = max(first, last)
    if first >= last:
        where, params = conditions(filters)
        return reads.count_roots(project.pk, where, params)
    total = _roots_in(project, filters, Grain.HOUR, first * 3600, last * 3600)
    for low, high in ((since, first * _HOUR_MS), (last * _HOUR_MS, until)):
        if low < high:
            where, params = conditions(replace(filters, since_ms=low, until_ms=high))
            total += reads.count_roots(project.pk, where, params)
    return total


def _sparse(project: Project, filters: TraceFilters, total: int, limit: int) -> bool:
    """Whether matches lie so thinly among the roots that walking the roots would read too many rows."""
    if not filters.by_dimension or not filters.timeless:
        return False
    everything = _roots_in(project, TraceFilters(), Grain.ALL_TIME, 0, 1)
    return min(limit + 1, total) * everything > _SCAN_MOST * total


def _indexed(project: Project, filters: TraceFilters) -> tuple[str, int]:
    """The index expression of filters that only the search index answers, "" for others, and how many roots match it
    at any time.

    Those of a search are kept until the project's roots change: every page needs them.
    """
    if filters.search:
        return _known_search(project, filters)
    if not filters.tool:
        return "", 0
    tools = ToolRollup.objects.filter(project=project, grain=Grain.ALL_TIME, bucket=0, tool=filters.tool)
    return _expression(project, filters), dimensions(tools, filters).aggregate(n=Sum("roots"))["n"] or 0


def _known_search(project: Project, filters: TraceFilters) -> tuple[str, int]:
    """The expression of a search and how many roots match it at any time."""
    filters = replace(filters, since_ms=None, until_ms=None)
    key = (project.pk, filters)
    # One thread finds out, those that ask for the same meanwhile wait for its answer.
    with _search_locks[hash(key) % len(_search_locks)]:
        alone = not reads.others_have_roots(project.pk)
        version = (_roots_in(project, TraceFilters(), Grain.ALL_TIME, 0, 1), reads.newest_root(project.pk), alone)
        known = _searches.get(key)
        if known is not None and known[0] == version:
            return known[1], known[2]
        expr = _expression(project, filters, alone=alone)
        total = searches.count(expr)
        if len(_searches) >= _SEARCHES_MOST:
            _searches.clear()
        _searches[key] = (version, expr, total)
        return expr, total


def _expression(project: Project, filters: TraceFilters, *, alone: bool = False) -> str:
    """The filters but times in the language of the search index.

    `alone` says that no other project has roots, which saves intersecting with the mark of them all. Rows are read by
    project in any case.
    """
    marks = [] if alone and filters.search else [search.mark("p", str(project.pk))]
    groups: list[tuple[str, ...]] = []
    without: list[str] = []
    if filters.source == "production":
        without.append(search.EVAL_RUN)
    elif filters.source == "eval":
        marks.append(search.EVAL_RUN)
    if filters.frameworks:
        labels = [*filters.frameworks, ""] if UNLABELLED in filters.frameworks else filters.frameworks
        groups.append(tuple(search.mark("f", label) for label in labels))
    if filters.agent_id:
        marks.append(search.mark("a", filters.agent_id))
    if filters.model:
        marks.append(search.mark("m", filters.model))
    if filters.tool:
        marks.append(search.mark("t", filters.tool))
    if filters.status == "error":
        marks.append(search.FAILED)
    elif filters.status:
        without.append(search.FAILED)
    words = tuple(search.query_words(filters.search)) if filters.search else ()
    return searches.expression(searches.Query(words, tuple(marks), tuple(groups), tuple(without)))


def _id_bounds(filters: TraceFilters) -> tuple[str | None, str | None]:
    """The range of times as a range of ids."""
    return (
        None if filters.since_ms is None else time_prefix(filters.since_ms),
        None if filters.until_ms is None else time_prefix(filters.until_ms),
    )


def dimensions(rows: Any, filters: TraceFilters) -> Any:
    """A rollup queryset narrowed to the filters that are its dimensions."""
    if filters.source == "production":
        rows = rows.filter(traffic__in=(Traffic.PRODUCTION, Traffic.UNMONITORED))
    elif filters.source == "eval":
        rows = rows.filter(traffic=Traffic.EVAL_RUN)
    if filters.frameworks:
        wanted = [*filters.frameworks, ""] if UNLABELLED in filters.frameworks else list(filters.frameworks)
        rows = rows.filter(framework__in=wanted)
    if filters.agent_id:
        rows = rows.filter(agent_id=filters.agent_id)
    if filters.model:
        rows = rows.filter(model=filters.model)
    if filters.status:
        rows = rows.filter(status=Status.ERROR if filters.status == "error" else Status.OK)
    return rows


def conditions(filters: TraceFilters) -> tuple[str, list[Any]]:
    """The filters but search and tool as SQL over the columns of one span row."""
    parts: list[str] = []
    params: list[Any] = []

    def add(sql: str, *values: Any) -> None:
        parts.append(sql)
        params.extend(values)

    if filters.source == "production":
        add("traffic <> %s", Traffic.EVAL_RUN.value)
    elif filters.source == "eval":
        add("traffic = %s", Traffic.EVAL_RUN.value)
    if filters.frameworks:
        marks = ", ".join(["%s"] * len(filters.frameworks))
        unlabelled = " OR framework IS NULL" if UNLABELLED in filters.frameworks else ""
        add(f"(framework IN ({marks}){unlabelled})", *filters.frameworks)
    if filters.agent_id:
        add("agent_id = %s", filters.agent_id)
    if filters.model:
        add("model = %s", filters.model)
    if filters.status:
        add("status = %s", (Status.ERROR if filters.status == "error" else Status.OK).value)
    if filters.since_ms is not None:
        add("id >= %s", time_prefix(filters.since_ms))
    if filters.until_ms is not None:
        add("id < %s", time_prefix(filters.until_ms))
    return " AND ".join(parts), params


def get_span(project: Project, span_id: str) -> SpanRow | None:
    """One row of the project by its id, root or child, with its payloads; None when there is none."""
    return reads.one(project.pk, span_id) if is_id(span_id) else None


def trace_tree(project: Project, root_id: str, payloads: bool = True) -> list[SpanRow]:
    """The root and every row below it, in the order they began; empty for an unknown root.

    Rows that hang on a span which was never stored cannot be traced to a root; those of the root's session that began
    between this root and the session's next one are taken to be its own.
    """
    select = reads.columns(payloads=payloads)
    root = get_span(project, root_id)
    if root is None:
        return []
    rows = [root, *reads.of_tree(project.pk, root_id, select=select)]
    if root.session_id is not None and root.parent_span_id is None:
        orphans = reads.rootless_of_session(project.pk, root.session_id, select=select)
        if orphans:
            starts = reads.root_starts_of_session(project.pk, root.session_id)
            rows += [row for row in orphans if _root_at(starts, row) == root_id]
    return in_order(rows)


def _root_at(starts: list[tuple[str, int]], row: SpanRow) -> str | None:
    """The id of the last root that began no later than the row; the first root when all began later."""
    began = row.start_ns if row.start_ns is not None else row.created_ms * 1_000_000
    found = starts[0][0] if starts else None
    for root_id, start in starts:
        if start > began:
            break
        found = root_id
    return found


def framework_labels(project: Project) -> list[tuple[str, int]]:
    """(label, number of roots) of every framework label seen, most frequent first; "" stands for unlabelled."""
    settle()
    rows = (
        Rollup.objects.filter(project=project, grain=Grain.ALL_TIME, bucket=0, is_root=True)
        .values("framework")
        .annotate(n=Sum("spans"))
    )
    return sorted(((row["framework"], row["n"]) for row in rows if row["n"] > 0), key=lambda item: (-item[1], item[0]))


def count_spans(project: Project) -> int:
    """How many rows the project has, roots and children."""
    settle()
    rows = Rollup.objects.filter(project=project, grain=Grain.ALL_TIME, bucket=0)
    return rows.aggregate(n=Sum("spans"))["n"] or 0


# --- Sessions


def session_spans(project: Project, session_id: str, payloads: bool = True) -> list[SpanRow]:
    """Every row of a session, roots and children, in the order they began; empty for an unknown session."""
    stored = stored_identifier(session_id) or ""
    return in_order(reads.of_session(project.pk, stored, select=reads.columns(payloads=payloads)))


# How importers name the sessions they bring in (source 1:6354, 1:6858).
IMPORTED_PREFIXES = ("mw_", "dbx_")
ORIGINS = ("users", "imported", "simulated")


@dataclass(frozen=True)
class SessionFilters:
    """What a session list is narrowed to: active at or after `since_ms`, text inside the id, origin, first agent.

    `found` names sessions that count as found by `search` whatever their id, see `sessions_about`.
    """

    since_ms: int | None = None
    search: str = ""
    origin: str = ""
    agent_id: str = ""
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class SessionFigures:
    """Sums over all sessions that match; `cost_usd` is None when none has a price."""

    sessions: int = 0
    with_errors: int = 0
    turns: int = 0
    spans: int = 0
    latency_ms: float = 0.0
    tokens: int = 0
    cost_usd: float | None = None


def is_imported(session_id: str) -> bool:
    """Whether an importer brought the conversation in."""
    return session_id.startswith(IMPORTED_PREFIXES)


def _sessions(project: Project, filters: SessionFilters) -> Any:
    """The matching sessions that have production rows."""
    rows = Session.objects.filter(project=project, span_count__gt=0)
    if filters.since_ms is not None:
        rows = rows.filter(last_ms__gte=filters.since_ms)
    if filters.search:
        rows = rows.filter(Q(session_id__icontains=filters.search) | Q(session_id__in=filters.found))
    if filters.agent_id:
        rows = rows.filter(agent_id=filters.agent_id)
    imported = Q()
    for prefix in IMPORTED_PREFIXES:
        imported |= Q(session_id__startswith=prefix)
    if filters.origin == "simulated":
        rows = rows.filter(simulated=True)
    elif filters.origin == "imported":
        rows = rows.filter(imported)
    elif filters.origin == "users":
        rows = rows.filter(simulated=False).exclude(imported)
    return rows


def session_figures(project: Project, filters: SessionFilters) -> SessionFigures:
    """Sums over every session that matches, in one query."""
    settle()
    sums = _sessions(project, filters).aggregate(
        sessions=Count("pk"),
        with_errors=Count("pk", filter=Q(error_count__gt=0)),
        turns=Sum("turn_count"),
        spans=Sum("span_count"),
        latency_ms=Sum("total_latency_ms"),
        tokens=Sum("input_tokens") + Sum("output_tokens"),
        cost_usd=Sum("cost_usd"),
    )
    cost = sums.pop("cost_usd")
    return SessionFigures(**{name: value or 0 for name, value in sums.items()}, cost_usd=cost)


def sessions_about(project: Project, text: str, since_ms: int | None = None) -> tuple[str, ...]:
    """Sessions in which the newest hundred traces that the full-text search finds took place."""
    page = list_traces(project, TraceFilters(search=text, since_ms=since_ms), limit=PAGE_MAX, preview=1)
    return tuple(dict.fromkeys(row.session_id for row in page.rows if row.session_id is not None))


def first_turns(project: Project, session_ids: Sequence[str], *, preview: int = 2000) -> dict[str, SpanRow]:
    """The first root of each session, with the start of its input; two queries however many sessions."""
    if not session_ids:
        return {}
    rows = reads.first_roots_of_sessions(project.pk, session_ids, preview=preview)
    return {row.session_id: row for row in rows if row.session_id is not None}


def spans_by_ids(project: Project, ids: Sequence[str]) -> dict[str, SpanRow]:
    """Rows of the project with their payloads, by id, in one query."""
    return {row.id: row for row in reads.by_ids(project.pk, ids)} if ids else {}


def list_sessions(
    project: Project,
    since_ms: int | None = None,
    limit: int = PAGE_DEFAULT,
    cursor: str | None = None,
    search: str = "",
    *,
    origin: str = "",
    agent_id: str = "",
    found: tuple[str, ...] = (),
    count: bool = True,
) -> SessionPage:
    """Sessions with production rows, most recently active first, active at or after `since_ms`.

    `search` is looked for inside the session id, and sessions in `found` match it too; `origin` is one of ORIGINS or
    "" for all. Raises UnknownCursor for text that was no `next_cursor`.
    """
    settle()
    rows = _sessions(project, SessionFilters(since_ms, search, origin, agent_id, found))
    total = rows.count() if count else 0
    if cursor is not None:
        last_ms, pk = _session_cursor(cursor)
        # A row comparison, which both databases answer from the index.
        rows = rows.filter(last_ms__lte=last_ms).exclude(last_ms=last_ms, id__gte=pk)
    page = list(rows.order_by("-last_ms", "-id")[: limit + 1])
    more = len(page) > limit
    page = page[:limit]
    names = _agent_names([row.agent_id for row in page])
    following = f"{page[-1].last_ms}.{page[-1].pk}" if more else None
    return SessionPage([_session_row(row, names) for row in page], total, following)


def get_session(project: Project, session_id: str) -> SessionRow | None:
    """The aggregate of one session, or None when it has no rows."""
    settle()
    row = Session.objects.filter(project=project, session_id=stored_identifier(session_id) or "").first()
    return _session_row(row, _agent_names([row.agent_id])) if row else None


def _session_cursor(text: str) -> tuple[int, int]:
    last_ms, _, pk = text.partition(".")
    if len(last_ms) > 18 or len(pk) > 18:
        raise UnknownCursor(text)
    try:
        return int(last_ms), int(pk)
    except ValueError:
        raise UnknownCursor(text) from None


def _agent_names(ids: list[str | None]) -> dict[str, str]:
    wanted = {item for item in ids if item}
    return dict(Agent.objects.filter(id__in=wanted).values_list("id", "name")) if wanted else {}


def _session_row(row: Session, names: dict[str, str]) -> SessionRow:
    return SessionRow(
        session_id=row.session_id,
        agent_id=row.agent_id,
        agent_name=names.get(row.agent_id or ""),
        framework=row.framework,
        turn_count=row.turn_count,
        span_count=row.span_count,
        error_count=row.error_count,
        total_latency_ms=row.total_latency_ms,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost_usd=row.cost_usd,
        simulated=row.simulated,
        first_ms=row.first_ms,
        last_ms=row.last_ms,
    )


# --- Agents


def list_agents(project: Project) -> list[Agent]:
    """The project's agents with their profiles, by name, equal names oldest first (source 1:1904-1927)."""
    agents = Agent.objects.filter(project=project).select_related("profile")
    # Sorted here, as the order of text differs between databases and their locales.
    return sorted(agents, key=lambda agent: (agent.name, agent.created_at, agent.pk))


def get_agent(project: Project, agent_id: str) -> Agent | None:
    """One agent of the project with its profile, or None."""
    return Agent.objects.filter(project=project, id=agent_id).select_related("profile").first()
