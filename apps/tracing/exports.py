"""Export rows of what this app stores (source 1:8092-8134). The keys of a span row are those ingest takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from apps.core import exports
from apps.core.ids import time_prefix
from apps.core.times import datetime_to_iso, to_iso
from apps.projects.models import Project
from apps.tracing import selectors
from apps.tracing.api.wire import number, started_at
from apps.tracing.models import (
    Agent,
    AgentProfile,
    CheckItem,
    ModelRollup,
    OperationalEvent,
    Rollup,
    RollupJournal,
    Session,
    Span,
    ToolRollup,
    Traffic,
)
from apps.tracing.store import reads
from apps.tracing.store.reads import SpanRow


class ExportedSpan(msgspec.Struct, rename="camel"):
    """A stored span, every column, null where it has nothing."""

    id: str
    project_id: str
    name: str
    input: Raw | None
    output: Raw | None
    error: str | None
    latency_ms: float | None
    model: str | None
    framework: str | None
    span_kind: str
    tool_calls: Raw | None
    metadata: Raw | None
    performance_summary: Raw | None
    session_id: str | None
    span_id: str | None
    parent_span_id: str | None
    agent_id: str | None
    source: str
    traffic_source: str | None
    monitor: bool | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None = msgspec.field(name="costUsd")
    started_at: str | None
    started_at_unix_nano: str | None
    created_at: str
    received_at: str


def _raw(text: str | None) -> Raw | None:
    return None if text is None else Raw(text.encode())


def exported_span(project: Project, row: SpanRow) -> ExportedSpan:
    """The export row of a span."""
    return ExportedSpan(
        id=row.id,
        project_id=project.uid,
        name=row.name,
        input=_raw(row.input),
        output=_raw(row.output),
        error=row.error,
        latency_ms=number(row.latency_ms),
        model=row.model,
        framework=row.framework,
        span_kind=row.kind,
        tool_calls=_raw(row.tool_calls),
        metadata=_raw(row.metadata),
        performance_summary=_raw(row.performance_summary),
        session_id=row.session_id,
        span_id=row.span_id,
        parent_span_id=row.parent_span_id,
        agent_id=row.agent_id,
        source="sdk",
        traffic_source="eval-run" if row.traffic == Traffic.EVAL_RUN else None,
        monitor=False if row.traffic == Traffic.UNMONITORED else None,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cache_read_tokens=row.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens,
        cost_usd=row.cost_usd,
        started_at=started_at(row),
        started_at_unix_nano=None if row.start_ns is None else str(row.start_ns),
        created_at=to_iso(row.created_ms),
        received_at=to_iso(row.received_ms),
    )


def _spans(project: Project, since_ms: int | None) -> Iterator[ExportedSpan]:
    for row in reads.all_rows(project.pk, since="" if since_ms is None else time_prefix(since_ms)):
        yield exported_span(project, row)


def _agents(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = Agent.objects.filter(project=project)
    for row in exports.by_keyset(rows, since_ms, time_field="created_at"):
        yield {"id": row.pk, "projectId": project.uid, "name": row.name, "createdAt": datetime_to_iso(row.created_at)}


def _profiles(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = AgentProfile.objects.filter(agent__project=project)
    for row in exports.by_keyset(rows, since_ms, key="agent_id", time_field="updated_at"):
        yield {
            "id": row.pk,
            "projectId": project.uid,
            "agentId": row.pk,
            "enabled": row.enabled,
            "failureDetectionEnabled": row.failure_detection_enabled,
            "infoDetectionEnabled": row.info_detection_enabled,
            "topicsEnabled": row.topics_enabled,
            "coverageMode": row.coverage_mode,
            "sampleRate": row.sample_rate,
            "channels": row.channels,
            "datasetId": row.dataset_id,
            "thresholdOverrides": row.threshold_overrides,
            "retentionDays": row.retention_days,
            "approvalPolicy": row.approval_policy,
            "createdAt": datetime_to_iso(row.created_at),
            "updatedAt": datetime_to_iso(row.updated_at),
        }


def _events(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = OperationalEvent.objects.filter(project=project)
    if since_ms is not None:
        rows = rows.filter(created_ms__gte=since_ms)
    for row in exports.by_keyset(rows, None):
        yield {
            "id": row.pk,
            "projectId": project.uid,
            "traceId": row.trace_id,
            "agentId": row.agent_id,
            "patternKey": row.key,
            "createdAt": to_iso(row.created_ms),
        }


def register() -> None:
    """Called once, when Django is ready."""
    exports.register(exports.Entity("traces", selectors.count_spans, _spans, (Span,)))
    exports.register(
        exports.Entity("agents", lambda project: Agent.objects.filter(project=project).count(), _agents, (Agent,))
    )
    exports.register(
        exports.Entity(
            "monitor-profiles",
            lambda project: AgentProfile.objects.filter(agent__project=project).count(),
            _profiles,
            (AgentProfile,),
        )
    )
    exports.register(
        exports.Entity(
            "events",
            lambda project: OperationalEvent.objects.filter(project=project).count(),
            _events,
            (OperationalEvent,),
        )
    )
    for model in (Session, Rollup, ToolRollup, ModelRollup):
        exports.leave_out(model, "sums of spans; replaying the traces makes them again")
    exports.leave_out(RollupJournal, "contributions on their way into the sums")
    exports.leave_out(CheckItem, "work that is waiting")
