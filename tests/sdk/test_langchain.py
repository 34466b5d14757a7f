"""The client's LangChain and LangGraph callbacks against a scripted provider."""

from __future__ import annotations

import pytest

from tests.sdk.recording import Recording
from tests.support.providers import Answer, ToolCall, Usage

pytest.importorskip("langchain_core", reason="langchain-core (extra `integrations`) is not installed")
pytest.importorskip("langchain_openai", reason="langchain-openai (extra `integrations`) is not installed")

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def lookup(city: str) -> str:
    """Weather of a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"rain in {city}"


class Shelf(BaseRetriever):
    """Two documents for any question."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=f"about {query}"), Document(page_content="more")]


@pytest.fixture
def model(fake_provider):
    """A chat model whose provider is scripted."""
    return ChatOpenAI(
        model="gpt-4o-mini", base_url=fake_provider.openai_url, api_key="sk-x", max_retries=0, use_responses_api=False
    )


@pytest.fixture
def handler(recording: Recording):
    """The client's callback handler."""
    from agentx.integrations.langchain import AgentXCallbackHandler

    return AgentXCallbackHandler(recording.tracer, name="weather-chain", metadata={"env": "test"}, session_id="lc")


def test_a_chain(recording: Recording, fake_provider, model, handler):
    fake_provider.answer(Answer("Rain.", usage=Usage(50, 3)))
    chain = ChatPromptTemplate.from_template("Weather in {city}?") | model | StrOutputParser()
    assert chain.invoke({"city": "Oslo"}, config={"callbacks": [handler]}) == "Rain."
    root = recording.root()
    assert recording.shape(root) == ("weather-chain", "agent", [("LLM Call 1", "llm", [])])
    [call] = recording.children(root)
    assert (call["output"], call["model"], call["inputTokens"], call["outputTokens"]) == ("Rain.", "gpt-4o-mini", 50, 3)
    assert (root["framework"], root["metadata"], root["sessionId"], root["output"]) == (
        "langchain",
        {"env": "test"},
        "lc",
        "Rain.",
    )
    assert (recording.totals()["inputTokens"], recording.totals()["outputTokens"]) == (50, 3)


def test_a_retrieval_chain(recording: Recording, fake_provider, model, handler):
    fake_provider.answer("Rain.")
    shelf = Shelf()

    def gather(question: str) -> str:
        return "\n".join(document.page_content for document in shelf.invoke(question))

    chain = RunnableLambda(gather, name="gather") | ChatPromptTemplate.from_template("{text}") | model
    chain.invoke("Oslo", config={"callbacks": [handler]})
    root = recording.root()
    retrieval = next(span for span in recording.spans(root) if span["spanKind"] == "retrieval")
    assert retrieval["input"] == "Oslo"
    assert "about Oslo" in str(retrieval["output"])
    assert retrieval["metadata"] == {"kind": "retrieval", "doc_count": 2}


def _graph(model):
    langgraph = pytest.importorskip("langgraph.graph", reason="langgraph (extra `integrations`) is not installed")
    from langgraph.prebuilt import ToolNode, tools_condition

    bound = model.bind_tools([lookup])

    def assistant(state):
        return {"messages": [bound.invoke(state["messages"])]}

    graph = langgraph.StateGraph(langgraph.MessagesState)
    graph.add_node("assistant", assistant)
    graph.add_node("tools", ToolNode([lookup]))
    graph.add_edge(langgraph.START, "assistant")
    graph.add_conditional_edges("assistant", tools_condition)
    graph.add_edge("tools", "assistant")
    return graph.compile()


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside a span"])
def test_a_graph_with_tools(recording: Recording, fake_provider, model, handler, inside):
    fake_provider.answer(
        Answer(
            tools=[ToolCall("lookup", {"city": "Oslo"}), ToolCall("lookup", {"city": "Bergen"})],
            usage=Usage(100, 10),
        ),
        Answer("Rain in both.", usage=Usage(140, 6)),
    )
    ask = {"messages": [("user", "Weather in Oslo and Bergen?")]}
    if inside:
        with recording.tracer.trace("outer", span_kind="agent"):
            _graph(model).invoke(ask, config={"callbacks": [handler]})
    else:
        _graph(model).invoke(ask, config={"callbacks": [handler]})
    root = recording.root()
    name, kind, nodes = recording.shape(root)
    assert (name, kind) == ("outer" if inside else "weather-chain", "agent")
    assert [(node, kind) for node, kind, _ in nodes] == [
        ("assistant", "chain"),
        ("tools", "chain"),
        ("assistant", "chain"),
    ]
    assert nodes[0][2][0][:2] == ("LLM Call 1", "llm")
    assert nodes[2][2][0][:2] == ("LLM Call 2", "llm")
    tools = [span for span in recording.spans(root) if span["spanKind"] == "tool"]
    assert [span["name"] for span in tools] == ["lookup", "lookup"]
    assert {span["parentSpanId"] for span in tools} == {
        span["spanId"] for span in recording.spans(root) if span["name"] == "tools"
    }
    assert [(call["name"], call["success"]) for call in root["toolCalls"]] == [("lookup", True)] * 2
    assert root["output"] == "Rain in both."
    assert root["model"] == "gpt-4o-mini"
    assert [tool["function"]["name"] for tool in root["metadata"]["tools"]] == ["lookup"]
    totals = recording.totals()
    assert (totals["inputTokens"], totals["outputTokens"]) == (240, 16)
    assert totals["costUsd"] == pytest.approx((240 * 0.15 + 16 * 0.6) / 1e6)
    assert (totals["toolCalls"], totals["toolFailures"]) == (2, 0)


def test_a_failing_tool_in_a_graph(recording: Recording, fake_provider, model, handler):
    fake_provider.answer(Answer(tools=[ToolCall("lookup", {"city": "Atlantis"})]))
    with pytest.raises(ValueError, match="no such city"):
        _graph(model).invoke({"messages": [("user", "Atlantis?")]}, config={"callbacks": [handler]})
    root = recording.root()
    assert "no such city" in root["error"]
    failed = {span["name"]: span["error"] for span in recording.spans(root) if "error" in span}
    assert "no such city" in failed["tools"]
    assert "no such city" in failed["lookup"]
    assert root["toolCalls"][0]["success"] is False
    kpis = recording.client.monitor.kpis("24h")
    assert (kpis["failureRate"], kpis["toolFailureRate"]) == (1.0, 1.0)


def test_a_failing_provider(recording: Recording, fake_provider, model, handler):
    fake_provider.answer(Answer.failure(401, "key is bad"))
    chain = ChatPromptTemplate.from_template("{q}") | model
    with pytest.raises(Exception, match="key is bad"):
        chain.invoke({"q": "x"}, config={"callbacks": [handler]})
    assert "key is bad" in recording.root()["error"]
