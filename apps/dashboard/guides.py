"""The tracing guides: one a framework, with snippets that carry this server's address.

Snippets hold two marks that the page fills: `{base}` (the API base clients send to) and `{key}` (a masked key; "Copy
with key" puts the project's own key in).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Step:
    """One block of code with the sentence above it."""

    text: str | Promise
    code: str
    language: str = "python"


@dataclass(frozen=True, slots=True)
class Guide:
    """How to trace with one framework; `framework` is the label its traces carry in filters."""

    slug: str
    name: str
    group: str
    framework: str
    summary: str | Promise
    steps: tuple[Step, ...]
    notes: tuple[str | Promise, ...] = ()


GROUPS: tuple[tuple[str, str | Promise], ...] = (
    ("start", _("Start here")),
    ("framework", _("Agent frameworks")),
    ("provider", _("Model clients")),
    ("standard", _("OpenTelemetry and HTTP")),
    ("import", _("Importers")),
)

_ENVIRONMENT = """export AGENTX_API_BASE_URL={base}
export AGENTX_API_KEY={key}"""


def _install(extra: str = "", *more: str) -> Step:
    package = f'"agentx-python[{extra}]"' if extra else "agentx-python"
    packages = " ".join((package, *more))
    return Step(_("Install the SDK and tell it where to send."), f"pip install {packages}\n{_ENVIRONMENT}", "sh")


GUIDES: tuple[Guide, ...] = (
    Guide(
        "python",
        "Python SDK",
        "start",
        "",
        _("Any Python agent: a decorator or a with-block makes a trace, nested ones become its tree."),
        (
            _install(),
            Step(
                _("Send the first trace and read it back."),
                """from agentx import AgentX

client = AgentX.from_env()

with client.tracer.trace(
    "support-agent", input="Where is my parcel?", session_id="chat-1", sync=True
) as span:
    with client.tracer.trace_retrieval("help centre", query="delivery times") as r:
        r.doc_count, r.output = 1, [{"id": "kb-7", "content": "Standard delivery takes two days."}]
    with client.tracer.trace_tool_call("shipping.track", input={"order": "LF-20418"}) as t:
        t.output = {"status": "in transit"}
    span.output = "It left the warehouse and arrives tomorrow."

print(span.trace_id)""",
            ),
            Step(
                _("Or decorate what you have; async functions work alike."),
                """@client.tracer.trace("support-agent")
def answer(question: str) -> str:
    return llm(question)""",
            ),
        ),
        (
            _("Threads: open `tracer.use_span(span)` in the worker, so that its steps join the tree."),
            _("Traces are sent in the background; `client.close()` waits for the last ones."),
            _("Give turns of one conversation the same `session_id`: they show as a session."),
        ),
    ),
    Guide(
        "langchain",
        "LangChain and LangGraph",
        "framework",
        "langchain",
        _("A callback handler records chains, graph nodes, model calls, tools and retrievers."),
        (
            _install("langchain"),
            Step(
                _("Pass the handler with the call."),
                """from agentx import AgentX
from agentx.integrations.langchain import AgentXCallbackHandler

client = AgentX.from_env()
handler = AgentXCallbackHandler(client.tracer, name="research-agent")

# LCEL chain, AgentExecutor or a LangGraph graph: all take the same handler.
result = graph.invoke({"messages": [("user", "Compare the two warranties")]}, config={"callbacks": [handler]})""",
            ),
        ),
        (_("Graph nodes become spans of their own, so parallel branches stand side by side in the timeline."),),
    ),
    Guide(
        "crewai",
        "CrewAI",
        "framework",
        "crewai",
        _("An observer around kickoff records the crew, its tasks, agents and tools."),
        (
            _install("crewai"),
            Step(
                _("Start the crew through the observer."),
                """from agentx import AgentX
from agentx.integrations.crewai import AgentXCrewObserver

client = AgentX.from_env()
observer = AgentXCrewObserver(client.tracer, name="content-crew")
result = observer.kickoff(crew, inputs={"topic": "AI"})""",
            ),
        ),
    ),
    Guide(
        "openai-agents",
        "OpenAI Agents SDK",
        "framework",
        "openai-agents",
        _("A tracing processor records every run in the process: agents, hand-offs, tools, guardrails."),
        (
            _install("openai-agents"),
            Step(
                _("Register the processor once at start."),
                """from agents import add_trace_processor
from agentx import AgentX
from agentx.integrations.openai_agents import AgentXTracingProcessor

client = AgentX.from_env()
add_trace_processor(AgentXTracingProcessor(client.tracer))""",
            ),
        ),
    ),
    Guide(
        "autogen",
        "AutoGen",
        "framework",
        "autogen",
        _("An observer for AgentChat agents and teams (AutoGen 0.4 and later)."),
        (
            _install("autogen"),
            Step(
                _("Run agents and teams through the observer."),
                """from agentx import AgentX
from agentx.integrations.autogen import AgentXAutoGenObserver

client = AgentX.from_env()
observer = AgentXAutoGenObserver(client.tracer, name="planner")
result = await observer.run(team, task="Plan a two-day trip")""",
            ),
        ),
    ),
    Guide(
        "google-adk",
        "Google ADK",
        "framework",
        "google-adk",
        _("A plugin of the runner records agents, model calls and tools."),
        (
            _install("google-adk"),
            Step(
                _("Add the plugin to the runner."),
                """from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from agentx import AgentX
from agentx.integrations.google_adk import AgentXADKPlugin

client = AgentX.from_env()
runner = Runner(
    agent=agent,
    app_name="my-app",
    session_service=InMemorySessionService(),
    plugins=[AgentXADKPlugin(client.tracer, name="my-agent")],
)""",
            ),
        ),
    ),
    Guide(
        "llamaindex",
        "LlamaIndex",
        "framework",
        "llamaindex",
        _("A callback handler records queries, retrievals with their chunks, and model calls."),
        (
            _install("llamaindex"),
            Step(
                _("Register the handler for everything, or for one query engine."),
                """from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from agentx import AgentX
from agentx.integrations.llamaindex import AgentXLlamaIndexHandler

client = AgentX.from_env()
handler = AgentXLlamaIndexHandler(client.tracer, name="rag-agent")
Settings.callback_manager = CallbackManager([handler])""",
            ),
        ),
    ),
    Guide(
        "openai",
        "OpenAI",
        "provider",
        "openai",
        _("Patch the client once; chat completions are traced, streamed ones with their time to first token."),
        (
            _install("openai"),
            Step(
                _("Patch the client."),
                """import openai
from agentx import AgentX
from agentx.integrations.openai import patch_openai_client

client = AgentX.from_env()
llm = openai.OpenAI()
patch_openai_client(llm, client.tracer, name="support-agent")""",
            ),
        ),
        (
            _('Streams carry token counts only with `stream_options={"include_usage": True}`.'),
            _("Inside `tracer.trace(...)` the calls become children of that trace."),
        ),
    ),
    Guide(
        "anthropic",
        "Anthropic",
        "provider",
        "anthropic",
        _("Patch the client once; messages and streams are traced with tool use and cache tokens."),
        (
            _install("anthropic"),
            Step(
                _("Patch the client."),
                """import anthropic
from agentx import AgentX
from agentx.integrations.anthropic import patch_anthropic_client

client = AgentX.from_env()
llm = anthropic.Anthropic()
patch_anthropic_client(llm, client.tracer, name="claude-agent")""",
            ),
        ),
    ),
    Guide(
        "google-genai",
        "Google Gen AI",
        "provider",
        "google-genai",
        _("Patch the Gemini client once; plain and streamed calls are traced."),
        (
            _install("google-genai"),
            Step(
                _("Patch the client."),
                """from google import genai
from agentx import AgentX
from agentx.integrations.google_genai import patch_genai_client

client = AgentX.from_env()
llm = genai.Client()
patch_genai_client(llm, client.tracer, name="gemini-agent")""",
            ),
        ),
    ),
    Guide(
        "litellm",
        "LiteLLM",
        "provider",
        "litellm",
        _("One callback records every completion, whatever the provider."),
        (
            _install("litellm"),
            Step(
                _("Register the logger."),
                """import litellm
from agentx import AgentX
from agentx.integrations.litellm import AgentXLiteLLMLogger

client = AgentX.from_env()
litellm.callbacks = [AgentXLiteLLMLogger(client.tracer, name="my-agent")]""",
            ),
        ),
    ),
    Guide(
        "nvidia-nim",
        "NVIDIA NIM",
        "provider",
        "nvidia-nim",
        _("The OpenAI client pointed at a NIM endpoint, under a platform label of its own."),
        (
            _install("nvidia-nim"),
            Step(
                _("Patch the client."),
                """import openai
from agentx import AgentX
from agentx.integrations.nvidia_nim import patch_nim_client

client = AgentX.from_env()
nim = openai.OpenAI(base_url="http://localhost:8000/v1", api_key="not-needed")
patch_nim_client(nim, client.tracer, name="nim-agent")""",
            ),
        ),
    ),
    Guide(
        "opentelemetry",
        "OpenTelemetry",
        "standard",
        "",
        _("Any OTLP exporter, in any language: protobuf or JSON over HTTP, or gRPC."),
        (
            Step(
                _("HTTP, protobuf or JSON, compressed or not."),
                """export OTEL_EXPORTER_OTLP_ENDPOINT={base}/otel
export OTEL_EXPORTER_OTLP_HEADERS=x-api-key={key}
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf""",
                "sh",
            ),
            Step(
                _("gRPC, when the server was installed with its `grpc` extra."),
                """export OTEL_EXPORTER_OTLP_ENDPOINT=http://{host}:{grpc_port}
export OTEL_EXPORTER_OTLP_HEADERS=x-api-key={key}
export OTEL_EXPORTER_OTLP_PROTOCOL=grpc""",
                "sh",
            ),
            Step(
                _("Conversations: put one of these attributes on the spans of a conversation."),
                """span.set_attribute("session.id", "chat-1")           # or agentx.session_id
span.set_attribute("gen_ai.conversation.id", "chat-1")""",
            ),
        ),
        (
            _("Understood: GenAI semantic conventions, OpenInference, OpenLLMetry and MLflow attributes."),
            _("A span without a session gets the OpenTelemetry trace id as its session."),
        ),
    ),
    Guide(
        "openinference",
        "OpenInference, OpenLLMetry",
        "standard",
        "",
        _("Instrumentation packages that already exist for your framework, exported to this server."),
        (
            Step(
                _("For example OpenInference for LangChain."),
                """pip install openinference-instrumentation-langchain opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
export OTEL_EXPORTER_OTLP_ENDPOINT={base}/otel
export OTEL_EXPORTER_OTLP_HEADERS=x-api-key={key}""",
                "sh",
            ),
            Step(
                _("Instrument and export."),
                """from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangChainInstrumentor().instrument(tracer_provider=provider)""",
            ),
        ),
    ),
    Guide(
        "http",
        "HTTP",
        "standard",
        "",
        _("One POST a span, from anything that speaks HTTP. The answer comes after the span is stored."),
        (
            Step(
                _("Send a trace with a tool call."),
                """curl {base}/ingest/traces \\
  -H "x-api-key: {key}" -H "content-type: application/json" \\
  -d '{
    "name": "support-agent",
    "sessionId": "chat-1",
    "input": "Where is my parcel?",
    "output": "It arrives tomorrow.",
    "latencyMs": 840,
    "model": "gpt-4o-mini", "inputTokens": 412, "outputTokens": 38,
    "toolCalls": [{"name": "shipping.track", "input": {"order": "LF-20418"}, "success": true}]
  }'""",
                "sh",
            ),
        ),
        (_("A `spanId` makes a repeat of the same request harmless; `parentSpanId` builds the tree."),),
    ),
    Guide(
        "databricks",
        "Databricks and MLflow",
        "import",
        "databricks",
        _("Live export of MLflow Tracing, or an import of traces that are already there."),
        (
            _install("databricks"),
            Step(
                _("Live: before the first trace starts."),
                """import os
from agentx.integrations.databricks import enable_mlflow_export

enable_mlflow_export(
    api_key=os.environ["AGENTX_API_KEY"],
    base_url="{base}",
    service_name="my-databricks-agent",
)""",
            ),
            Step(
                _("Import: repeats never duplicate."), "agentx-databricks sync --experiment-id 123456 --since 24h", "sh"
            ),
        ),
    ),
    Guide(
        "moveworks",
        "Moveworks",
        "import",
        "moveworks",
        _("Conversations from the Moveworks Data API, with their original dates."),
        (
            _install("moveworks"),
            Step(
                _("Run it from cron; it keeps its own cursor."),
                "export MOVEWORKS_API_KEY=...\nagentx-moveworks sync --since 7d",
                "sh",
            ),
        ),
        (_("The Data API carries no token counts, so these traces add nothing to the cost charts."),),
    ),
)


def steps_of(guide: Guide, *, grpc_port: int) -> list[Step]:
    """The guide's steps that hold on this server: none for gRPC while its receiver is off."""
    return [step for step in guide.steps if grpc_port or "{grpc_port}" not in step.code]


BY_SLUG = {guide.slug: guide for guide in GUIDES}
MASKED_KEY = "agtx_local_…"


def grouped() -> Iterator[tuple[str | Promise, list[Guide]]]:
    """The guides under their headings, in the order of the page."""
    for group, label in GROUPS:
        yield label, [guide for guide in GUIDES if guide.group == group]


def fill(code: str, *, base_url: str, grpc_port: int, key: str = MASKED_KEY) -> str:
    """A snippet with this server's addresses and the (masked) key."""
    host = urlsplit(base_url).hostname or "localhost"
    return (
        code.replace("{base}", base_url)
        .replace("{host}", f"[{host}]" if ":" in host else host)
        .replace("{grpc_port}", str(grpc_port))
        .replace("{key}", key)
    )
