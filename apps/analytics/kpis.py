"""The KPI strip and the health trend: how production runs went, from the operational facts of checked roots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import F, Sum

from apps.analytics.aggregates import CHECKED, difference, ratio, rows_of, widest_for_points, with_point
from apps.analytics.day_cache import Days
from apps.analytics.latency import EXACT_ROOTS, Distribution, Scope, by_day, exact, merged
from apps.core.windows import DAY, Window, point_iso
from apps.projects.models import Project
from apps.tracing.models import Rollup, Traffic

# Sums of one day or window: all runs, healthy ones, failing ones, ones with a failed tool.
_Sums = tuple[int, int, int, int]
_NOTHING: _Sums = (0, 0, 0, 0)


def kpis(project: Project, window: Window) -> dict[str, Any]:
    """The numbers of one window and their change against the one before (source 1:7305-7316).

    Rates are fractions, null when nothing stands below the line; `p95LatencyMs` is in ms.
    """
    before = window.previous()
    days = Days(project, before, window)

    def sums_of(parts: list[Window]) -> Mapping[int, _Sums]:
        return _sums_by_day(project, parts)

    now = _added(days.each(window, "kpis", sums_of, _NOTHING))
    then = _added(days.each(before, "kpis", sums_of, _NOTHING))
    rates, earlier = _rates(now), _rates(then)
    total, healthy, failing, _ = now
    return {
        "window": window.name,
        "totalRuns": total,
        **rates,
        "p95LatencyMs": _p95(project, window, days, total),
        "deltas": {name: difference(rates[name], earlier[name]) for name in rates},
        "breakdown": {
            "totalRuns": total,
            "healthyRuns": healthy,
            "failingRuns": failing,
            "operationalFailingRuns": failing,
            "scorerFailingRuns": 0,
            "healthRate": rates["healthRate"],
        },
    }


def _sums_by_day(project: Project, parts: list[Window]) -> dict[int, _Sums]:
    grouped = (
        rows_of(Rollup, project, *parts)
        .filter(CHECKED, is_root=True)
        .annotate(day=F("bucket") - F("bucket") % DAY)
        .values_list("day")
        .annotate(Sum("spans"), Sum("healthy"), Sum("failing"), Sum("tool_failing"))
        .order_by()
    )
    return {row[0]: (int(row[1]), int(row[2]), int(row[3]), int(row[4])) for row in grouped}


def _added(days: Iterable[_Sums]) -> _Sums:
    total, healthy, failing, tool_failing = (sum(column) for column in zip(*days, strict=True))
    return total, healthy, failing, tool_failing


def _rates(sums: _Sums) -> dict[str, float | None]:
    total, healthy, failing, tool_failing = sums
    return {
        "healthRate": ratio(healthy, healthy + failing),
        "failureRate": ratio(failing, total),
        # Nobody can vote yet: without votes the rate is unknown, not zero.
        "downvoteRate": None,
        "toolFailureRate": ratio(tool_failing, total),
    }


def _p95(project: Project, window: Window, days: Days, roots: int) -> float | None:
    if not roots:
        return None
    if roots <= EXACT_ROOTS:
        return merged(exact(project, window, Scope(traffic=(Traffic.PRODUCTION,))).values()).quantile(0.95)

    def latencies_of(parts: list[Window]) -> Mapping[int, Distribution]:
        return by_day(rows_of(Rollup, project, *parts).filter(CHECKED, is_root=True))

    return merged(days.each(window, "latencies of runs", latencies_of, Distribution())).quantile(0.95)


def trend(project: Project, window: Window) -> dict[str, Any]:
    """Healthy and failing runs by point; empty points are zeros with a null rate. `signals` counts raised signals."""

    def points_of(parts: list[Window]) -> Mapping[int, dict[int, tuple[int, int]]]:
        rows = rows_of(Rollup, project, *parts, widest=widest_for_points(window)).filter(CHECKED, is_root=True)
        grouped = with_point(rows, window).values_list("point").annotate(Sum("healthy"), Sum("failing")).order_by()
        found: defaultdict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        for point, healthy, failing in grouped:
            found[point - point % DAY][point] = (int(healthy), int(failing))
        return found

    sums: dict[int, tuple[int, int]] = {}
    nothing: dict[int, tuple[int, int]] = {}
    for day in Days(project, window).each(window, "trend", points_of, nothing):
        sums |= day
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
