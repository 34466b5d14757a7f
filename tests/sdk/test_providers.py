"""The client's patches of raw provider libraries: OpenAI, NVIDIA NIM, Anthropic and Google GenAI against a scripted provider."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.sdk.recording import Recording
from tests.support.providers import Answer, FakeProvider, ToolCall, Usage

openai = pytest.importorskip("openai", reason="the openai package is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic package is not installed")

QUESTION = [{"role": "user", "content": "Weather in Oslo?"}]
TOOLS = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}]
ASKS_TOOL = Answer(tools=[ToolCall("lookup", {"city": "Oslo"})], usage=Usage(100, 10, cached=60))
SAYS_RAIN = Answer("It rains in Oslo.", usage=Usage(140, 8, cached=100))
# gpt-4o-mini: 0.15 in, 0.075 cached, 0.6 out; USD a million tokens.
FIRST_CALL = (40 * 0.15 + 60 * 0.075 + 10 * 0.6) / 1e6
SECOND_CALL = (40 * 0.15 + 100 * 0.075 + 8 * 0.6) / 1e6


@pytest.fixture
def chat(fake_provider: FakeProvider, recording: Recording):
    """A patched OpenAI client."""
    from agentx.integrations.openai import patch_openai_client

    with openai.OpenAI(base_url=fake_provider.openai_url, api_key="sk-x", max_retries=0, timeout=10) as client:
        patch_openai_client(client, recording.tracer, name="weather", metadata={"env": "test"}, session_id="chat-1")
        yield client


@pytest.fixture
def claude(fake_provider: FakeProvider, recording: Recording):
    """A patched Anthropic client."""
    from agentx.integrations.anthropic import patch_anthropic_client

    with anthropic.Anthropic(base_url=fake_provider.anthropic_url, api_key="sk-x", max_retries=0, timeout=10) as client:
        patch_anthropic_client(client, recording.tracer, name="claude", metadata={"env": "test"})
        yield client


def test_openai_alone_is_one_llm_root(recording: Recording, fake_provider, chat):
    fake_provider.answer(SAYS_RAIN)
    reply = chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION)
    assert reply.choices[0].message.content == "It rains in Oslo."
    root = recording.root()
    assert (root["name"], root["spanKind"], root["framework"], root["model"]) == (
        "weather",
        "llm",
        "openai",
        "gpt-4o-mini",
    )
    assert (root["input"], root["output"], root["sessionId"]) == (QUESTION, "It rains in Oslo.", "chat-1")
    assert (root["inputTokens"], root["outputTokens"], root["cacheReadTokens"]) == (140, 8, 100)
    assert root["estimatedCostUSD"] == pytest.approx(SECOND_CALL)
    assert root["metadata"] == {"env": "test"}
    assert len(recording.spans(root)) == 1


def test_openai_with_a_tool_inside_a_span(recording: Recording, fake_provider, chat):
    fake_provider.answer(ASKS_TOOL, SAYS_RAIN)
    tracer = recording.tracer
    with tracer.trace("weather-agent", input="Weather in Oslo?", session_id="turns") as span:
        first = chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, tools=TOOLS)
        call = first.choices[0].message.tool_calls[0]
        with tracer.trace_tool_call(call.function.name, input=json.loads(call.function.arguments)) as ran:
            ran.output = "rain"
        messages = [
            *QUESTION,
            first.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ]
        chat.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        span.output = "Take an umbrella."
    root = recording.root()
    assert recording.shape(root) == (
        "weather-agent",
        "llm",
        [("LLM Call 1", "llm", []), ("lookup", "tool", []), ("LLM Call 2", "llm", [])],
    )
    one, lookup, two = recording.children(root)
    assert one["output"] == '[tool call] lookup({"city": "Oslo"})'
    assert two["output"] == "It rains in Oslo."
    assert (lookup["input"], lookup["output"]) == ({"city": "Oslo"}, "rain")
    assert {span["framework"] for span in (root, one, lookup, two)} == {"openai"}
    assert (root["output"], root["model"], root["inputTokens"], root["outputTokens"]) == (
        "Take an umbrella.",
        "gpt-4o-mini",
        240,
        18,
    )
    assert [call["name"] for call in root["toolCalls"]] == ["lookup"]
    assert root["metadata"]["tools"] == TOOLS
    totals = recording.totals()
    assert (totals["traces"], totals["spans"]) == (1, 4)
    assert (totals["inputTokens"], totals["outputTokens"]) == (240, 18)
    assert totals["costUsd"] == pytest.approx(FIRST_CALL + SECOND_CALL)


def test_openai_streamed(recording: Recording, fake_provider, chat):
    fake_provider.answer(SAYS_RAIN, ASKS_TOOL, SAYS_RAIN)
    counted = {"stream": True, "stream_options": {"include_usage": True}}
    for extra in (counted, {"stream": True}, {"stream": True}):
        stream = chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, **extra)
        for _ in stream:
            pass
    whole, tool, uncounted = recording.roots()
    assert (whole["output"], whole["inputTokens"], whole["outputTokens"]) == ("It rains in Oslo.", 140, 8)
    assert whole["metadata"]["streaming"] is True
    assert whole["metadata"]["timeToFirstTokenMs"] >= 0
    assert tool["output"] == '[tool call] lookup({"city": "Oslo"})'
    assert (uncounted["output"], uncounted["inputTokens"], uncounted["estimatedCostUSD"]) == (
        "It rains in Oslo.",
        None,
        None,
    )


def test_openai_stream_left_in_the_middle(recording: Recording, fake_provider, chat):
    fake_provider.answer(Answer("one two three four"))
    with chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, stream=True) as stream:
        for chunk in stream:
            if chunk.choices[0].delta.content == " two":
                break
    assert recording.root()["output"] == "one two"


def test_openai_async_at_once(recording: Recording, fake_provider):
    from agentx.integrations.openai import patch_openai_client

    fake_provider.respond = lambda request: f"echo {request.json['messages'][0]['content']}"

    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=fake_provider.openai_url, api_key="sk-x") as client:
            patch_openai_client(client, recording.tracer, name="async")

            async def turn(n: int) -> None:
                with recording.tracer.trace(f"turn {n}"):
                    asked = [{"role": "user", "content": str(n)}]
                    await client.chat.completions.create(model="gpt-4o-mini", messages=asked)
                    stream = await client.chat.completions.create(model="gpt-4o-mini", messages=asked, stream=True)
                    async for _ in stream:
                        pass

            await asyncio.gather(*(turn(n) for n in range(4)))

    asyncio.run(main())
    roots = recording.roots()
    assert sorted(root["name"] for root in roots) == [f"turn {n}" for n in range(4)]
    for root in roots:
        said = f"echo {root['name'].split()[1]}"
        assert [(span["name"], span["output"]) for span in recording.children(root)] == [
            ("LLM Call 1", said),
            ("LLM Call 2", said),
        ]


def test_openai_faults(recording: Recording, fake_provider, chat):
    fake_provider.answer(
        Answer.failure(429, "slow down"),
        Answer("lost", close_after=10),
        Answer("one two three", close_after=2),
        Answer("late", stall_after=0),
    )

    def ask(**more):
        return chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION, **more)

    with pytest.raises(openai.RateLimitError):
        ask()
    with pytest.raises(openai.APIError):
        ask()
    with pytest.raises(Exception):  # noqa: B017  what breaks depends on the HTTP library
        list(ask(stream=True))
    with pytest.raises(openai.APITimeoutError), recording.tracer.trace("agent"):
        ask(timeout=0.2)
    refused, cut, halfway, silent = recording.roots()
    assert "slow down" in refused["error"]
    assert (cut["spanKind"], "output" in cut) == ("llm", False)
    assert cut["error"]
    assert halfway["output"] == "one"
    assert halfway["error"]
    assert silent["error"] == "Request timed out."
    assert recording.client.monitor.kpis("24h")["failureRate"] == 1.0


def test_nvidia_nim(recording: Recording, fake_provider):
    from agentx.integrations.nvidia_nim import patch_nim_client

    fake_provider.answer(SAYS_RAIN)
    with openai.OpenAI(base_url=fake_provider.openai_url, api_key="x") as client:
        patch_nim_client(client, recording.tracer, name="nim")
        client.chat.completions.create(model="meta/llama-3.1-8b-instruct", messages=QUESTION)
    root = recording.root()
    assert (root["framework"], root["model"], root["estimatedCostUSD"]) == (
        "nvidia-nim",
        "meta/llama-3.1-8b-instruct",
        None,
    )


def test_anthropic_with_a_system_prompt_and_a_tool(recording: Recording, fake_provider, claude):
    cached = Usage(100, 10, cached=50, cache_write=30)
    fake_provider.answer(Answer(tools=ASKS_TOOL.tools, usage=cached), Answer("It rains.", usage=Usage(40, 5)))
    with recording.tracer.trace("claude-agent", input="Weather?") as span:
        for _ in range(2):
            reply = claude.messages.create(
                model="claude-haiku-4-5", max_tokens=64, system="Be brief.", messages=QUESTION
            )
        span.output = reply.content[0].text
    root = recording.root()
    one, two = recording.children(root)
    assert one["input"][0] == {"role": "system", "content": "Be brief."}
    assert one["output"] == "[tool call] lookup({'city': 'Oslo'})"
    assert (one["inputTokens"], one["cacheReadTokens"], one["cacheWriteTokens"]) == (100, 50, 30)
    assert two["output"] == "It rains."
    # claude-haiku-4-5: 1 in, 0.1 read, 1.25 written, 5 out; USD a million tokens.
    spent = (20 * 1 + 50 * 0.1 + 30 * 1.25 + 10 * 5 + 40 * 1 + 5 * 5) / 1e6
    assert recording.totals()["costUsd"] == pytest.approx(spent)
    assert (root["framework"], root["inputTokens"], root["outputTokens"]) == ("anthropic", 140, 15)


def test_anthropic_streamed_both_ways(recording: Recording, fake_provider, claude):
    usage = Usage(90, 12, cached=40)
    fake_provider.answer(Answer("one two", usage=usage), Answer(tools=ASKS_TOOL.tools, usage=usage))
    with claude.messages.stream(model="claude-haiku-4-5", max_tokens=64, messages=QUESTION) as stream:
        assert "".join(stream.text_stream) == "one two"
    for _ in claude.messages.create(model="claude-haiku-4-5", max_tokens=64, messages=QUESTION, stream=True):
        pass
    helper, raw = recording.roots()
    assert helper["output"] == "one two"
    assert raw["output"] == '[tool call] lookup({"city": "Oslo"})'
    for root in (helper, raw):
        assert (root["inputTokens"], root["outputTokens"], root["cacheReadTokens"]) == (90, 12, 40)
        assert (root["spanKind"], root["metadata"]["env"]) == ("llm", "test")


def test_anthropic_faults(recording: Recording, fake_provider, claude):
    fake_provider.answer(Answer.failure(529, "overloaded"), Answer(body="<html>"))
    for _ in range(2):
        with pytest.raises(Exception):  # noqa: B017  one is an API error, the other a parse error
            reply = claude.messages.create(model="claude-haiku-4-5", max_tokens=64, messages=QUESTION)
            reply.content[0].text  # noqa: B018
    assert "overloaded" in recording.roots()[0]["error"]


def test_google_genai(recording: Recording, fake_provider):
    genai = pytest.importorskip("google.genai", reason="the google-genai package is not installed")
    from agentx.integrations.google_genai import patch_genai_client

    fake_provider.answer(
        Answer("It rains.", usage=Usage(100, 10, cached=60)),
        Answer("one two", usage=Usage(50, 4)),
        ASKS_TOOL,
        Answer.failure(400, "no such model"),
    )
    client = genai.Client(api_key="x", http_options={"base_url": fake_provider.gemini_url})
    patch_genai_client(client, recording.tracer, name="gemini")
    client.models.generate_content(model="gemini-2.5-flash", contents="Weather?")
    for _ in client.models.generate_content_stream(model="gemini-2.5-flash", contents="Weather?"):
        pass
    client.models.generate_content(model="gemini-2.5-flash", contents="Weather?")
    with pytest.raises(genai.errors.ClientError):
        client.models.generate_content(model="gemini-9", contents="Weather?")
    whole, streamed, tool, refused = recording.roots()
    assert (whole["output"], whole["inputTokens"], whole["cacheReadTokens"]) == ("It rains.", 100, 60)
    # gemini-2.5-flash: 0.3 in, 0.03 cached, 2.5 out; USD a million tokens.
    assert whole["estimatedCostUSD"] == pytest.approx((40 * 0.3 + 60 * 0.03 + 10 * 2.5) / 1e6)
    assert (streamed["output"], streamed["inputTokens"], streamed["outputTokens"]) == ("one two", 50, 4)
    assert tool["output"].startswith("[tool call] lookup(")
    assert "no such model" in refused["error"]
    assert {root["framework"] for root in (whole, streamed, tool, refused)} == {"google-genai"}
