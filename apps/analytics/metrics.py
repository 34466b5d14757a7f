"""The metrics grid: spans by kind, latency, tokens, cost, tools and platforms over time, under one set of filters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Sum

from apps.analytics.aggregates import NOT_EVALUATION, agent_names, rows_of, widest_for_points, with_point
from apps.analytics.filters import OTHER, MetricFilters
from apps.analytics.latency import EXACT_ROOTS, Distribution, Scope, exact, from_histograms, merged
from apps.core.windows import Window, point_iso
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


def metrics(project: Project, window: Window, filters: MetricFilters) -> dict[str, Any]:
    """The grid's numbers (source 1:7310-7332): `buckets` without gaps, `totals`, platform counts and filter choices.

    Evaluation traffic is never in. `agent` scopes to an agent's traces with their child spans, `model` to spans that
    ran on it, `framework` and `status` to spans that carry them, `tool` to the traces that called the tool and, in
    `spansByKind.tool` and `toolCalls`, to its executions. Latencies are those of root traces, in ms, null without any.
    """
    agent_ids = filters.agent_ids(project)
    conditions = filters.conditions(agent_ids) & NOT_EVALUATION
    widest = widest_for_points(window)
    sums = (
        _tool_sums(project, window, filters, conditions, widest)
        if filters.tool is not None
        else _span_sums(project, window, conditions, widest)
    )
    total = _Sums()
    for point_sums in sums.values():
        total.add(point_sums)
    top = {label for label, _ in _ranked(total.frameworks)[:TOP_FRAMEWORKS]}
    latencies = _latencies(project, window, filters, agent_ids, total.roots, widest)
    return {
        "window": window.name,
        "bucketMs": window.step * 1000,
        "buckets": [
            {"ts": point_iso(point), "label": window.label(point)}
            | _wire(sums.get(point, _Sums()), latencies.get(point, Distribution()))
            | {"byFramework": _platforms(sums[point].frameworks, top) if point in sums else {}}
            for point in window.points()
        ],
        "totals": {"traces": total.roots, "spans": total.kinds.total()} | _wire(total, merged(latencies)),
        "frameworks": _platforms(total.frameworks, top),
        "facets": _facets(project, window),
    }


def _span_sums(project: Project, window: Window, conditions: Any, widest: int) -> dict[int, _Sums]:
    grouped = (
        with_point(rows_of(Rollup, project, window, widest=widest).filter(conditions), window)
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


def _tool_sums(
    project: Project, window: Window, filters: MetricFilters, conditions: Any, widest: int
) -> dict[int, _Sums]:
    grouped = (
        with_point(rows_of(ToolRollup, project, window, widest=widest).filter(conditions, tool=filters.tool), window)
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


def _latencies(
    project: Project,
    window: Window,
    filters: MetricFilters,
    agent_ids: list[str] | None,
    roots: int,
    widest: int,
) -> Mapping[int, Distribution]:
    if filters.tool is not None:
        rows = rows_of(ToolRollup, project, window, widest=widest).filter(tool=filters.tool)
        return from_histograms(with_point(rows.filter(filters.conditions(agent_ids) & NOT_EVALUATION), window))
    if roots <= EXACT_ROOTS:
        scope = Scope(_TRAFFIC, agent_ids, filters.model, filters.framework_value, filters.status_value)
        return exact(project, window, scope)
    roots_of_window = rows_of(Rollup, project, window, widest=widest).filter(is_root=True)
    return from_histograms(with_point(roots_of_window.filter(filters.conditions(agent_ids) & NOT_EVALUATION), window))


def _wire(sums: _Sums, latency: Distribution) -> dict[str, Any]:
    return {
        "spansByKind": {kind: count for kind, count in sorted(sums.kinds.items()) if count},
        "latency": {name: latency.quantile(q) for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
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


def _facets(project: Project, window: Window) -> dict[str, list[str]]:
    """What the filters can be set to in this window, most frequent first, whatever is filtered now."""
    rows = rows_of(Rollup, project, window).filter(NOT_EVALUATION)
    seen = rows.values_list("agent_id", "model", "framework").annotate(Sum("spans")).order_by()
    agents: Counter[str] = Counter()
    models: Counter[str] = Counter()
    frameworks: Counter[str] = Counter()
    for agent_id, model, framework, spans in seen:
        agents[agent_id] += int(spans)
        models[model] += int(spans)
        frameworks[framework or OTHER] += int(spans)
    tools: Counter[str] = Counter()
    tool_rows = rows_of(ToolRollup, project, window).filter(NOT_EVALUATION)
    for tool, calls in tool_rows.values_list("tool").annotate(Sum("calls")).order_by():
        tools[tool] += int(calls)
    names = agent_names(project, agents)
    by_name: Counter[str] = Counter()
    for agent_id, count in agents.items():
        by_name[names.get(agent_id, "")] += count
    return {
        "agents": _choices(by_name),
        "models": _choices(models),
        "tools": _choices(tools),
        "frameworks": _choices(frameworks),
    }


def _choices(counts: Counter[str]) -> list[str]:
    ranked = sorted(((value, count) for value, count in counts.items() if value and count > 0), key=_by_count)
    return [value for value, _ in ranked[:FACET_LIMIT]]


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
