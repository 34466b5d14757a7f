"""The traffic histogram over a list of traces, drawn from the rollups as SVG geometry."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.core.times import now_ms
from apps.dashboard.formats import count
from apps.projects.models import Project
from apps.tracing import selectors
from apps.tracing.models import Grain, Rollup, Status
from apps.tracing.selectors import TraceFilters

_GRAINS = {Grain.FIVE_MINUTES: 300, Grain.HOUR: 3_600, Grain.DAY: 86_400}
_STEPS = (300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 2 * 86_400, 7 * 86_400, 30 * 86_400)
BARS = 60
_DEFAULT_MS = 30 * 86_400_000


@dataclass(frozen=True)
class Bar:
    """One slot: its place in percent of the chart, its counts and its range in milliseconds."""

    x: float
    width: float
    top: float
    height: float
    failed_top: float
    failed_height: float
    total: int
    failed: int
    since: int
    until: int


@dataclass(frozen=True)
class Volume:
    """The chart. `labels` are times in milliseconds along the axis."""

    bars: list[Bar]
    labels: list[int]
    total: int
    failed: int
    peak: int
    days: bool

    @property
    def sentence(self) -> str:
        """What the chart shows, for readers who do not see it."""
        return _("%(total)s traces, %(failed)s of them failed; at most %(peak)s in one bar") % {
            "total": count(self.total),
            "failed": count(self.failed),
            "peak": count(self.peak),
        }


def volume(project: Project, filters: TraceFilters) -> Volume | None:
    """Traces over the window of the filters (30 days when it is open), or None when the rollups cannot say it.

    A text search and a tool are no dimensions of the rollups. Callers have settled the aggregates. One query.
    """
    if filters.search or filters.tool:
        return None
    until = min(filters.until_ms or now_ms(), now_ms() + 86_400_000)
    since = filters.since_ms if filters.since_ms is not None else until - _DEFAULT_MS
    if until <= since:
        return None
    wanted = (until - since) / 1000 / BARS
    step = next((s for s in _STEPS if s >= wanted * 0.999), _STEPS[-1])
    grain = Grain.DAY if step >= 86_400 else Grain.HOUR if step >= 3_600 else Grain.FIVE_MINUTES
    first = since // 1000 // step * step
    last = -(-until // (1000 * step)) * step
    rows = selectors.dimensions(
        Rollup.objects.filter(project=project, grain=grain, is_root=True, bucket__gte=first, bucket__lt=last), filters
    ).values_list("bucket", "status", "spans")
    slots = max(1, (last - first) // step)
    totals, failures = [0] * slots, [0] * slots
    for bucket, status, spans in rows:
        index = (bucket - first) // step
        totals[index] += spans
        if status == Status.ERROR:
            failures[index] += spans
    peak = max(totals)
    width = 100 / slots
    bars = []
    for index, total in enumerate(totals):
        if total <= 0:
            continue
        height = max(total / peak * 100, 2.5)
        failed = max(failures[index] / peak * 100, 2.5) if failures[index] > 0 else 0
        begin = (first + index * step) * 1000
        bars.append(
            Bar(
                round(index * width, 3),
                round(width * 0.8, 3),
                round(100 - height, 2),
                round(height, 2),
                round(100 - failed, 2),
                round(failed, 2),
                total,
                failures[index],
                begin,
                begin + step * 1000,
            )
        )
    labels = [first * 1000 + (last - first) * 1000 * part // 4 for part in range(5)]
    return Volume(bars, labels, sum(totals), sum(failures), peak, last - first > 3 * 86_400)
