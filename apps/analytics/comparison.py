"""Models side by side: how the traces that used them went, how long they took, what they cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Sum

from apps.analytics.aggregates import NOT_EVALUATION, ratio, rows_of
from apps.analytics.latency import Distribution
from apps.core.windows import Window
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


def model_comparison(project: Project, window: Window) -> dict[str, Any]:
    """One row a model seen on spans of real traces, by trace count (source 1:3545): a read of stored data alone.

    A metric without data is null, never 100 % or $0: rates without checked traces, cost of a model without a price.
    """
    models: defaultdict[str, _Model] = defaultdict(_Model)
    traces = rows_of(ModelRollup, project, window).filter(NOT_EVALUATION)
    for name, roots, healthy, failing, latency in traces.values_list("model", "roots", "healthy", "failing", "latency"):
        model = models[name]
        model.traces += roots
        model.healthy += healthy
        model.failing += failing
        histogram.merge(model.latency.counts, histogram.from_json(latency))
    spans = rows_of(Rollup, project, window).filter(NOT_EVALUATION, priced__gt=0).exclude(model="")
    for name, cost in spans.values_list("model").annotate(Sum("cost_usd")).order_by():
        models[name].cost = cost
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
