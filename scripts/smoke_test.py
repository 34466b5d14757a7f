"""What scripts/smoke-test.sh does once the server is up: use the published SDK as its documentation shows."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from agentx import AgentX

SESSION = "smoke-session"


def main() -> None:
    """Record two turns with a step and a tool call each and read them back; raises AssertionError when something is missing."""
    client = AgentX.from_env()
    client.ping()
    for turn in range(2):
        with client.tracer.trace("smoke-agent", session_id=SESSION) as span:
            span.input = f"question {turn}"
            with client.tracer.trace("lookup") as child:
                child.input = {"query": turn}
                child.output = {"rows": [1, 2, 3]}
            try:
                with client.tracer.trace_tool_call("order", input={"turn": turn}) as call:
                    if turn:
                        raise LookupError("no such order")
                    call.output = "found"
            except LookupError:
                pass
            span.output = f"answer {turn}"
    client.tracer.flush()

    deadline = time.monotonic() + 15
    traces: list = []
    while len(traces) < 2 and time.monotonic() < deadline:
        traces = client.traces.list(limit=10)["traces"]
        time.sleep(0.1)
    assert len(traces) == 2, f"expected 2 traces, found {len(traces)}"

    spans = client.monitor.sessions.spans(SESSION)
    roots = [span for span in spans if "parentSpanId" not in span]
    assert [span["input"] for span in roots] == ["question 0", "question 1"], roots
    assert {span["parentSpanId"] for span in spans if "parentSpanId" in span} == {span["spanId"] for span in roots}
    kpis = client.monitor.kpis("24h")
    assert (kpis["totalRuns"], kpis["toolFailureRate"]) == (2, 0.5), kpis
    assert [agent["name"] for agent in client.monitor.agents.list()] == ["smoke-agent"]

    with tempfile.TemporaryDirectory() as folder:
        client.export.dump(folder)
        rows = (Path(folder) / "traces.ndjson").read_text("utf-8").splitlines()
    assert len(rows) == 6, f"expected 6 exported spans, found {len(rows)}"


if __name__ == "__main__":
    main()
