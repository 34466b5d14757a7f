"""What models cost, by time and by model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Sum

from apps.analytics.aggregates import rows_of, widest_for_points, with_point
from apps.analytics.day_cache import Days
from apps.core.windows import DAY, Window, point_iso
from apps.projects.models import Project
from apps.tracing.models import Rollup, ToolRollup, Traffic

# Reserved names beside the model ids (source: sdk monitor/client.py:363-367).
EVAL_RUNS = "eval runs"
TOOL_CALLS = "tool calls"


@dataclass(slots=True)
class _Day:
    """Spend by point and segment, segments that used tokens (priced or not), and tools that were called."""

    points: defaultdict[int, defaultdict[str, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    totals: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    tools: set[str] = field(default_factory=set)


def cost_trend(project: Project, window: Window) -> dict[str, Any]:
    """Spend in USD by point and model over all spans, children included once (each span's own tokens).

    Evaluation traffic is the segment `eval runs`, whatever its models. Unpriced models and tools are there with $0;
    spans without tokens add nothing, not even a name.
    """
    points: dict[int, Mapping[str, float]] = {}
    totals: defaultdict[str, float] = defaultdict(float)
    tools: set[str] = set()
    for day in Days(project, window).each(window, "cost", lambda parts: _by_day(project, parts), _Day()):
        points |= day.points
        tools |= day.tools
        for segment, cost in day.totals.items():
            totals[segment] += cost
    # Tools carry no prices yet, so each call costs nothing.
    totals_by_tool = dict.fromkeys(sorted(tools), 0.0)
    if totals_by_tool:
        totals[TOOL_CALLS] += sum(totals_by_tool.values())
    return {
        "window": window.name,
        "points": [
            {"label": window.label(point), "ts": point_iso(point), "byModel": dict(points.get(point, {}))}
            for point in window.points()
        ],
        "models": sorted(totals, key=lambda name: (-totals[name], name)),
        "totalsByModel": dict(totals),
        "totalCost": sum(totals.values()),
        "totalsByTool": totals_by_tool,
    }


def _by_day(project: Project, parts: list[Window]) -> Mapping[int, _Day]:
    days: defaultdict[int, _Day] = defaultdict(_Day)
    rows = rows_of(Rollup, project, *parts, widest=widest_for_points(parts[0]))
    grouped = (
        with_point(rows, parts[0])
        .values_list("point", "traffic", "model")
        .annotate(Sum("cost_usd"), Sum("input_tokens"), Sum("output_tokens"))
        .order_by()
    )
    for point, traffic, model, cost, tokens_in, tokens_out in grouped:
        segment = EVAL_RUNS if traffic == Traffic.EVAL_RUN else model
        if not segment or not (cost or tokens_in or tokens_out):
            continue
        day = days[point - point % DAY]
        day.totals[segment] += cost
        if cost:
            day.points[point][segment] += cost
    called = rows_of(ToolRollup, project, *parts).filter(calls__gt=0).annotate(day=F("bucket") - F("bucket") % DAY)
    for midnight, tool in called.values_list("day", "tool").distinct():
        days[midnight].tools.add(tool)
    return days
