"""What models cost, by time and by model."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db.models import Sum

from apps.analytics.aggregates import rows_of, widest_for_points, with_point
from apps.core.windows import Window, point_iso
from apps.projects.models import Project
from apps.tracing.models import Rollup, ToolRollup, Traffic

# Reserved names beside the model ids (source: sdk monitor/client.py:363-367).
EVAL_RUNS = "eval runs"
TOOL_CALLS = "tool calls"


def cost_trend(project: Project, window: Window) -> dict[str, Any]:
    """Spend in USD by point and model over all spans, children included once (each span's own tokens).

    Evaluation traffic is the segment `eval runs`, whatever its models. Unpriced models and tools are there with $0;
    spans without tokens add nothing, not even a name.
    """
    rows = rows_of(Rollup, project, window, widest=widest_for_points(window))
    grouped = (
        with_point(rows, window)
        .values("point", "traffic", "model")
        .annotate(cost=Sum("cost_usd"), tokens=Sum("input_tokens") + Sum("output_tokens"))
        .order_by()
    )
    by_point: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    totals: defaultdict[str, float] = defaultdict(float)
    for row in grouped:
        if not row["tokens"] and not row["cost"]:
            continue
        segment = EVAL_RUNS if row["traffic"] == Traffic.EVAL_RUN else row["model"]
        if not segment:
            continue
        totals[segment] += row["cost"]
        if row["cost"]:
            by_point[row["point"]][segment] += row["cost"]
    tools = rows_of(ToolRollup, project, window).values_list("tool").annotate(n=Sum("calls")).order_by("tool")
    # Tools carry no prices yet, so each call costs nothing.
    totals_by_tool = {tool: 0.0 for tool, calls in tools if calls}
    if totals_by_tool:
        totals[TOOL_CALLS] += sum(totals_by_tool.values())
    return {
        "window": window.name,
        "points": [
            {"label": window.label(point), "ts": point_iso(point), "byModel": dict(by_point.get(point, {}))}
            for point in window.points()
        ],
        "models": sorted(totals, key=lambda name: (-totals[name], name)),
        "totalsByModel": dict(totals),
        "totalCost": sum(totals.values()),
        "totalsByTool": totals_by_tool,
    }
