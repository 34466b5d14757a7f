"""The published client's tracer: what a program says with it is what the server holds."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from agentx import AgentX

from tests.sdk.recording import Recording


def test_from_env_needs_two_variables(server, recording: Recording, monkeypatch):
    monkeypatch.setenv("AGENTX_API_KEY", recording.client.api_key)
    for name in ("AGENTX_API_BASE_URL", "AGENTX_SELFHOST_BASE_URL", "BASE_URL"):
        monkeypatch.setenv(name, server.api_url)
        with AgentX.from_env() as client:
            assert client.ping() == {"ok": True, "base_url": server.api_url}
            with client.tracer.trace(f"by {name}"):
                pass
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTX_API_BASE_URL", f"{server.api_url}/custom-agent-evaluations/")
    with AgentX.from_env() as client:
        assert client.ping()["base_url"] == server.api_url
    assert [root["name"] for root in recording.roots()] == [
        "by AGENTX_API_BASE_URL",
        "by AGENTX_SELFHOST_BASE_URL",
        "by BASE_URL",
    ]


def test_a_workspace_id_rides_along_and_scopes_nothing(server, recording: Recording, monkeypatch):
    monkeypatch.setenv("AGENTX_WORKSPACE_ID", "ws-7")
    with AgentX(api_key=recording.client.api_key, base_url=server.api_url) as client:
        with client.tracer.trace("with workspace", sync=True) as span:
            span.output = "x"
        assert span.trace_id
        assert client.monitor.agents.ensure("with workspace")["name"] == "with workspace"
        assert client.monitor.kpis("24h")["totalRuns"] == 1
        assert client.monitor.sessions.spans(span._session_id)[0]["_id"] == span.trace_id
    assert recording.root()["output"] == "x"


def test_decorators(recording: Recording):
    tracer = recording.tracer

    @tracer.trace("adder", framework="in-house", metadata={"env": "test"}, session_id="deco")
    def add(a: int, b: int = 2) -> dict:
        return {"sum": a + b}

    @tracer.trace("broken", session_id="deco")
    def broken(text: str) -> None:
        raise ValueError(f"cannot read {text}")

    @tracer.trace("async-adder", session_id="deco")
    async def slow(a: int) -> int:
        await asyncio.sleep(0)
        return a + 1

    assert add(1) == {"sum": 3}
    with pytest.raises(ValueError, match="cannot read it"):
        broken("it")
    assert asyncio.run(slow(1)) == 2
    first, second, third = recording.roots()
    assert (first["input"], first["output"]) == ({"a": 1, "b": 2}, {"sum": 3})
    assert (first["framework"], first["metadata"]) == ("in-house", {"env": "test"})
    assert "error" not in first
    assert (second["name"], second["error"], "output" in second) == ("broken", "cannot read it", False)
    assert (third["input"], third["output"]) == ({"a": 1}, 2)
    assert {root["sessionId"] for root in (first, second, third)} == {"deco"}
    assert len({root["spanId"] for root in (first, second, third)}) == 3


def test_nested_blocks_are_one_tree(recording: Recording):
    tracer = recording.tracer
    with tracer.trace("root", span_kind="agent", input="q") as root:
        for step in ("plan", "act"):
            with tracer.trace(step, span_kind="chain") as span:
                span.input = step
                with tracer.trace(f"{step} llm", model="gpt-4o-mini") as inner:
                    inner.output = "said"
        root.output = "a"
    found = recording.root()
    assert recording.shape(found) == (
        "root",
        "agent",
        [
            ("plan", "chain", [("plan llm", "llm", [])]),
            ("act", "chain", [("act llm", "llm", [])]),
        ],
    )
    assert (found["input"], found["output"]) == ("q", "a")
    assert found["sessionId"].startswith("sdk_")
    assert recording.client.traces.list()["totalCount"] == 1
    assert recording.totals()["spansByKind"] == {"agent": 1, "chain": 2, "llm": 2}


def test_a_span_object_used_twice_is_two_spans(recording: Recording):
    again = recording.tracer.trace("again", sync=True)
    ids = []
    for _ in range(2):
        with again as span:
            span.output = "x"
        ids.append(span.trace_id)
    assert [root["_id"] for root in recording.roots()] == ids


def test_errors_inside_spans(recording: Recording):
    tracer = recording.tracer
    with pytest.raises(KeyError), tracer.trace("outer"), tracer.trace("inner"):
        raise KeyError("missing")
    with tracer.trace("handled") as span:
        span.set_error("upstream said no")
    outer, handled = recording.roots()
    assert (outer["error"], recording.child(outer, "inner")["error"]) == ("'missing'", "'missing'")
    assert handled["error"] == "upstream said no"
    kpis = recording.client.monitor.kpis("24h")
    assert (kpis["totalRuns"], kpis["failureRate"]) == (2, 1.0)


def test_tool_calls_are_children_and_entries_of_their_parent(recording: Recording):
    tracer = recording.tracer
    with tracer.trace("agent", sync=True) as span:
        with tracer.trace_tool_call("search", input={"q": "x"}) as call:
            time.sleep(0.02)
            call.output = ["a", "b"]
        with pytest.raises(RuntimeError), tracer.trace_tool_call("charge", input=5):
            raise RuntimeError("card declined")
        tracer.record_tool_call("notify", input="mail", output="sent", latency_ms=40)
        span.add_tool_call("by hand", input=1, output=2, latency_ms=7)
        span.output = "done"
    root = recording.root()
    assert [call["name"] for call in root["toolCalls"]] == ["search", "charge", "notify", "by hand"]
    search, charge, notify, by_hand = root["toolCalls"]
    assert (search["input"], search["output"]) == ({"q": "x"}, ["a", "b"])
    assert (charge["success"], charge["error"]) == (False, "card declined")
    assert "success" not in notify
    assert (by_hand["input"], by_hand["output"], by_hand["latency_ms"]) == (1, 2, 7)
    children = recording.children(root)
    assert {span["name"] for span in children} == {"search", "charge", "notify"}
    assert {span["spanKind"] for span in children} == {"tool"}
    assert recording.child(root, "charge")["error"] == "card declined"
    assert recording.child(root, "notify")["latencyMs"] == 40
    assert recording.child(root, "search")["latencyMs"] >= 20
    assert recording.client.monitor.kpis("24h")["toolFailureRate"] == 1.0
    totals = recording.totals()
    assert (totals["toolCalls"], totals["toolFailures"]) == (4, 1)


def test_what_is_recorded_outside_a_span_rides_on_the_next_trace(recording: Recording):
    tracer = recording.tracer
    tracer.record_tool_call("early", input=1, output=2, success=False, error="no")
    with tracer.trace_retrieval("kb", query="Oslo") as found:
        found.doc_count = 2
        found.output = ["chunk one", "chunk two"]
    with tracer.trace("next"), tracer.trace("child"):
        pass
    root = recording.root()
    assert root["toolCalls"] == [
        {"name": "early", "input": 1, "output": 2, "latency_ms": None, "success": False, "error": "no"}
    ]
    [step] = root["performanceSummary"]["retrieval_steps"]
    assert (step["name"], step["query"], step["doc_count"]) == ("kb", "Oslo", 2)
    assert "toolCalls" not in recording.child(root, "child")


def test_the_travel_concierge(recording: Recording):
    """The worked example of the span kinds page (source 1:8871-8894)."""
    tracer = recording.tracer
    user = "demo-user-7"
    with tracer.trace(
        "travel-concierge", input={"query": "Book my usual kind of flight to Denver next month."}, sync=True
    ) as span:
        with tracer.trace_memory("user prefs", operation="read", query=user) as m:
            m.output = ["prefers window seats", "vegetarian meals", "flies out of Oakland"]
        with tracer.trace_retrieval("route_search", query="Oakland to Denver flights") as r:
            r.doc_count = 2
            r.output = ["OAK->DEN nonstop daily 7:40", "OAK->DEN nonstop daily 18:05"]
        with tracer.trace_memory("user prefs", operation="write", query=user) as m:
            m.output = "stored: planning a Denver trip next month"
        span.output = "Booked the 7:40 nonstop - window seat, vegetarian meal, as usual."
    spans = recording.client.monitor.sessions.spans(span._session_id)
    assert [(one["name"], one["spanKind"]) for one in spans] == [
        ("travel-concierge", "chain"),
        ("user prefs", "memory"),
        ("route_search", "retrieval"),
        ("user prefs", "memory"),
    ]
    assert spans[0]["_id"] == span.trace_id
    assert [one["metadata"] for one in spans[1:]] == [
        {"kind": "memory", "operation": "read"},
        {"kind": "retrieval", "doc_count": 2},
        {"kind": "memory", "operation": "write"},
    ]
    assert spans[2]["output"] == ["OAK->DEN nonstop daily 7:40", "OAK->DEN nonstop daily 18:05"]


def test_failed_memory_and_retrieval(recording: Recording):
    tracer = recording.tracer
    with tracer.trace("agent") as span:
        for block in (tracer.trace_memory("prefs", operation="read"), tracer.trace_retrieval("kb")):
            with pytest.raises(OSError, match="store is gone"), block:
                raise OSError("store is gone")
        span.output = "sorry"
    root = recording.root()
    assert [(span["error"], span["output"]) for span in recording.children(root)] == [
        ("store is gone", "ERROR: store is gone")
    ] * 2
    assert "error" not in root


def test_stated_kinds_and_their_synonyms(recording: Recording):
    with recording.tracer.trace("moderated") as span:
        span.child_span("check_pii", span_kind="guardrail", model="gpt-4o-mini", output={"flagged": False})
        span.child_span("rerank_chunks", span_kind="reranker", input={"candidates": 8}, output={"kept": 3})
        span.child_span("vectorise", span_kind="embedding")
        span.child_span("unstated", model="gpt-4o-mini")
    kinds = {span["name"]: span["spanKind"] for span in recording.children(recording.root())}
    assert kinds == {"check_pii": "guardrail", "rerank_chunks": "reranker", "vectorise": "embedding", "unstated": "llm"}


def test_threads_that_use_the_span(recording: Recording):
    tracer = recording.tracer
    with tracer.trace("orchestrator", span_kind="agent") as span:

        def work(number: int) -> None:
            with tracer.use_span(span), tracer.trace(f"worker {number}") as mine:
                tracer.record_tool_call(f"tool {number}", output=number)
                mine.output = number

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(16)))
    root = recording.root()
    name, kind, children = recording.shape(root)
    assert (name, kind) == ("orchestrator", "agent")
    assert sorted(children) == sorted((f"worker {n}", "tool", [(f"tool {n}", "tool", [])]) for n in range(16))
    assert {span["sessionId"] for span in recording.spans(root)} == {root["sessionId"]}


def test_threads_without_it_start_traces_of_their_own(recording: Recording):
    tracer = recording.tracer

    def work() -> None:
        with tracer.trace("stray"):
            pass

    with tracer.trace("main"), ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    assert sorted(root["name"] for root in recording.roots()) == ["main", "stray"]


def test_tasks_at_once_keep_their_own_spans(recording: Recording):
    tracer = recording.tracer

    @tracer.trace("leaf")
    async def leaf(n: int) -> int:
        await asyncio.sleep(0.01 * (n % 3))
        return n

    async def turn(n: int) -> None:
        with tracer.trace(f"turn {n}", session_id=f"chat {n}"):
            await asyncio.gather(leaf(n), leaf(n + 1))

    async def main() -> None:
        await asyncio.gather(*(turn(n) for n in range(5)))

    asyncio.run(main())
    for root in recording.roots():
        n = int(root["name"].split()[1])
        assert (root["sessionId"], sorted(s["output"] for s in recording.children(root))) == (f"chat {n}", [n, n + 1])


def test_a_sync_root_is_there_with_its_whole_tree(recording: Recording):
    for _ in range(20):
        with recording.tracer.trace("sync", sync=True) as span:
            for n in range(5):
                recording.tracer.record_tool_call(f"t{n}")
        spans = recording.client.monitor.sessions.spans(span._session_id)
        assert len(spans) == 6
        assert next(one for one in spans if one["name"] == "sync")["_id"] == span.trace_id


def test_turns_of_a_session(recording: Recording):
    for n in range(3):
        with recording.tracer.trace("chatbot", session_id="trip/1 ä", input=f"turn {n}", sync=True) as span:
            recording.tracer.record_tool_call("look")
            span.output = f"answer {n}"
            if n == 1:
                span.set_error("lost it")
    spans = recording.client.monitor.sessions.spans("trip/1 ä")
    assert [span["input"] for span in spans if "parentSpanId" not in span] == ["turn 0", "turn 1", "turn 2"]
    [session] = recording.read("/monitor/sessions", window="24h")["sessions"]
    assert (session["turnCount"], session["spanCount"], session["errorCount"]) == (3, 6, 1)
    assert session["agentName"] == "chatbot"


def test_agents_by_name_and_by_id(recording: Recording):
    agents = recording.client.monitor.agents
    made = agents.ensure("support")
    assert agents.ensure("support")["_id"] == made["_id"]
    for name, extra in (("support", {}), ("support-canary", {"agent_id": made["_id"]}), ("other", {})):
        with recording.tracer.trace(name, sync=True, **extra):
            pass
    assert {agent["name"] for agent in agents.list()} == {"support", "other"}
    metrics = recording.read("/monitor/metrics", window="24h", agent=made["_id"])
    assert metrics["totals"]["traces"] == 2
    assert sorted(root["name"] for root in recording.roots()) == ["other", "support", "support-canary"]


def test_eval_traffic_is_not_production(recording: Recording):
    from agentx.tracing.eval_scope import enter_eval_run, exit_eval_run

    token = enter_eval_run("run_1")
    with recording.tracer.trace("judged", sync=True):
        recording.tracer.record_tool_call("look")
    exit_eval_run(token)
    with recording.tracer.trace("live", sync=True):
        pass
    rows = {row["name"]: row for row in recording.client.traces.list()["traces"]}
    assert rows["judged"]["trafficSource"] == "eval-run"
    assert "trafficSource" not in rows["live"]
    assert recording.client.traces.get(rows["judged"]["_id"])["metadata"] == {"evalRunId": "run_1"}
    assert recording.client.monitor.kpis("24h")["totalRuns"] == 1


@pytest.mark.parametrize("where", ["every level", "one below the other", "only the root", "leaves"])
def test_tokens_are_counted_once_wherever_they_are_repeated(recording: Recording, where: str):
    tracer = recording.tracer
    counts = {"model": "gpt-4o-mini", "input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 40}
    with tracer.trace("agent", span_kind="agent", sync=True) as root:
        if where in ("every level", "only the root"):
            root._model = "gpt-4o-mini"
            root._input_tokens, root._output_tokens, root._cache_read_tokens = 100, 20, 40
        if where == "every level":
            root.child_span("tool", span_kind="tool", **counts).child_span("llm", span_kind="llm", **counts)
        elif where == "one below the other":
            root.child_span("llm", span_kind="llm", **counts).child_span("llm again", span_kind="llm", **counts)
        elif where == "leaves":
            half = {**counts, "input_tokens": 50, "output_tokens": 10, "cache_read_tokens": 20}
            root.child_span("one", span_kind="llm", **half)
            root.child_span("two", span_kind="llm", **half)
    # 60 at 0.15, 40 cached at 0.075, 20 out at 0.6 USD a million.
    spent = (60 * 0.15 + 40 * 0.075 + 20 * 0.6) / 1e6
    totals = recording.totals()
    assert (totals["inputTokens"], totals["outputTokens"]) == (100, 20)
    assert totals["costUsd"] == pytest.approx(spent)
    trend = recording.client.monitor.cost_trend("24h")
    assert sum(sum(point["byModel"].values()) for point in trend["points"]) == pytest.approx(spent)
    models = recording.read("/monitor/model-comparison", window="24h")["models"]
    assert sum(row["totalCostUSD"] or 0 for row in models) == pytest.approx(spent)


def test_odd_payloads_come_back(recording: Recording):
    class Thing:
        def __init__(self) -> None:
            self.size = 3

    odd = {"text": "naïve – 🥨\u202e \x00 end", "none": None, "deep": {"a": [1, 2.5, True]}, "thing": Thing()}
    with recording.tracer.trace("odd", input=odd, sync=True) as span:
        span.output = ["x" * 5000, "half an emoji \ud83e"]
    root = recording.root()
    assert root["input"]["text"].startswith("naïve – 🥨")
    assert root["input"]["deep"] == {"a": [1, 2.5, True]}
    assert root["input"]["thing"] == {"size": 3}
    assert root["output"] == ["x" * 5000, "half an emoji \ufffd"]


def test_hosted_only_calls_are_plain_refusals(recording: Recording):
    from agentx.exceptions import AgentXError

    for call in (
        recording.client.list_agents,
        lambda: recording.client.get_agent("x"),
        recording.client.get_profile,
    ):
        with pytest.raises(AgentXError, match="hosted-platform only"):
            call()
