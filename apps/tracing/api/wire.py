"""Spans, sessions and agents as the wire has them (source 1:1631-1663, 1:1904-1991).

A span's payloads are passed through as the JSON text that was stored, never decoded and encoded again. Optional
members that are absent are left out; `spanKind` and the nullable `inputTokens`, `outputTokens` and `judgeScores` are
always there.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from django.http import HttpResponse
from msgspec import UNSET, Raw, UnsetType, field

from apps.core.times import datetime_to_iso, now_ms, to_iso
from apps.llm import pricing
from apps.projects.models import Project
from apps.tracing.models import Agent, AgentProfile, Traffic
from apps.tracing.selectors import SessionRow
from apps.tracing.store.reads import SpanRow

_encoder = msgspec.json.Encoder()


class ListedTrace(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A row of the trace list."""

    id: str = field(name="_id")
    name: str
    input: Raw | UnsetType = UNSET
    output: Raw | UnsetType = UNSET
    latency_ms: float | UnsetType = UNSET
    error: str | UnsetType = UNSET
    framework: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    tool_calls: Raw | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    span_id: str | UnsetType = UNSET
    span_kind: str
    judge_scores: dict[str, Any] | None
    parent_span_id: str | UnsetType = UNSET
    started_at: str | UnsetType = UNSET
    traffic_source: str | UnsetType = UNSET
    source: str
    created_at: str
    input_tokens: int | None
    output_tokens: int | None


class FullSpan(ListedTrace, kw_only=True, rename="camel", omit_defaults=True):
    """A span in full: the detail read and each span of a session."""

    metadata: Raw | UnsetType = UNSET
    performance_summary: Raw | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    estimated_cost_usd: float | None = field(name="estimatedCostUSD")


class TraceList(msgspec.Struct, rename="camel"):
    """The answer of the trace list."""

    total_count: int
    traces: list[ListedTrace]
    has_next_page: bool
    next_cursor: str | None


class ListedSession(msgspec.Struct, kw_only=True, rename="camel"):
    """A row of the session list."""

    session_id: str
    agent_id: str | None
    agent_name: str | None
    turn_count: int
    span_count: int
    error_count: int
    total_latency_ms: float
    first_at: str
    last_at: str
    judge_rating: float | None = None
    judge_name: str | None = None
    judge_checked_at: str | None = None
    judges: list[dict[str, Any]] = []


def json_response(value: Any, status: int = 200) -> HttpResponse:
    """A JSON answer built from structs and raw members, past the renderer."""
    return HttpResponse(_encoder.encode(value), status=status, content_type="application/json")


def _raw(text: str | None) -> Raw | UnsetType:
    return UNSET if text is None else Raw(text.encode())


def _given(value: Any) -> Any:
    return UNSET if value is None else value


def number(value: float | None) -> float | int | None:
    """A whole number without its ".0", as producers send milliseconds; what JSON cannot carry becomes None."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def started_at(row: SpanRow) -> str | None:
    """ISO time of the start the producer sent, or None."""
    return None if row.start_ns is None else to_iso(row.start_ns // 1_000_000)


def _members(row: SpanRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "input": _raw(row.input),
        "output": _raw(row.output),
        "latency_ms": _given(number(row.latency_ms)),
        "error": _given(row.error),
        "framework": _given(row.framework),
        "model": _given(row.model),
        "tool_calls": _raw(row.tool_calls),
        "session_id": _given(row.session_id),
        "span_id": _given(row.span_id),
        "span_kind": row.kind,
        "judge_scores": None,
        "parent_span_id": _given(row.parent_span_id),
        "started_at": _given(started_at(row)),
        "traffic_source": "eval-run" if row.traffic == Traffic.EVAL_RUN else UNSET,
        "source": "sdk",
        "created_at": to_iso(row.created_ms),
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    }


def listed_trace(row: SpanRow) -> ListedTrace:
    """A row of the list."""
    return ListedTrace(**_members(row))


def full_span(project: Project, row: SpanRow) -> FullSpan:
    """A span with everything it has."""
    return FullSpan(
        **_members(row),
        metadata=_raw(row.metadata),
        performance_summary=_raw(row.performance_summary),
        cache_read_tokens=_given(row.cache_read_tokens),
        cache_write_tokens=_given(row.cache_write_tokens),
        estimated_cost_usd=estimated_cost(project, row),
    )


def estimated_cost(project: Project, row: SpanRow) -> float | None:
    """USD of the row's recorded counts: the stored cost, else by a price the catalog has got since (TRC-122): the one
    of the row's own time, or else the present one.

    None without counts or without a price.
    """
    if row.cost_usd is not None:
        return row.cost_usd
    if row.input_tokens is None and row.output_tokens is None:
        return None
    price = pricing.price_of(row.model, row.created_ms, project.organization_id) or pricing.price_of(
        row.model, now_ms(), project.organization_id
    )
    if price is None:
        return None
    return pricing.cost(
        price,
        row.input_tokens or 0,
        row.output_tokens or 0,
        row.cache_read_tokens or 0,
        row.cache_write_tokens or 0,
    )


def session(row: SessionRow) -> ListedSession:
    """A row of the session list; judge members are null until something judges sessions."""
    return ListedSession(
        session_id=row.session_id,
        agent_id=row.agent_id,
        agent_name=row.agent_name,
        turn_count=row.turn_count,
        span_count=row.span_count,
        error_count=row.error_count,
        total_latency_ms=number(row.total_latency_ms) or 0,
        first_at=to_iso(row.first_ms),
        last_at=to_iso(row.last_ms),
    )


def agent(row: Agent) -> dict[str, Any]:
    """An agent by itself."""
    return {"_id": row.pk, "name": row.name, "createdAt": datetime_to_iso(row.created_at)}


def listed_agent(row: Agent) -> dict[str, Any]:
    """An agent in the list, with its profile or null."""
    found: AgentProfile | None = getattr(row, "profile", None)
    return {
        "_id": row.pk,
        "name": row.name,
        "kind": "agent",
        "agentType": "external",
        "monitoringAgentId": row.pk,
        "monitoringProfile": None if found is None else profile(found),
        "createdAt": datetime_to_iso(row.created_at),
    }


def profile(row: AgentProfile) -> dict[str, Any]:
    """An agent's monitoring profile (source: sdk monitor/models.py MonitorProfile)."""
    return {
        "_id": row.pk,
        "workspaceId": None,
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
