"""Aggregate rows of a window, as querysets: the only place that knows how windows, grains and buckets meet.

Every read of this app starts here, so no number of a dashboard ever scans spans. Callers settle the journal first
(`apps.tracing.rollups.settle`), so that what was acknowledged before the question is in the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import F, Q, QuerySet

from apps.core.windows import DAY, FIVE_MINUTES, HOUR, Window, pieces
from apps.projects.models import Project
from apps.tracing.models import Agent, Grain, ModelRollup, Rollup, ToolRollup, Traffic

# Annotated rows of either aggregate; the annotations make their type one that only the query knows.
Rows = QuerySet[Any, Any]

GRAIN_OF_WIDTH = {FIVE_MINUTES: Grain.FIVE_MINUTES, HOUR: Grain.HOUR, DAY: Grain.DAY}
# Checked production traffic is the population of KPIs; charts of traffic leave out evaluation runs alone (MON-010,
# MON-054).
CHECKED = Q(traffic=Traffic.PRODUCTION)
NOT_EVALUATION = Q(traffic__in=(Traffic.PRODUCTION, Traffic.UNMONITORED))


def rows_of(
    model: type[Rollup] | type[ToolRollup] | type[ModelRollup], project: Project, *windows: Window, widest: int = DAY
) -> Rows:
    """The rows that together make up the windows, each span counted once; `widest` bounds the bucket width used."""
    ranges = Q()
    for window in windows:
        for piece in pieces(window, widest=widest):
            # The project stands in every branch, so that SQLite and Postgres use the unique index for each of them.
            ranges |= Q(
                project_id=project.pk,
                grain=GRAIN_OF_WIDTH[piece.width],
                bucket__gte=piece.start,
                bucket__lt=piece.end,
            )
    return model._default_manager.filter(ranges)


def with_point(rows: Rows, window: Window) -> Rows:
    """Annotate `point`, the start of the chart point a row falls into; the rows must not be wider than the points."""
    return rows.annotate(point=F("bucket") - F("bucket") % window.step)


def widest_for_points(window: Window) -> int:
    """The widest bucket that still fits into one point of the window."""
    return max(width for width in GRAIN_OF_WIDTH if window.step % width == 0)


def agent_names(project: Project, ids: Iterable[str]) -> dict[str, str]:
    """Names by agent id, in one query; unknown ids are left out."""
    found = Agent.objects.filter(project=project, id__in={agent_id for agent_id in ids if agent_id})
    return dict(found.values_list("id", "name"))


def ratio(part: Any, whole: Any) -> float | None:
    """part / whole, or None when the whole is empty: a metric without data is null, never 0 or 100 %."""
    return float(part or 0) / float(whole) if whole else None


def difference(now: float | None, before: float | None) -> float | None:
    """now - before, or None if either is missing (MON-058)."""
    return None if now is None or before is None else now - before
