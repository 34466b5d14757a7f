"""A tool loop over the plain OpenAI client: patched once, every model call is a step of the trace it happens in."""

import json
import os

import openai
from agentx import AgentX
from agentx.integrations.openai import patch_openai_client

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def weather(city: str) -> str:
    """The tool."""
    return f"12 degrees and rain in {city}"


def main() -> None:
    """Ask, run the tools the model asks for, and answer; at most five rounds."""
    question = "Do I need an umbrella in Oslo?"
    with AgentX.from_env() as client, openai.OpenAI() as model:
        patch_openai_client(model, client.tracer, name="weather-agent")
        with client.tracer.trace("weather-agent", input=question, span_kind="agent", sync=True) as span:
            messages: list = [{"role": "user", "content": question}]
            for _ in range(5):
                said = model.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                if not said.tool_calls:
                    break
                for call in said.tool_calls:
                    arguments = json.loads(call.function.arguments)
                    with client.tracer.trace_tool_call(call.function.name, input=arguments) as ran:
                        ran.output = weather(**arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": ran.output})
            span.output = said.content
        trace = client.traces.get(span.trace_id)
        cost = trace["estimatedCostUSD"]
        print(span.output)
        print(f"{trace['inputTokens']} tokens in, {trace['outputTokens']} out, {cost or 0:.6f} USD")


if __name__ == "__main__":
    main()
