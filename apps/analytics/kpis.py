"""The KPI strip and the health trend: how production runs went, from the operational facts of checked roots."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, IntegerField, Sum, Value, When

from apps.analytics.aggregates import CHECKED, difference, ratio, rows_of, widest_for_points, with_point
from apps.analytics.latency import EXACT_ROOTS, Scope, exact, from_histograms, merged
from apps.core.windows import Window, point_iso
from apps.projects.models import Project
from apps.tracing.models import Rollup, Traffic

_SUMS = {"total": Sum("spans"), "ok": Sum("healthy"), "bad": Sum("failing"), "tool_bad": Sum("tool_failing")}
_NOTHING = {"total": 0, "ok": 0, "bad": 0, "tool_bad": 0}


def kpis(project: Project, window: Window) -> dict[str, Any]:
    """The numbers of one window and their change against the one before (source 1:7305-7316).

    Rates are fractions, null when nothing stands below the line; `p95LatencyMs` is in ms.
    """
    before = window.previous()
    grouped = (
        rows_of(Rollup, project, before, window)
        .filter(CHECKED, is_root=True)
        .annotate(
            now=Case(When(bucket__gte=window.start, then=Value(1)), default=Value(0), output_field=IntegerField())
        )
        .values("now")
        .annotate(**_SUMS)
        .order_by()
    )
    sums = {row["now"]: {name: int(row[name]) for name in _SUMS} for row in grouped}
    now, then = sums.get(1, _NOTHING), sums.get(0, _NOTHING)
    rates, earlier = _rates(now), _rates(then)
    return {
        "window": window.name,
        "totalRuns": now["total"],
        **rates,
        "p95LatencyMs": _p95(project, window, now["total"]),
        "deltas": {name: difference(rates[name], earlier[name]) for name in rates},
        "breakdown": {
            "totalRuns": now["total"],
            "healthyRuns": now["ok"],
            "failingRuns": now["bad"],
            "operationalFailingRuns": now["bad"],
            "scorerFailingRuns": 0,
            "healthRate": rates["healthRate"],
        },
    }


def _rates(sums: dict[str, int]) -> dict[str, float | None]:
    return {
        "healthRate": ratio(sums["ok"], sums["ok"] + sums["bad"]),
        "failureRate": ratio(sums["bad"], sums["total"]),
        # Nobody can vote yet: without votes the rate is unknown, not zero.
        "downvoteRate": None,
        "toolFailureRate": ratio(sums["tool_bad"], sums["total"]),
    }


def _p95(project: Project, window: Window, roots: int) -> float | None:
    if not roots:
        return None
    if roots <= EXACT_ROOTS:
        return merged(exact(project, window, Scope(traffic=(Traffic.PRODUCTION,)))).quantile(0.95)
    rows = with_point(rows_of(Rollup, project, window).filter(CHECKED, is_root=True), window)
    return merged(from_histograms(rows)).quantile(0.95)


def trend(project: Project, window: Window) -> dict[str, Any]:
    """Healthy and failing runs by point; empty points are zeros with a null rate. `signals` counts raised signals."""
    rows = rows_of(Rollup, project, window, widest=widest_for_points(window)).filter(CHECKED, is_root=True)
    grouped = with_point(rows, window).values("point").annotate(ok=Sum("healthy"), bad=Sum("failing")).order_by()
    sums = {row["point"]: (int(row["ok"]), int(row["bad"])) for row in grouped}
    points = []
    for point in window.points():
        healthy, failing = sums.get(point, (0, 0))
        points.append(
            {
                "label": window.label(point),
                "ts": point_iso(point),
                "healthy": healthy,
                "failing": failing,
                "healthRate": ratio(healthy, healthy + failing),
                "signals": 0,
            }
        )
    return {"window": window.name, "points": points}
