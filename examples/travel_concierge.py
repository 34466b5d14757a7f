"""One trace whose steps mix memory and retrieval: recalled user state, looked-up knowledge, and what was learned."""

from agentx import AgentX

USER_ID = "demo-user-7"


def main() -> None:
    """Record the turn, then read its spans back: `sync=True` means they are there."""
    with AgentX.from_env() as client:
        tracer = client.tracer
        question = {"query": "Book my usual kind of flight to Denver next month."}
        with tracer.trace("travel-concierge", input=question, sync=True) as span:
            # A memory read is recalled state, deliberately not a retrieval.
            with tracer.trace_memory("user prefs", operation="read", query=USER_ID) as memory:
                memory.output = ["prefers window seats", "vegetarian meals", "flies out of Oakland"]
            with tracer.trace_retrieval("route_search", query="Oakland to Denver flights") as retrieval:
                retrieval.output = ["OAK->DEN nonstop daily 7:40", "OAK->DEN nonstop daily 18:05"]
                retrieval.doc_count = 2
            with tracer.trace_memory("user prefs", operation="write", query=USER_ID) as memory:
                memory.output = "stored: planning a Denver trip next month"
            span.output = "Booked the 7:40 nonstop - window seat, vegetarian meal, as usual."

        trace = client.traces.get(span.trace_id)
        print(f"trace {trace['_id']} in session {trace['sessionId']}")
        for step in client.monitor.sessions.spans(trace["sessionId"]):
            print(f"  {step['spanKind']:<10} {step['name']}")


if __name__ == "__main__":
    main()
