"""The metrics grid: spans by kind, latency, tokens, cost, tools and platforms over time, under one set of filters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Q, Sum

from apps.analytics.aggregates import NOT_EVALUATION, agent_names, rows_of, widest_for_points, with_point
from apps.analytics.day_cache import Days
from apps.analytics.filters import OTHER, MetricFilters
from apps.analytics.latency import EXACT_ROOTS, Distribution, Scope, exact, from_histograms, merged
from apps.core.windows import DAY, Window, point_iso
from apps.projects.models import Project
from apps.tracing.models import Rollup, ToolRollup, Traffic

TOP_FRAMEWORKS = 8
FACET_LIMIT = 100
_TRAFFIC = (Traffic.PRODUCTION, Traffic.UNMONITORED)


@dataclass(slots=True)
class _Sums:
    """What one point, or the whole window, adds up to."""

    kinds: Counter[str] = field(default_factory=Counter)
    frameworks: Counter[str] = field(default_factory=Counter)
    roots: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    tool_calls: int = 0
    tool_failures: int = 0

    def add(self, other: _Sums) -> None:
        self.kinds.update(other.kinds)
        self.frameworks.update(other.frameworks)
        self.roots += other.roots
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cost += other.cost
        self.tool_calls += other.tool_calls
        self.tool_failures += other.tool_failures


@dataclass(frozen=True, slots=True)
class _Day:
    """What one day's part of a window adds up to, by point, and its latencies as a whole."""

    sums: dict[int, _Sums]
    percentiles: dict[int, dict[str, float | None]]
    latency: Distribution


_NO_PERCENTILES: dict[str, float | None] = {"p50": None, "p95": None, "p99": None}
_EMPTY_DAY = _Day({}, {}, Distribution())


def metrics(project: Project, window: Window, filters: MetricFilters) -> dict[str, Any]:
    """The grid's numbers (source 1:7310-7332): `buckets` without gaps, `totals`, platform counts and filter choices.

    Evaluation traffic is never in. `agent` scopes to an agent's traces with their child spans, `model` to spans that
    ran on it, `framework` and `status` to spans that carry them, `tool` to the traces that called the tool and, in
    `spansByKind.tool` and `toolCalls`, to its executions. Latencies are those of root traces, in ms, null without any.
    """
    agent_ids = filters.agent_ids(project)
    by_day = Days(project, window)
    facets, roots = _facets(project, window, by_day)
    # Few roots are read one by one, for exact percentiles; many come from the aggregates, day by day.
    days = (
        [_exact_day(project, window, filters, agent_ids)]
        if roots <= EXACT_ROOTS
        else _days(project, window, by_day, filters, agent_ids)
    )
    total, latency = _Sums(), Distribution()
    points: dict[int, tuple[_Sums, dict[str, float | None]]] = {}
    for day in days:
        latency.merge(day.latency)
        for point, sums in day.sums.items():
            total.add(sums)
            points[point] = (sums, day.percentiles.get(point, _NO_PERCENTILES))
    top = {label for label, _ in _ranked(total.frameworks)[:TOP_FRAMEWORKS]}
    nothing = (_Sums(), _NO_PERCENTILES)
    return {
        "window": window.name,
        "bucketMs": window.step * 1000,
        "buckets": [
            {"ts": point_iso(point), "label": window.label(point)}
            | _wire(*points.get(point, nothing))
            | {"byFramework": _platforms(points.get(point, nothing)[0].frameworks, top)}
            for point in window.points()
        ],
        "totals": {"traces": total.roots, "spans": total.kinds.total()} | _wire(total, _percentiles(latency)),
        "frameworks": _platforms(total.frameworks, top),
        "facets": facets,
    }


def _exact_day(project: Project, window: Window, filters: MetricFilters, agent_ids: list[str] | None) -> _Day:
    """The whole window as one part, with percentiles of the recorded latencies where the filters allow."""
    parts = [window]
    sums = _sums(project, parts, filters, agent_ids)
    if filters.tool is not None:
        return _Day(sums, *_summarized(_histograms(project, parts, filters, agent_ids)))
    scope = Scope(_TRAFFIC, agent_ids, filters.model, filters.framework_value, filters.status_value)
    return _Day(sums, *_summarized(exact(project, window, scope)))


def _days(
    project: Project, window: Window, days: Days, filters: MetricFilters, agent_ids: list[str] | None
) -> list[_Day]:
    """Every day of the window, from the aggregates."""

    def days_of(parts: list[Window]) -> Mapping[int, _Day]:
        sums: defaultdict[int, dict[int, _Sums]] = defaultdict(dict)
        for point, point_sums in _sums(project, parts, filters, agent_ids).items():
            sums[point - point % DAY][point] = point_sums
        latencies: defaultdict[int, dict[int, Distribution]] = defaultdict(dict)
        for point, distribution in _histograms(project, parts, filters, agent_ids).items():
            latencies[point - point % DAY][point] = distribution
        return {midnight: _Day(sums[midnight], *_summarized(latencies[midnight])) for midnight in sums}

    scope = ("metrics", filters, tuple(agent_ids) if agent_ids is not None else None)
    return days.each(window, scope, days_of, _EMPTY_DAY)


def _summarized(
    by_point: Mapping[int, Distribution],
) -> tuple[dict[int, dict[str, float | None]], Distribution]:
    return {point: _percentiles(distribution) for point, distribution in by_point.items()}, merged(by_point.values())


def _percentiles(latency: Distribution) -> dict[str, float | None]:
    return {name: latency.quantile(q) for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}


def _sums(
    project: Project, parts: list[Window], filters: MetricFilters, agent_ids: list[str] | None
) -> dict[int, _Sums]:
    conditions = filters.conditions(agent_ids) & NOT_EVALUATION
    if filters.tool is not None:
        return _tool_sums(project, parts, conditions & Q(tool=filters.tool))
    return _span_sums(project, parts, conditions)


def _histograms(
    project: Project, parts: list[Window], filters: MetricFilters, agent_ids: list[str] | None
) -> dict[int, Distribution]:
    conditions = filters.conditions(agent_ids) & NOT_EVALUATION
    widest = widest_for_points(parts[0])
    if filters.tool is not None:
        rows = rows_of(ToolRollup, project, *parts, widest=widest).filter(conditions, tool=filters.tool)
    else:
        rows = rows_of(Rollup, project, *parts, widest=widest).filter(conditions, is_root=True)
    return from_histograms(with_point(rows, parts[0]))


def _span_sums(project: Project, parts: list[Window], conditions: Q) -> dict[int, _Sums]:
    rows = rows_of(Rollup, project, *parts, widest=widest_for_points(parts[0])).filter(conditions)
    grouped = (
        with_point(rows, parts[0])
        .values_list("point", "is_root", "kind", "framework")
        .annotate(
            Sum("spans"),
            Sum("input_tokens"),
            Sum("output_tokens"),
            Sum("cost_usd"),
            Sum("tool_calls"),
            Sum("tool_failures"),
        )
        .order_by()
    )
    by_point: defaultdict[int, _Sums] = defaultdict(_Sums)
    for point, is_root, kind, framework, spans, tokens_in, tokens_out, cost, calls, failures in grouped:
        sums = by_point[point]
        spans = int(spans)
        sums.kinds[kind] += spans
        if is_root:
            sums.roots += spans
            sums.frameworks[framework] += spans
        sums.input_tokens += int(tokens_in)
        sums.output_tokens += int(tokens_out)
        sums.cost += cost
        sums.tool_calls += int(calls)
        sums.tool_failures += int(failures)
    return by_point


def _tool_sums(project: Project, parts: list[Window], conditions: Q) -> dict[int, _Sums]:
    rows = rows_of(ToolRollup, project, *parts, widest=widest_for_points(parts[0])).filter(conditions)
    grouped = (
        with_point(rows, parts[0])
        .values_list("point", "framework")
        .annotate(
            Sum("roots"), Sum("calls"), Sum("failures"), Sum("input_tokens"), Sum("output_tokens"), Sum("cost_usd")
        )
        .order_by()
    )
    by_point: defaultdict[int, _Sums] = defaultdict(_Sums)
    for point, framework, roots, calls, failures, tokens_in, tokens_out, cost in grouped:
        sums = by_point[point]
        sums.kinds["tool"] += int(calls)
        sums.frameworks[framework] += int(roots)
        sums.roots += int(roots)
        sums.input_tokens += int(tokens_in)
        sums.output_tokens += int(tokens_out)
        sums.cost += cost
        sums.tool_calls += int(calls)
        sums.tool_failures += int(failures)
    return by_point


def _wire(sums: _Sums, percentiles: dict[str, float | None]) -> dict[str, Any]:
    return {
        "spansByKind": {kind: count for kind, count in sorted(sums.kinds.items()) if count},
        "latency": percentiles,
        "inputTokens": sums.input_tokens,
        "outputTokens": sums.output_tokens,
        "costUsd": sums.cost,
        "toolCalls": sums.tool_calls,
        "toolFailures": sums.tool_failures,
    }


def _ranked(frameworks: Counter[str]) -> list[tuple[str, int]]:
    labelled = [(label, count) for label, count in frameworks.items() if label and label != OTHER]
    return sorted(labelled, key=lambda item: (-item[1], item[0]))


def _platforms(frameworks: Counter[str], top: set[str]) -> dict[str, int]:
    """Root traces by label; unlabelled ones and those beyond the top eight are `other`, so the sum is all of them."""
    counts = {label: count for label, count in _ranked(frameworks) if label in top}
    other = frameworks.total() - sum(counts.values())
    return counts | {OTHER: other} if other else counts


@dataclass(slots=True)
class _Seen:
    """Which values occurred in a day, with how many spans; and the day's roots."""

    agents: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    frameworks: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    roots: int = 0


def _facets(project: Project, window: Window, days: Days) -> tuple[dict[str, list[str]], int]:
    """What the filters can be set to in this window, most frequent first, whatever is filtered now; and its roots."""
    seen = _Seen()
    for day in days.each(window, "facets", lambda parts: _seen(project, parts), _Seen()):
        seen.agents.update(day.agents)
        seen.models.update(day.models)
        seen.frameworks.update(day.frameworks)
        seen.tools.update(day.tools)
        seen.roots += day.roots
    names = agent_names(project, seen.agents)
    by_name: Counter[str] = Counter()
    for agent_id, count in seen.agents.items():
        by_name[names.get(agent_id, "")] += count
    choices = {
        "agents": _choices(by_name),
        "models": _choices(seen.models),
        "tools": _choices(seen.tools),
        "frameworks": _choices(seen.frameworks),
    }
    return choices, seen.roots


def _seen(project: Project, parts: list[Window]) -> Mapping[int, _Seen]:
    found: defaultdict[int, _Seen] = defaultdict(_Seen)
    rows = rows_of(Rollup, project, *parts).filter(NOT_EVALUATION).annotate(day=F("bucket") - F("bucket") % DAY)
    spans_by_value = rows.values_list("day", "agent_id", "model", "framework", "is_root").annotate(Sum("spans"))
    for midnight, agent_id, model, framework, is_root, spans in spans_by_value.order_by():
        day, count = found[midnight], int(spans)
        day.agents[agent_id] += count
        day.models[model] += count
        day.frameworks[framework or OTHER] += count
        day.roots += count if is_root else 0
    tools = rows_of(ToolRollup, project, *parts).filter(NOT_EVALUATION).annotate(day=F("bucket") - F("bucket") % DAY)
    for midnight, tool, calls in tools.values_list("day", "tool").annotate(Sum("calls")).order_by():
        found[midnight].tools[tool] += int(calls)
    return found


def _choices(counts: Counter[str]) -> list[str]:
    ranked = sorted(((value, count) for value, count in counts.items() if value and count > 0), key=_by_count)
    return [value for value, _ in ranked[:FACET_LIMIT]]


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
