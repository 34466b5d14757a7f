"""What a test of the published client asks of a project: its traces and their trees, as the client reads them."""

from __future__ import annotations

from typing import Any

import httpx
from agentx import AgentX

Span = dict[str, Any]
#: (name, kind, children) of a span, as nested tuples.
Shape = tuple[str, str, list[Any]]


class Recording:
    """A project of its own on a running server, the client that records into it, and what was recorded."""

    def __init__(self, client: AgentX, project_id: str) -> None:
        self.client = client
        self.project_id = project_id

    @property
    def tracer(self) -> Any:
        """The client's tracer."""
        return self.client.tracer

    def read(self, path: str, **query: Any) -> Any:
        """GET under /api/v1 with the project's key, as JSON."""
        headers = {"x-api-key": str(self.client.api_key)}
        answer = httpx.get(f"{self.client.base_url}{path}", params=query, headers=headers, timeout=15)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def roots(self) -> list[Span]:
        """Every trace in full, in the order of their starts, once the client has delivered what it queued.

        The list is newest first to the millisecond; tests are quicker than that, so the exact start decides.
        """
        assert self.tracer.flush(timeout=30), "the client could not deliver its queue"
        started = {row["id"]: int(row["startedAtUnixNano"] or 0) for row in self.client.export.iter("traces")}
        listed = sorted((row["_id"] for row in self.client.traces.list(limit=200)["traces"]), key=started.__getitem__)
        return [self.client.traces.get(trace_id) for trace_id in listed]

    def root(self) -> Span:
        """The only trace."""
        roots = self.roots()
        assert len(roots) == 1, [root["name"] for root in roots]
        return roots[0]

    def spans(self, root: Span) -> list[Span]:
        """Every span of the root's session."""
        return list(self.client.monitor.sessions.spans(root["sessionId"]))

    def children(self, root: Span) -> list[Span]:
        """The spans right under this one, in the order the server gives them."""
        return [span for span in self.spans(root) if span.get("parentSpanId") == root["spanId"]]

    def child(self, root: Span, name: str) -> Span:
        """The only span of this name in the root's session."""
        [found] = [span for span in self.spans(root) if span["name"] == name and "parentSpanId" in span]
        return found

    def shape(self, root: Span) -> Shape:
        """Names and kinds of a whole tree, children in the order the server gives them."""
        spans = self.spans(root)

        def of(span: Span) -> Shape:
            below = [of(other) for other in spans if other.get("parentSpanId") == span["spanId"]]
            return (span["name"], span["spanKind"], below)

        return of(root)

    def totals(self, window: str = "24h") -> dict[str, Any]:
        """The project's counts of a window: traces, spans, spansByKind, tokens, costUsd, toolCalls, toolFailures."""
        return dict(self.read("/monitor/metrics", window=window)["totals"])
