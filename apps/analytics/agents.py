"""What each agent did in a window: traces, health, cost, tokens and when it was last seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import F, Max, Q, Sum

from apps.analytics.aggregates import CHECKED, NOT_EVALUATION, ratio, rows_of, widest_for_points, with_point
from apps.core.windows import Window
from apps.projects.models import Project
from apps.tracing.models import Grain, Rollup


@dataclass(slots=True)
class AgentFigures:
    """Sums of one agent over a window. `series` holds traces by chart point; `last_seen_ms` is good to five minutes."""

    traces: int = 0
    healthy: int = 0
    failing: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    latency_ms: float | None = None
    last_seen_ms: int | None = None
    series: list[float | None] | None = None

    @property
    def health_rate(self) -> float | None:
        """Healthy runs by healthy and failing ones; None without any."""
        return ratio(self.healthy, self.healthy + self.failing)


def agent_figures(project: Project, window: Window) -> Mapping[str, AgentFigures]:
    """Figures by agent id, evaluation traffic left out; two queries whatever the number of agents."""
    rows = rows_of(Rollup, project, window, widest=widest_for_points(window)).filter(NOT_EVALUATION)
    grouped = (
        with_point(rows.exclude(agent_id=""), window)
        .values_list("agent_id", "point")
        .annotate(
            traces=Sum("spans", filter=Q(is_root=True), default=0),
            healthy_runs=Sum("healthy", filter=CHECKED & Q(is_root=True), default=0),
            failing_runs=Sum("failing", filter=CHECKED & Q(is_root=True), default=0),
            tokens=Sum(F("input_tokens") + F("output_tokens")),
            cost=Sum("cost_usd"),
            priced_rows=Sum("priced"),
            latency_ms=Sum("latency_sum", filter=Q(is_root=True), default=0.0),
        )
        .order_by()
    )
    places = {point: index for index, point in enumerate(window.points())}
    found: dict[str, AgentFigures] = {}
    latencies: defaultdict[str, float] = defaultdict(float)
    for agent_id, point, traces, healthy, failing, tokens, cost, priced, latency in grouped:
        figures = found.setdefault(agent_id, AgentFigures(series=[0] * len(places)))
        figures.traces += int(traces)
        figures.healthy += int(healthy)
        figures.failing += int(failing)
        figures.tokens += int(tokens)
        if priced:
            figures.cost_usd = (figures.cost_usd or 0.0) + cost
        latencies[agent_id] += latency
        if figures.series is not None and point in places:
            figures.series[places[point]] = int(traces)
    for agent_id, figures in found.items():
        figures.latency_ms = ratio(latencies[agent_id], figures.traces)
    latest = (
        Rollup.objects.filter(project=project, grain=Grain.FIVE_MINUTES, is_root=True, spans__gt=0)
        .filter(NOT_EVALUATION)
        .exclude(agent_id="")
        .values_list("agent_id")
        .annotate(Max("bucket"))
        .order_by()
    )
    for agent_id, bucket in latest:
        found.setdefault(agent_id, AgentFigures(series=[])).last_seen_ms = bucket * 1000
    return found


def active_agents(project: Project, since_ms: int) -> list[str]:
    """Ids of agents with a trace stored in a five-minute bucket that ends after `since_ms`."""
    rows = Rollup.objects.filter(
        project=project, grain=Grain.FIVE_MINUTES, is_root=True, spans__gt=0, bucket__gt=since_ms // 1000 - 300
    ).exclude(agent_id="")
    return list(rows.values_list("agent_id", flat=True).distinct().order_by("agent_id"))
