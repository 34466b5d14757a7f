"""Percentiles of root latencies: exact while a window holds few roots, from merged histograms beyond.

The rule is `sorted[min(n - 1, floor(q * n))]` (MON-057). Up to EXACT_ROOTS roots the recorded latencies themselves are
sorted; beyond, the aggregates' histograms answer the same rank within 1 % of the value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from apps.analytics.aggregates import Rows
from apps.core.windows import DAY, Window
from apps.projects.models import Project
from apps.tracing import histogram
from apps.tracing.store.roots import root_latencies

EXACT_ROOTS = 2000


@dataclass(slots=True)
class Distribution:
    """Latencies of one point: the values themselves, or a histogram of them."""

    values: list[float] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)

    def merge(self, other: Distribution) -> None:
        """Add another distribution of the same kind."""
        self.values.extend(other.values)
        histogram.merge(self.counts, other.counts)

    def quantile(self, q: float) -> float | None:
        """The latency in ms at rank min(n - 1, floor(q * n)); None when there is none."""
        if self.values:
            ordered = sorted(self.values)
            return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
        return _histogram_quantile(self.counts, q)


def _histogram_quantile(counts: Mapping[int, int], q: float) -> float | None:
    total = sum(counts.values())
    if total <= 0:
        return None
    rank = min(total - 1, int(q * total))
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen > rank:
            return histogram.value_of(bucket)
    return None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which roots: their traffic and the metric filters, None for all."""

    traffic: Sequence[int]
    agent_ids: Sequence[str] | None = None
    model: str | None = None
    framework: str | None = None
    status: int | None = None


def exact(project: Project, window: Window, scope: Scope) -> dict[int, Distribution]:
    """Distributions by point from the recorded latencies: one query."""
    by_point: defaultdict[int, Distribution] = defaultdict(Distribution)
    for created_ms, latency in root_latencies(
        project_id=project.pk,
        start_ms=window.start_ms,
        end_ms=window.end_ms,
        traffic=scope.traffic,
        agent_ids=scope.agent_ids,
        model=scope.model,
        framework=scope.framework,
        status=scope.status,
    ):
        second = created_ms // 1000
        by_point[second - second % window.step].values.append(latency)
    return by_point


def from_histograms(rows: Rows) -> dict[int, Distribution]:
    """Distributions by point of aggregate rows annotated with `point`: one query."""
    by_point: defaultdict[int, Distribution] = defaultdict(Distribution)
    for point, text in rows.exclude(latency="{}").values_list("point", "latency"):
        histogram.merge(by_point[point].counts, histogram.from_json(text))
    return by_point


def by_day(rows: Rows) -> dict[int, Distribution]:
    """Distributions by midnight of any aggregate rows: one query."""
    found: defaultdict[int, Distribution] = defaultdict(Distribution)
    for bucket, text in rows.exclude(latency="{}").values_list("bucket", "latency"):
        histogram.merge(found[bucket - bucket % DAY].counts, histogram.from_json(text))
    return found


def merged(distributions: Iterable[Distribution]) -> Distribution:
    """All of them as one."""
    total = Distribution()
    for distribution in distributions:
        total.merge(distribution)
    return total
