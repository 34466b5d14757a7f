"""What failed most: agents, tools and failure patterns, from the operational events of checked roots."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import Count, F, Q

from apps.analytics.aggregates import agent_names
from apps.analytics.day_cache import Days
from apps.core.windows import DAY, Window
from apps.projects.models import Project
from apps.tracing.models import OperationalEvent

TOOL_FAILURE_PREFIX = "agent-tool-failure:"
LIMIT = 10


def top_failing(project: Project, window: Window) -> dict[str, Any]:
    """The ten worst of each sort, most failures first (source 1:7172-7173).

    `{window, agents[{agentId, name, count}], tools[{tool, count}], patterns[{patternKey, count}]}`; a run counts
    once, under the first of its failures (MON-021).
    """
    agents: Counter[str] = Counter()
    patterns: Counter[str] = Counter()
    nothing: Counter[tuple[str, str]] = Counter()
    for day in Days(project, window).each(window, "failures", lambda parts: _by_day(project, parts), nothing):
        for (agent_id, key), count in day.items():
            agents[agent_id] += count
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


def _by_day(project: Project, parts: list[Window]) -> Mapping[int, Counter[tuple[str, str]]]:
    ranges = Q()
    for part in parts:
        ranges |= Q(project=project, created_ms__gte=part.start_ms, created_ms__lt=part.end_ms)
    day_ms = DAY * 1000
    events = OperationalEvent.objects.filter(ranges).annotate(day=F("created_ms") - F("created_ms") % day_ms)
    days: defaultdict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for day, agent_id, key, count in events.values_list("day", "agent_id", "key").annotate(n=Count("pk")).order_by():
        days[day // 1000][agent_id or "", key] += count
    return days


def _worst(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
