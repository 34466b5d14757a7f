"""The client's other framework integrations against a scripted provider; each is skipped when its library is absent."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.sdk.recording import Recording
from tests.support.providers import Answer, FakeProvider, ToolCall, Usage

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "0")

ASKS_TOOL = Answer(tools=[ToolCall("lookup", {"city": "Oslo"})], usage=Usage(100, 10))
SAYS_RAIN = Answer("It rains in Oslo.", usage=Usage(140, 8))
WITH_TOOL = (240, 18)


def needs(module: str, package: str):
    """The module, or a skip that names the package that is missing: see the extra `integrations`."""
    return pytest.importorskip(module, reason=f"{package} is not installed")


def assert_counted_once(recording: Recording, tokens: tuple[int, int], tools: int = 1) -> None:
    """Tokens of the project as the metrics count them, and its tool calls."""
    totals = recording.totals()
    assert (totals["inputTokens"], totals["outputTokens"]) == tokens
    assert (totals["toolCalls"], totals["toolFailures"]) == (tools, 0)


# --- OpenAI Agents


@pytest.fixture
def agents_sdk(recording: Recording, fake_provider: FakeProvider):
    """The OpenAI Agents SDK with the client's processor as its only one."""
    agents = needs("agents", "openai-agents")
    openai = needs("openai", "openai")
    from agentx.integrations.openai_agents import AgentXTracingProcessor

    processor = AgentXTracingProcessor(recording.tracer, metadata={"env": "test"}, session_id="agents")
    agents.set_trace_processors([processor])
    agents.set_tracing_disabled(False)
    client = openai.AsyncOpenAI(base_url=fake_provider.openai_url, api_key="sk-x", max_retries=0)
    agents.set_default_openai_client(client, use_for_tracing=False)
    yield agents
    agents.set_trace_processors([])


@pytest.mark.parametrize("api", ["responses", "chat_completions"])
def test_openai_agents(recording: Recording, fake_provider, agents_sdk, api):
    agents_sdk.set_default_openai_api(api)

    @agents_sdk.function_tool
    def lookup(city: str) -> str:
        """Weather of a city."""
        return f"rain in {city}"

    fake_provider.answer(ASKS_TOOL, SAYS_RAIN)
    agent = agents_sdk.Agent(name="weather", instructions="Be brief.", model="gpt-4o-mini", tools=[lookup])
    result = asyncio.run(agents_sdk.Runner.run(agent, "Weather in Oslo?"))
    assert result.final_output == "It rains in Oslo."
    root = recording.root()
    assert recording.shape(root) == (
        "Agent workflow",
        "agent",
        [("LLM Call 1", "llm", []), ("lookup", "tool", []), ("LLM Call 2", "llm", [])],
    )
    one, tool, two = recording.children(root)
    assert (one["model"], one["inputTokens"], two["inputTokens"]) == ("gpt-4o-mini", 100, 140)
    assert (tool["input"], tool["output"]) == ('{"city": "Oslo"}', "rain in Oslo")
    assert (root["framework"], root["metadata"], root["sessionId"]) == ("openai-agents", {"env": "test"}, "agents")
    assert "It rains in Oslo." in str(root["output"])
    assert [(call["name"], call["success"]) for call in root["toolCalls"]] == [("lookup", True)]
    assert_counted_once(recording, WITH_TOOL)


def test_openai_agents_failures(recording: Recording, fake_provider, agents_sdk):
    agents_sdk.set_default_openai_api("chat_completions")

    @agents_sdk.function_tool
    def lookup(city: str) -> str:
        """Weather of a city."""
        raise ValueError("no such city")

    fake_provider.answer(ASKS_TOOL, "Sorry.", Answer.failure(401, "key is bad"))
    agent = agents_sdk.Agent(name="weather", model="gpt-4o-mini", tools=[lookup])

    async def main() -> None:
        await agents_sdk.Runner.run(agent, "Weather?")
        with pytest.raises(Exception, match="key is bad"):
            await agents_sdk.Runner.run(agent, "Weather?")

    asyncio.run(main())
    tool_failed, refused = recording.roots()
    assert tool_failed["toolCalls"][0]["success"] is False
    assert "'tool_name': 'lookup'" in tool_failed["error"]  # the library keeps the tool's own words to itself
    assert recording.child(tool_failed, "lookup")["error"] == tool_failed["error"]
    assert "key is bad" in refused["error"]
    assert recording.client.monitor.kpis("24h")["toolFailureRate"] == 0.5


# --- LiteLLM


@pytest.fixture
def litellm(recording: Recording, fake_provider: FakeProvider):
    """LiteLLM with the client's logger, pointed at the scripted provider."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    module = needs("litellm", "litellm")
    from agentx.integrations.litellm import AgentXLiteLLMLogger

    module.callbacks = [AgentXLiteLLMLogger(recording.tracer, name="lite", metadata={"env": "test"})]
    yield module
    # What litellm copied the logger into at the first call.
    for name in (
        "callbacks",
        "success_callback",
        "failure_callback",
        "_async_success_callback",
        "_async_failure_callback",
    ):
        setattr(module, name, [])


def _settled(recording: Recording, number: int) -> list[dict]:
    """The traces once there are this many: LiteLLM logs from a thread of its own."""
    import time

    deadline = time.monotonic() + 20
    while len(roots := recording.roots()) < number and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(roots) == number
    return roots


def test_litellm(recording: Recording, fake_provider, litellm):
    fake_provider.answer(Answer("It rains.", usage=Usage(100, 5, cached=60)), ASKS_TOOL, "streamed words here")
    ask = {
        "model": "openai/gpt-4o-mini",
        "api_base": fake_provider.openai_url,
        "api_key": "sk-x",
        "messages": [{"role": "user", "content": "Weather?"}],
    }
    litellm.completion(**ask)
    _settled(recording, 1)

    async def main() -> None:
        await litellm.acompletion(**ask)
        await asyncio.to_thread(_settled, recording, 2)

    asyncio.run(main())
    for _ in litellm.completion(**ask, stream=True, stream_options={"include_usage": True}):
        pass
    plain, tool, streamed = _settled(recording, 3)
    assert (plain["framework"], plain["spanKind"], plain["model"]) == ("litellm", "llm", "gpt-4o-mini")
    assert (plain["output"], plain["inputTokens"], plain["cacheReadTokens"]) == ("It rains.", 100, 60)
    assert plain["metadata"]["env"] == "test"
    assert tool["output"].startswith("[tool call] lookup(")
    assert (streamed["output"], streamed["inputTokens"]) == ("streamed words here", 10)


def test_litellm_speaks_anthropic_and_fails(recording: Recording, fake_provider, litellm):
    fake_provider.answer(Answer("Claude says.", usage=Usage(50, 5, cached=20)), Answer.failure(400, "bad request"))
    ask = {"api_key": "sk-x", "messages": [{"role": "user", "content": "x"}], "num_retries": 0}
    litellm.completion(model="anthropic/claude-haiku-4-5", api_base=fake_provider.anthropic_url, **ask)
    _settled(recording, 1)
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(model="openai/gpt-4o-mini", api_base=fake_provider.openai_url, **ask)
    claude, failed = _settled(recording, 2)
    assert (claude["output"], claude["inputTokens"], claude["cacheReadTokens"]) == ("Claude says.", 50, 20)
    assert failed["error"]


# --- LlamaIndex


def test_llamaindex(recording: Recording, fake_provider, monkeypatch):
    needs("llama_index.core", "llama-index-core")
    needs("llama_index.llms.openai_like", "llama-index-llms-openai-like")
    from agentx.integrations.llamaindex import AgentXLlamaIndexHandler
    from llama_index.core import Document, MockEmbedding, Settings, SummaryIndex
    from llama_index.core.callbacks import CallbackManager
    from llama_index.llms.openai_like import OpenAILike

    manager = CallbackManager([AgentXLlamaIndexHandler(recording.tracer, name="rag", metadata={"env": "test"})])
    monkeypatch.setattr(Settings, "_callback_manager", manager)
    llm = OpenAILike(
        model="gpt-4o-mini",
        api_base=fake_provider.openai_url,
        api_key="sk-x",
        is_chat_model=True,
        max_retries=0,
    )
    fake_provider.respond = lambda request: SAYS_RAIN
    index = SummaryIndex.from_documents([Document(text="Oslo: rain."), Document(text="Bergen: more rain.")])
    engine = index.as_query_engine(llm=llm, embed_model=MockEmbedding(8))
    assert "It rains in Oslo." in str(engine.query("Weather in Oslo?"))
    root = recording.roots()[-1]
    name, kind, children = recording.shape(root)
    assert (name, kind, root["framework"], root["metadata"]) == ("rag", "agent", "llamaindex", {"env": "test"})
    kinds = [kind for _, kind, _ in children]
    assert kinds == ["retrieval", "llm"]
    retrieval = next(span for span in recording.children(root) if span["spanKind"] == "retrieval")
    assert retrieval["input"] == "Weather in Oslo?"
    assert "Oslo: rain." in str(retrieval["output"])
    assert retrieval["metadata"]["doc_count"] == 2
    assert root["input"] == "Weather in Oslo?"


# --- CrewAI


def test_crewai(recording: Recording, fake_provider, monkeypatch, tmp_path):
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path))
    crewai = needs("crewai", "crewai")
    from agentx.integrations.crewai import AgentXCrewObserver

    fake_provider.respond = lambda request: Answer("Thought: done\nFinal Answer: It rains.", usage=Usage(100, 9))
    llm = crewai.LLM(model="openai/gpt-4o-mini", base_url=fake_provider.openai_url, api_key="sk-x")
    agent = crewai.Agent(role="meteorologist", goal="weather", backstory="old", llm=llm, allow_delegation=False)
    tasks = [
        crewai.Task(description=f"Weather of {city}", expected_output="words", agent=agent) for city in ("Oslo", "Rome")
    ]
    crew = crewai.Crew(agents=[agent], tasks=tasks, verbose=False)
    observer = AgentXCrewObserver(recording.tracer, name="crew", metadata={"env": "test"})
    observer.kickoff(crew, inputs={"topic": "weather"})
    with observer.observe(name="observed", input={"topic": "x"}) as span:
        span.output = "by hand"
    kickoff, observed = recording.roots()
    assert recording.shape(kickoff) == (
        "crew",
        "agent",
        [("Weather of Oslo", "agent", []), ("Weather of Rome", "agent", [])],
    )
    assert (kickoff["framework"], kickoff["metadata"], kickoff["estimatedCostUSD"]) == ("crewai", {"env": "test"}, None)
    assert "It rains." in kickoff["output"]
    assert "toolCalls" not in kickoff
    assert (observed["name"], observed["spanKind"], observed["output"]) == ("observed", "agent", "by hand")


# --- AutoGen


def test_autogen(recording: Recording, fake_provider):
    needs("autogen_agentchat", "autogen-agentchat")
    needs("autogen_ext.models.openai", "autogen-ext[openai]")
    from agentx.integrations.autogen import AgentXAutoGenObserver
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    async def lookup(city: str) -> str:
        """Weather of a city."""
        return f"rain in {city}"

    async def main() -> None:
        model = OpenAIChatCompletionClient(
            model="gpt-4o-mini", base_url=fake_provider.openai_url, api_key="sk-x", max_retries=0
        )
        agent = AssistantAgent("planner", model_client=model, tools=[lookup], reflect_on_tool_use=True)
        observer = AgentXAutoGenObserver(recording.tracer, name="team", metadata={"env": "test"})
        await observer.run(agent, task="Weather in Oslo?")
        await model.close()

    fake_provider.answer(ASKS_TOOL, SAYS_RAIN)
    asyncio.run(main())
    root = recording.root()
    name, kind, children = recording.shape(root)
    assert (name, kind, root["framework"]) == ("team", "agent", "autogen")
    assert {kind for _, kind, _ in children} == {"agent", "tool"}
    assert ("lookup", "tool", []) in children
    assert [(call["name"], call["success"], call["latency_ms"]) for call in root["toolCalls"]] == [
        ("lookup", True, None)
    ]
    assert root["output"] == "It rains in Oslo."
    assert_counted_once(recording, (140, 8))  # the client counts what chat messages carry, not the tool request's


# --- Google ADK


def test_google_adk(recording: Recording, fake_provider, monkeypatch):
    needs("google.adk.runners", "google-adk")
    monkeypatch.setenv("GOOGLE_API_KEY", "x")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "false")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", fake_provider.gemini_url)
    from agentx.integrations.google_adk import AgentXADKPlugin
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    def lookup(city: str) -> dict:
        """Weather of a city."""
        return {"weather": f"rain in {city}"}

    fake_provider.answer(ASKS_TOOL, SAYS_RAIN)
    agent = LlmAgent(name="weather", model="gemini-2.5-flash", instruction="Be brief.", tools=[lookup])
    plugin = AgentXADKPlugin(recording.tracer, name="adk", metadata={"env": "test"})

    async def main() -> None:
        runner = InMemoryRunner(agent=agent, app_name="app", plugins=[plugin])
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="Weather in Oslo?")])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass

    asyncio.run(main())
    root = recording.root()
    name, kind, children = recording.shape(root)
    assert (name, kind, root["framework"]) == ("weather", "agent", "google-adk")
    assert [kind for _, kind, _ in children] == ["llm", "tool", "llm"]
    assert [(call["name"], call["success"]) for call in root["toolCalls"]] == [("lookup", True)]
    assert root["output"] == "It rains in Oslo."
    assert_counted_once(recording, WITH_TOOL)
