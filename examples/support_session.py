"""A conversation: several turns under one session id, tool calls timed and recorded, one of them failing."""

import time
import uuid

from agentx import AgentX

ORDERS = {"A-17": "shipped, arrives on Tuesday"}
TURNS = ["Where is my order A-17?", "And B-99?", "Thanks!"]


def look_up(order: str) -> str:
    """The order service: it knows one order."""
    time.sleep(0.02)
    if order not in ORDERS:
        raise LookupError(f"no order {order}")
    return ORDERS[order]


def answer(client: AgentX, question: str) -> str:
    """One turn of the agent: ask the order service when an order is named."""
    named = [word.strip("?") for word in question.split() if "-" in word]
    if not named:
        return "You are welcome!"
    try:
        # An exception that leaves the block marks the call as failed, with its text, and goes on.
        with client.tracer.trace_tool_call("look_up", input={"order": named[0]}) as call:
            call.output = look_up(named[0])
    except LookupError:
        return "I cannot find that order."
    return f"Your order is {call.output}."


def main() -> None:
    """Three turns; the failure rates of the last day come back from the server."""
    session_id = f"support-{uuid.uuid4().hex[:8]}"
    with AgentX.from_env() as client:
        client.ping()
        for question in TURNS:
            with client.tracer.trace(
                "support-agent", input=question, session_id=session_id, span_kind="agent", sync=True
            ) as span:
                span.output = answer(client, question)
        turns = [span for span in client.monitor.sessions.spans(session_id) if "parentSpanId" not in span]
        print(f"session {session_id}")
        for turn in turns:
            print(f"  {turn['input']} -> {turn['output']}")
        kpis = client.monitor.kpis("24h")
        print(f"runs {kpis['totalRuns']}, tool failure rate {kpis['toolFailureRate']:.0%}")


if __name__ == "__main__":
    main()
