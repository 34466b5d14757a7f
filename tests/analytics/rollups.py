"""Aggregate rows for tests, written the way the fold leaves them: one at every grain."""

from __future__ import annotations

from typing import Any

from apps.core.windows import DAY, FIVE_MINUTES, HOUR
from apps.tracing import histogram
from apps.tracing.models import Grain, Rollup, ToolRollup, Traffic

WIDTHS = {Grain.FIVE_MINUTES: FIVE_MINUTES, Grain.HOUR: HOUR, Grain.DAY: DAY}


def _buckets(at_ms: int) -> list[tuple[Grain, int]]:
    second = at_ms // 1000
    return [(grain, second - second % width) for grain, width in WIDTHS.items()] + [(Grain.ALL_TIME, 0)]


def add(project: Any, at_ms: int, *, latencies: tuple[float, ...] = (), **values: Any) -> None:
    """Add one contribution of spans at a time; unset dimensions are those of an unlabelled production root."""
    row = {
        "is_root": True,
        "traffic": Traffic.PRODUCTION,
        "agent_id": "",
        "framework": "",
        "model": "",
        "kind": "llm",
        "status": 0,
        "spans": 1,
    } | values
    dimensions = {
        name: row.pop(name) for name in ("is_root", "traffic", "agent_id", "framework", "model", "kind", "status")
    }
    for grain, bucket in _buckets(at_ms):
        found, _ = Rollup.objects.get_or_create(project=project, grain=grain, bucket=bucket, **dimensions)
        _accumulate(found, row, latencies)


def add_tool(project: Any, at_ms: int, tool: str, *, latencies: tuple[float, ...] = (), **values: Any) -> None:
    """Add one contribution of roots that called a tool."""
    row = {
        "traffic": Traffic.PRODUCTION,
        "agent_id": "",
        "framework": "",
        "model": "",
        "status": 0,
        "roots": 1,
    } | values
    dimensions = {name: row.pop(name) for name in ("traffic", "agent_id", "framework", "model", "status")}
    for grain, bucket in _buckets(at_ms):
        found, _ = ToolRollup.objects.get_or_create(
            project=project, grain=grain, bucket=bucket, tool=tool, **dimensions
        )
        _accumulate(found, row, latencies)


def _accumulate(found: Any, row: dict[str, Any], latencies: tuple[float, ...]) -> None:
    for name, value in row.items():
        setattr(found, name, getattr(found, name) + value)
    counts = histogram.from_json(found.latency)
    for latency in latencies:
        histogram.merge(counts, {histogram.bucket_of(latency): 1})
    found.latency = histogram.to_json(counts)
    found.latency_sum += sum(latencies)
    found.save()
