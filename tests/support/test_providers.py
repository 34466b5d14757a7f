"""The scripted provider speaks to the real client libraries in their own dialects."""

from __future__ import annotations

import concurrent.futures

import httpx
import pytest

from tests.support.providers import Answer, ToolCall, Usage

openai = pytest.importorskip("openai", reason="the openai package is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic package is not installed")

QUESTION = [{"role": "user", "content": "Where?"}]
LOOKUP = Answer(tools=[ToolCall("lookup", {"city": "Oslo"})], usage=Usage(100, 7, cached=60))


@pytest.fixture
def chat(fake_provider):
    """An OpenAI client that does not retry."""
    with openai.OpenAI(base_url=fake_provider.openai_url, api_key="sk-test", max_retries=0, timeout=5) as client:
        yield client


@pytest.fixture
def claude(fake_provider):
    """An Anthropic client that does not retry."""
    with anthropic.Anthropic(
        base_url=fake_provider.anthropic_url, api_key="sk-test", max_retries=0, timeout=5
    ) as client:
        yield client


def test_chat_completions(fake_provider, chat):
    fake_provider.answer("In Oslo.", LOOKUP)
    said = chat.chat.completions.create(model="gpt-x", messages=QUESTION)
    assert (said.choices[0].message.content, said.model, said.usage.prompt_tokens) == ("In Oslo.", "gpt-x", 10)
    asked = chat.chat.completions.create(model="gpt-x", messages=QUESTION)
    call = asked.choices[0].message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("lookup", '{"city": "Oslo"}')
    assert asked.choices[0].finish_reason == "tool_calls"
    assert asked.usage.prompt_tokens_details.cached_tokens == 60
    assert fake_provider.count == 2
    assert fake_provider.last.json["messages"] == QUESTION
    assert fake_provider.last.headers["authorization"] == "Bearer sk-test"


@pytest.mark.parametrize("counted", [True, False])
def test_chat_completions_streamed(fake_provider, chat, counted):
    fake_provider.answer(Answer("one two three", tools=LOOKUP.tools, usage=Usage(9, 3)))
    options = {"stream_options": {"include_usage": True}} if counted else {}
    chunks = list(chat.chat.completions.create(model="gpt-x", messages=QUESTION, stream=True, **options))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "one two three"
    parts = [call.function.arguments for delta in deltas for call in delta.tool_calls or []]
    assert "".join(parts) == '{"city": "Oslo"}'
    assert [chunk.usage.prompt_tokens for chunk in chunks if chunk.usage] == ([9] if counted else [])


def test_responses(fake_provider, chat):
    fake_provider.answer("In Oslo.", LOOKUP)
    said = chat.responses.create(model="gpt-x", input="Where?")
    assert (said.output_text, said.usage.input_tokens) == ("In Oslo.", 10)
    asked = chat.responses.create(model="gpt-x", input="Where?")
    assert (asked.output[0].name, asked.usage.input_tokens_details.cached_tokens) == ("lookup", 60)


def test_responses_streamed(fake_provider, chat):
    fake_provider.answer(Answer("one two", tools=LOOKUP.tools))
    with chat.responses.stream(model="gpt-x", input="Where?") as stream:
        done = stream.get_final_response()
    assert (done.output_text, done.output[1].arguments) == ("one two", '{"city": "Oslo"}')


def test_messages(fake_provider, claude):
    fake_provider.answer(
        Answer("In Oslo.", tools=LOOKUP.tools, usage=Usage(100, 7, cached=60, cache_write=30)), Answer("one two")
    )
    said = claude.messages.create(model="claude-x", max_tokens=9, messages=QUESTION)
    assert (said.content[0].text, said.content[1].input, said.stop_reason) == ("In Oslo.", {"city": "Oslo"}, "tool_use")
    usage = said.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (10, 60, 30)
    with claude.messages.stream(model="claude-x", max_tokens=9, messages=QUESTION) as stream:
        final = stream.get_final_message()
    assert (final.content[0].text, final.usage.output_tokens) == ("one two", 5)


def test_messages_streamed_tool(fake_provider, claude):
    fake_provider.answer(LOOKUP)
    with claude.messages.stream(model="claude-x", max_tokens=9, messages=QUESTION) as stream:
        assert stream.get_final_message().content[0].input == {"city": "Oslo"}


def test_gemini(fake_provider):
    fake_provider.answer(LOOKUP, "one two")
    url = f"{fake_provider.gemini_url}/v1beta/models/gemini-x"
    said = httpx.post(f"{url}:generateContent", json={"contents": []}).json()
    assert said["candidates"][0]["content"]["parts"] == [{"functionCall": {"name": "lookup", "args": {"city": "Oslo"}}}]
    assert said["usageMetadata"]["cachedContentTokenCount"] == 60
    streamed = httpx.post(f"{url}:streamGenerateContent?alt=sse", json={"contents": []}).text
    assert streamed.count("data: ") == 2
    assert fake_provider.last.model == "gemini-x"


def test_embeddings_and_models(fake_provider, chat):
    one, other, again = (
        chat.embeddings.create(model="embed-x", input=["a", "b", "a"], dimensions=40).data[n].embedding
        for n in range(3)
    )
    assert len(one) == 40
    assert one == again != other
    assert [model.id for model in chat.models.list()] == ["test-model"]


def test_scripted_faults(fake_provider, chat, claude):
    fake_provider.answer(
        Answer.failure(429, "slow down", headers={"Retry-After": "7"}),
        Answer.failure(529, "overloaded"),
        Answer(body="<html>not json"),
        Answer("cut off", close_after=20),
        Answer("one two three", close_after=2),
        Answer("silent", stall_after=0),
    )

    def ask(**more):
        return chat.chat.completions.create(model="gpt-x", messages=QUESTION, **more)

    with pytest.raises(openai.RateLimitError, match="slow down") as refused:
        ask()
    assert refused.value.response.headers["retry-after"] == "7"
    with pytest.raises(anthropic.APIStatusError, match="overloaded"):
        claude.messages.create(model="claude-x", max_tokens=9, messages=QUESTION)
    with pytest.raises(ValueError, match="Expecting value"):
        ask()
    with pytest.raises((openai.APIConnectionError, httpx.RemoteProtocolError)):
        ask()
    with pytest.raises((openai.APIError, httpx.RemoteProtocolError)):
        list(ask(stream=True))
    with pytest.raises(openai.APITimeoutError):
        ask(timeout=0.2)


def test_a_callable_sees_the_request_and_the_peak_is_counted(fake_provider):
    fake_provider.respond = lambda request: Answer(request.json["messages"][0]["content"].upper(), delay=0.2)

    def ask(n: int) -> str:
        body = {"messages": [{"role": "user", "content": f"q{n}"}]}
        said = httpx.post(f"{fake_provider.openai_url}/chat/completions", json=body).json()
        return said["choices"][0]["message"]["content"]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == ["Q0", "Q1", "Q2", "Q3"]
    assert fake_provider.peak > 1
    fake_provider.forget()
    assert (fake_provider.count, ask(1)) == (0, "ok")
