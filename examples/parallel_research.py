"""Work side by side under one trace: a thread needs `use_span`, an asyncio task has the span of whoever started it."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from agentx import AgentX

TOPICS = ["history", "prices", "weather"]


def main() -> None:
    """One trace by threads, one by tasks."""
    with AgentX.from_env() as client:
        tracer = client.tracer

        with tracer.trace("research-threads", input=TOPICS, span_kind="agent") as span:

            def read(topic: str) -> str:
                with tracer.use_span(span), tracer.trace(f"read {topic}", span_kind="chain") as step:
                    time.sleep(0.05)
                    step.output = f"notes on {topic}"
                    return step.output

            with ThreadPoolExecutor() as pool:
                span.output = list(pool.map(read, TOPICS))

        @tracer.trace("ask", span_kind="chain")
        async def ask(topic: str) -> str:
            await asyncio.sleep(0.05)
            return f"answer on {topic}"

        async def gather() -> None:
            with tracer.trace("research-tasks", input=TOPICS, span_kind="agent") as span:
                span.output = await asyncio.gather(*(ask(topic) for topic in TOPICS))

        asyncio.run(gather())
        print("delivered" if tracer.flush() else "still sending")


if __name__ == "__main__":
    main()
