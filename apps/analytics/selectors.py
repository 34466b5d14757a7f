"""What other code calls to read analytics. Each function answers the wire object of its endpoint.

Numbers come from the aggregates alone; `settle` folds pending contributions first, so a read after an
acknowledged span counts it. A window may be given by its wire name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.analytics import agents, comparison, failures, spend
from apps.analytics import kpis as runs
from apps.analytics import metrics as grid
from apps.analytics.agents import AgentFigures
from apps.analytics.aggregates import agent_names
from apps.analytics.filters import MetricFilters
from apps.core.api.errors import NotFound
from apps.core.windows import Window, parse_free, parse_named
from apps.projects.models import Project
from apps.tracing.rollups.fold import settle
from apps.tracing.store.roots import root_exists

NO_FILTERS = MetricFilters()


def _named(window: Window | str | None) -> Window:
    return window if isinstance(window, Window) else parse_named(window)


def kpis(project: Project, window: Window | str | None = None) -> dict[str, Any]:
    """The KPI strip: see apps.analytics.kpis."""
    settle()
    return runs.kpis(project, _named(window))


def trend(project: Project, window: Window | str | None = None) -> dict[str, Any]:
    """Healthy and failing runs over time."""
    settle()
    return runs.trend(project, _named(window))


def metrics(
    project: Project, window: Window | str | None = None, filters: MetricFilters = NO_FILTERS
) -> dict[str, Any]:
    """The metrics grid; its windows are `1h` to `90d`."""
    settle()
    return grid.metrics(project, window if isinstance(window, Window) else parse_free(window), filters)


def cost_trend(project: Project, window: Window | str | None = None) -> dict[str, Any]:
    """Spend over time, stacked by model."""
    settle()
    return spend.cost_trend(project, _named(window))


def model_comparison(project: Project, window: Window | str | None = None) -> dict[str, Any]:
    """Models side by side."""
    settle()
    return comparison.model_comparison(project, _named(window))


def top_failing(project: Project, window: Window | str | None = None) -> dict[str, Any]:
    """What failed most."""
    settle()
    return failures.top_failing(project, _named(window))


def scorer_activity(project: Project, window: Window | str | None = None) -> dict[str, Any]:
    """Signals raised by each scorer, by day (source 1:4139-4140); no scorer exists yet, so none has been active."""
    return {"window": _named(window).name, "activity": {}}


def trace_evaluations(project: Project, trace_id: str) -> dict[str, Any]:
    """Verdicts on a trace, newest first (source 1:4024-4031); raises 404 for an unknown one. No judge exists yet."""
    if not root_exists(project_id=project.pk, trace_id=trace_id):
        raise NotFound("Trace not found")
    return {"evaluations": []}


def agent_figures(project: Project, window: Window) -> Mapping[str, AgentFigures]:
    """What each agent did, by agent id."""
    settle()
    return agents.agent_figures(project, window)


def active_agent_names(project: Project, since_ms: int) -> list[str]:
    """Names of the agents that sent a trace since then, in alphabetical order."""
    settle()
    return sorted(set(agent_names(project, agents.active_agents(project, since_ms)).values()))
