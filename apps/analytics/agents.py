"""What each agent did in a window: traces, health, cost, tokens and when it was last seen."""

from __future__ import annotations

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
    """Figures by agent id, evaluation traffic left out; three queries whatever the number of agents."""
    rows = rows_of(Rollup, project, window).filter(NOT_EVALUATION).exclude(agent_id="")
    found: dict[str, AgentFigures] = {}
    sums = (
        rows.values("agent_id")
        .annotate(
            traces=Sum("spans", filter=Q(is_root=True)),
            ok=Sum("healthy", filter=CHECKED & Q(is_root=True)),
            bad=Sum("failing", filter=CHECKED & Q(is_root=True)),
            tokens=Sum(F("input_tokens") + F("output_tokens")),
            cost=Sum("cost_usd"),
            priced_rows=Sum("priced"),
            latency=Sum("latency_sum", filter=Q(is_root=True)),
        )
        .order_by()
    )
    for row in sums:
        traces = int(row["traces"] or 0)
        found[row["agent_id"]] = AgentFigures(
            traces=traces,
            healthy=int(row["ok"] or 0),
            failing=int(row["bad"] or 0),
            tokens=int(row["tokens"] or 0),
            cost_usd=row["cost"] if row["priced_rows"] else None,
            latency_ms=ratio(row["latency"], traces),
            series=[],
        )
    _add_series(project, window, found)
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


def _add_series(project: Project, window: Window, found: dict[str, AgentFigures]) -> None:
    points = window.points()
    rows = rows_of(Rollup, project, window, widest=widest_for_points(window)).filter(NOT_EVALUATION, is_root=True)
    grouped = (
        with_point(rows.exclude(agent_id=""), window)
        .values_list("agent_id", "point")
        .annotate(n=Sum("spans"))
        .order_by()
    )
    counts = {(agent_id, point): int(n) for agent_id, point, n in grouped}
    for agent_id, figures in found.items():
        figures.series = [counts.get((agent_id, point), 0) for point in points]


def active_agents(project: Project, since_ms: int) -> list[str]:
    """Ids of agents with a trace stored in a five-minute bucket that ends after `since_ms`."""
    rows = Rollup.objects.filter(
        project=project, grain=Grain.FIVE_MINUTES, is_root=True, spans__gt=0, bucket__gt=since_ms // 1000 - 300
    ).exclude(agent_id="")
    return list(rows.values_list("agent_id", flat=True).distinct().order_by("agent_id"))
