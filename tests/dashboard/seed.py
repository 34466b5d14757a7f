"""Data for page tests, stored through the ingest pipeline as a client's would be."""

from __future__ import annotations

import json
from typing import Any

from apps.core.times import now_ms
from apps.projects.models import Project
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn

_JSON = ("input", "output", "tool_calls", "metadata", "performance_summary")


def store(project: Project, name: str = "support-agent", *, ago_ms: int = 0, **members: Any) -> str:
    """Store one span that began `ago_ms` ago; payloads are given as values. Returns the id of its row."""
    for key in _JSON:
        if key in members:
            members[key] = json.dumps(members[key]).encode()
    members.setdefault("output", b'"done"')
    members.setdefault("start_ns", (now_ms() - ago_ms) * 1_000_000)
    return store_spans(project, [SpanIn(name=name, **members)])[0].id


def conversation(project: Project, session_id: str = "chat-1") -> list[str]:
    """Two turns: a healthy one with a tool and a model call below it, and one that fails. Returns the root ids."""
    first = store(
        project,
        span_id=f"{session_id}-1",
        session_id=session_id,
        ago_ms=120_000,
        input={"question": "Where is my parcel?"},
        output={"answer": "It arrives tomorrow."},
        latency_ms=840,
        framework="langchain",
        tool_calls=[{"name": "shipping.track", "success": True}],
    )
    store(
        project,
        "LLM Call 1",
        span_id=f"{session_id}-2",
        parent_span_id=f"{session_id}-1",
        session_id=session_id,
        ago_ms=119_900,
        kind="llm",
        latency_ms=500,
        model="gpt-4o-mini",
        input_tokens=1000,
        output_tokens=100,
    )
    second = store(
        project,
        span_id=f"{session_id}-3",
        session_id=session_id,
        ago_ms=20_000,
        input="And the refund?",
        output=None,
        latency_ms=12_000,
        error="RateLimitError: 429",
        framework="langchain",
        tool_calls=[{"name": "billing.refund", "success": False}],
    )
    return [first, second]
