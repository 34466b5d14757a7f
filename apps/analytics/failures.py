"""What failed most: agents, tools and failure patterns, from the operational events of checked roots."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import Count

from apps.analytics.aggregates import agent_names
from apps.core.windows import Window
from apps.projects.models import Project
from apps.tracing.models import OperationalEvent

TOOL_FAILURE_PREFIX = "agent-tool-failure:"
LIMIT = 10


def top_failing(project: Project, window: Window) -> dict[str, Any]:
    """The ten worst of each sort, most failures first (source 1:7172-7173).

    `{window, agents[{agentId, name, count}], tools[{tool, count}], patterns[{patternKey, count}]}`; a run counts
    once, under the first of its failures (MON-021).
    """
    events = (
        OperationalEvent.objects.filter(project=project, created_ms__gte=window.start_ms, created_ms__lt=window.end_ms)
        .values_list("agent_id", "key")
        .annotate(n=Count("pk"))
        .order_by()
    )
    agents: Counter[str] = Counter()
    patterns: Counter[str] = Counter()
    for agent_id, key, count in events:
        agents[agent_id or ""] += count
        patterns[key] += count
    tools = Counter(
        {
            key.removeprefix(TOOL_FAILURE_PREFIX): count
            for key, count in patterns.items()
            if key.startswith(TOOL_FAILURE_PREFIX)
        }
    )
    names = agent_names(project, agents)
    return {
        "window": window.name,
        "agents": [
            {"agentId": agent_id, "name": names[agent_id], "count": count}
            for agent_id, count in _worst(agents)
            if agent_id in names
        ][:LIMIT],
        "tools": [{"tool": tool, "count": count} for tool, count in _worst(tools)[:LIMIT]],
        "patterns": [{"patternKey": key, "count": count} for key, count in _worst(patterns)[:LIMIT]],
    }


def _worst(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
