"""Models side by side: how the traces that used them went, how long they took, what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Sum

from apps.analytics.aggregates import NOT_EVALUATION, ratio, rows_of
from apps.analytics.day_cache import Days
from apps.analytics.latency import Distribution
from apps.core.windows import DAY, Window
from apps.projects.models import Project
from apps.tracing import histogram
from apps.tracing.models import ModelRollup, Rollup


@dataclass(slots=True)
class _Model:
    traces: int = 0
    healthy: int = 0
    failing: int = 0
    cost: float | None = None
    latency: Distribution = field(default_factory=Distribution)

    def add(self, other: _Model) -> None:
        self.traces += other.traces
        self.healthy += other.healthy
        self.failing += other.failing
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost
        self.latency.merge(other.latency)


_Models = Mapping[str, _Model]


def model_comparison(project: Project, window: Window) -> dict[str, Any]:
    """One row a model seen on spans of real traces, by trace count (source 1:3545): a read of stored data alone.

    `traceCount` counts traces, whichever of their spans ran on the model. A metric without data is null, never 100 %
    or $0: rates without checked traces, cost of a model without a price.
    """
    models: defaultdict[str, _Model] = defaultdict(_Model)
    nothing: _Models = {}
    days = Days(project, window, models=True)
    for day in days.each(window, "models", lambda parts: _by_day(project, parts), nothing):
        for name, model in day.items():
            models[name].add(model)
    return {
        "window": window.name,
        "models": [
            {
                "model": name,
                "traceCount": model.traces,
                "healthRate": ratio(model.healthy, model.healthy + model.failing),
                "failureRate": ratio(model.failing, model.healthy + model.failing),
                "p95LatencyMs": model.latency.quantile(0.95),
                "totalCostUSD": model.cost,
            }
            for name, model in sorted(models.items(), key=lambda item: (-item[1].traces, item[0]))
            if model.traces
        ],
    }


def _by_day(project: Project, parts: list[Window]) -> Mapping[int, _Models]:
    days: defaultdict[int, defaultdict[str, _Model]] = defaultdict(lambda: defaultdict(_Model))
    traces = rows_of(ModelRollup, project, *parts).filter(NOT_EVALUATION)
    for bucket, name, roots, healthy, failing, latency in traces.values_list(
        "bucket", "model", "roots", "healthy", "failing", "latency"
    ):
        model = days[bucket - bucket % DAY][name]
        model.traces += roots
        model.healthy += healthy
        model.failing += failing
        histogram.merge(model.latency.counts, histogram.from_json(latency))
    spans = rows_of(Rollup, project, *parts).filter(NOT_EVALUATION, priced__gt=0).exclude(model="")
    by_day = spans.annotate(day=F("bucket") - F("bucket") % DAY).values_list("day", "model")
    for midnight, name, cost in by_day.annotate(Sum("cost_usd")).order_by():
        days[midnight][name].cost = cost
    return days
