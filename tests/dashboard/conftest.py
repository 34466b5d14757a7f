"""Spans for the pages, stored through the same door as any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.core.times import now_ms
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn


def span(name: str, *, at_ms: float = 0, **members: Any) -> SpanIn:
    """A span that began `at_ms` after a fixed moment an hour ago; payload members are given as values."""
    for key in ("input", "output", "tool_calls", "metadata", "performance_summary"):
        if key in members:
            members[key] = json.dumps(members[key]).encode()
    members.setdefault("start_ns", BEGAN_NS + int(at_ms * 1_000_000))
    return SpanIn(name=name, **members)


def text_of(response: Any) -> str:
    """The page's HTML with plain spaces for the narrow and unbreakable ones of figures."""
    return response.content.decode().replace("\u00a0", " ").replace("\u202f", " ")


BEGAN_NS = (now_ms() - 3_600_000) * 1_000_000


@pytest.fixture
def store(project):
    """`store(span, …)` stores the spans in the default project and answers their ids."""

    def run(*spans: SpanIn) -> list[str]:
        return [stored.id for stored in store_spans(project, list(spans))]

    return run


@pytest.fixture
def tree(store) -> list[str]:
    """An agent with a tool that failed, a retrieval and a streamed model call; the root's id first."""
    root = "a" * 32
    return store(
        span(
            "support-agent",
            span_id=root,
            kind="agent",
            framework="langchain",
            session_id="se/1 ü",
            latency_ms=4000,
            input={
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Where is my order?"},
                ]
            },
            output="On its way.",
            tool_calls=[{"name": "track", "success": False, "error": "timed out"}, {"name": "orders", "success": True}],
        ),
        span(
            "track",
            at_ms=500,
            span_id="b" * 16,
            parent_span_id=root,
            kind="tool",
            latency_ms=2000,
            error="TimeoutError: no answer",
            session_id="se/1 ü",
        ),
        span(
            "kb",
            at_ms=500,
            span_id="c" * 16,
            parent_span_id=root,
            kind="retrieval",
            latency_ms=900,
            output=["Poles last two years.", "Ships in 3 days."],
            session_id="se/1 ü",
        ),
        span(
            "LLM Call 1",
            at_ms=2600,
            span_id="d" * 16,
            parent_span_id=root,
            kind="llm",
            model="gpt-4o-mini",
            latency_ms=1200,
            input_tokens=900,
            output_tokens=120,
            metadata={"timeToFirstTokenMs": 310},
            session_id="se/1 ü",
        ),
    )
