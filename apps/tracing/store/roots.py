"""Narrow reads of root rows for analytics: whether one exists, and the latencies of a small population."""

from __future__ import annotations

from collections.abc import Sequence

from apps.core.ids import time_prefix
from apps.tracing.models import Span


def root_latencies(
    *,
    project_id: int,
    start_ms: int,
    end_ms: int,
    traffic: Sequence[int],
    agent_ids: Sequence[str] | None = None,
    model: str | None = None,
    framework: str | None = None,
    status: int | None = None,
) -> list[tuple[int, float]]:
    """(createdAt in ms, latency in ms) of the roots created in `[start_ms, end_ms)` that recorded a latency.

    None does not filter; framework '' selects unlabelled roots. One query, served by the index of roots; callers bound
    the range by a count they know from the aggregates.
    """
    roots = Span.objects.filter(
        project_id=project_id,
        parent_span_id=None,
        id__gte=time_prefix(start_ms),
        id__lt=time_prefix(end_ms),
        traffic__in=traffic,
        latency_ms__isnull=False,
    )
    if agent_ids is not None:
        roots = roots.filter(agent_id__in=agent_ids)
    if model is not None:
        roots = roots.filter(model=model)
    if framework is not None:
        roots = roots.filter(framework=framework) if framework else roots.filter(framework=None)
    if status is not None:
        roots = roots.filter(status=status)
    found = roots.values_list("created_ms", "latency_ms")
    return [(created_ms, latency) for created_ms, latency in found if latency is not None]


def root_exists(*, project_id: int, trace_id: str) -> bool:
    """Whether the project holds a root with this id."""
    return Span.objects.filter(pk=trace_id, project_id=project_id, parent_span_id=None).exists()
