"""A LangGraph agent: one callback handler records the run as a tree of graph nodes with their model and tool calls."""

import os

from agentx import AgentX
from agentx.integrations.langchain import AgentXCallbackHandler
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"12 degrees and rain in {city}"


def main() -> None:
    """Build the graph, run it once, and print the tree as the server has it."""
    model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini")).bind_tools([weather])

    def assistant(state: MessagesState) -> dict:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("assistant", assistant)
    graph.add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "assistant")
    graph.add_conditional_edges("assistant", tools_condition)
    graph.add_edge("tools", "assistant")

    with AgentX.from_env() as client:
        handler = AgentXCallbackHandler(client.tracer, name="weather-graph", session_id="langgraph-example")
        result = graph.compile().invoke(
            {"messages": [("user", "Do I need an umbrella in Oslo?")]}, config={"callbacks": [handler]}
        )
        print(result["messages"][-1].content)
        client.tracer.flush()
        for span in client.monitor.sessions.spans("langgraph-example"):
            print(f"  {span['spanKind']:<8} {span['name']}")


if __name__ == "__main__":
    main()
