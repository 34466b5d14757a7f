"""Any OpenTelemetry program: point its exporter at the server and use the GenAI attributes."""

import json
import os

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def main() -> None:
    """An agent that thinks with a model and calls a tool."""
    exporter = OTLPSpanExporter(
        endpoint=f"{os.environ['AGENTX_API_BASE_URL']}/otel/v1/traces",
        headers={"x-api-key": os.environ["AGENTX_API_KEY"]},
    )
    provider = TracerProvider(resource=Resource({"service.name": "otel-example"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("otel-example")

    def messages(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    with tracer.start_as_current_span("invoke_agent planner") as agent:
        agent.set_attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "planner",
                "gen_ai.conversation.id": "otel-example",
                "gen_ai.input.messages": messages("user", "Plan a day in Oslo"),
                "gen_ai.output.messages": messages("assistant", "Museum, then the opera."),
            }
        )
        with tracer.start_as_current_span("chat gpt-4o-mini") as chat:
            chat.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": "gpt-4o-mini",
                    "gen_ai.usage.input_tokens": 130,
                    "gen_ai.usage.output_tokens": 24,
                }
            )
        with tracer.start_as_current_span("execute_tool opening_hours") as tool:
            tool.set_attributes(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": "opening_hours",
                    "gen_ai.tool.call.arguments": '{"place": "museum"}',
                    "gen_ai.tool.call.result": "10 to 18",
                }
            )
    provider.shutdown()
    print("delivered")


if __name__ == "__main__":
    main()
