"""What a linked trace gives the judge: path, definitions of used tools, retrieved chunks."""

from __future__ import annotations

import json

import pytest

from apps.scorers.judging.trace_material import actual_context, chunks_of, context_text, read_trace
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn


def j(value):
    return json.dumps(value).encode()


@pytest.fixture
def trace(project):
    """Stores a root and rows below it (in order), gives the material of the trace."""

    def make(*children, **root):
        spans = [SpanIn(name="agent", span_id="root", start_ns=1_000, **root)]
        spans += [
            SpanIn(**{"span_id": f"s{n}", "parent_span_id": "root", "start_ns": 1_000 + n} | child)
            for n, child in enumerate(children, 1)
        ]
        stored = store_spans(project, spans)
        return read_trace(project, stored[0].id)

    return make


TOOL = {"name": "lookup_order", "kind": "tool", "input": j({"id": "A-1"}), "output": j({"status": "paid"})}


def test_the_path_lists_tools_in_order_with_arguments_results_and_failures(trace):
    material = trace(
        TOOL,
        {"name": "kb", "kind": "retrieval", "input": j("refunds"), "output": j(["30 days."])},
        {"name": "refund", "kind": "tool", "input": j({"id": "A-1"}), "error": "card expired"},
        {"name": "billing", "kind": "agent", "output": j("done")},
        {"name": "gpt", "kind": "llm", "output": j("thinking")},
    )
    assert material.trajectory == (
        '1. Tool lookup_order\n   arguments: {"id": "A-1"}\n   result: {"status": "paid"}\n'
        '2. Retrieval kb\n   arguments: refunds\n   result: ["30 days."]\n'
        '3. Tool refund - FAILED\n   arguments: {"id": "A-1"}\n   error: card expired\n'
        "4. Sub-agent billing\n   result: done"
    )


def test_a_flat_trace_is_read_from_its_list_of_calls(trace):
    calls = [
        {"name": "lookup", "input": {"q": 1}, "output": "ok", "success": True},
        {"name": "refund", "output": "no", "success": False, "error": "denied"},
    ]
    material = trace(tool_calls=j(calls))
    assert material.trajectory == (
        '1. Tool lookup\n   arguments: {"q": 1}\n   result: ok\n2. Tool refund - FAILED\n   result: no\n   error: denied'
    )
    assert [call["name"] for call in material.tool_calls] == ["lookup", "refund"]


def test_tool_calls_are_those_the_root_lists(trace):
    material = trace(TOOL, tool_calls=j([{"name": "lookup_order", "success": True}] * 2))
    assert [call["name"] for call in material.tool_calls] == ["lookup_order"] * 2
    assert material.trajectory.count("lookup_order") == 1


def test_a_trace_without_tools_says_so(trace):
    assert trace().trajectory == "The agent called no tool."


def test_a_trace_of_another_project_or_none_gives_nothing(project):
    assert read_trace(project, None) is None
    assert read_trace(project, "") is None
    assert read_trace(project, "x" * 21) is None


def test_a_child_leads_to_its_whole_trace(project):
    stored = store_spans(
        project,
        [
            SpanIn(name="agent", span_id="r", tool_calls=j([{"name": "a"}])),
            SpanIn(name="a", kind="tool", span_id="c", parent_span_id="r"),
        ],
    )
    assert read_trace(project, stored[1].id).trace_id == stored[0].id


OFFERED = [
    {"type": "function", "function": {"name": "lookup_order", "description": "Finds an order", "parameters": {}}},
    {"name": "refund", "description": "Pays back", "input_schema": {}},
    {"functionDeclarations": [{"name": "escalate"}, {"name": "close"}]},
]


def test_definitions_only_of_used_tools_once_each_and_one_line_of_the_rest(trace):
    model_call = {"name": "m", "kind": "llm", "metadata": j({"tools": OFFERED})}
    material = trace(TOOL, model_call, model_call | {"name": "m2"}, TOOL, tool_calls=j([{"name": "close"}]))
    closed, found, rest = material.tool_definitions.split("\n")
    assert (closed, json.loads(found)["name"]) == ('{"name": "close"}', "lookup_order")
    assert material.tool_definitions.count("Finds an order") == 1
    assert rest == "Offered to the model but not used: refund, escalate"


@pytest.mark.parametrize("name", ["kb_search", "Retrieval 1", "übersicht"])
def test_chunks_come_from_rows_of_the_retrieval_kind_whatever_their_name(trace, name):
    row = {"name": name, "kind": "retrieval"}
    assert trace(row | {"output": j(["one", "two"])}, row | {"output": j(["two", "three"])}).retrieval == [
        "one",
        "two",
        "three",
    ]


def test_a_trace_without_a_retrieval_tells_nothing_of_context(trace):
    assert trace().retrieval is None


def test_an_empty_retrieval_is_empty(trace):
    assert trace({"name": "kb", "kind": "retrieval", "output": j([])}).retrieval == []


def test_a_flat_trace_gives_its_recorded_retrieval_steps(trace):
    summary = {"retrieval_steps": [{"query": "q", "output": "one\n\n---\n\ntwo"}]}
    assert trace(performance_summary=j(summary)).retrieval == ["one", "two"]


@pytest.mark.parametrize(
    ("value", "chunks"),
    [
        ("one text", ["one text"]),
        ("one\n\n---\n\ntwo", ["one", "two"]),
        (["a", "", None, "b"], ["a", "b"]),
        ([{"page_content": "a", "metadata": {}}, {"text": "b"}, {"document": {"content": "c"}}], ["a", "b", "c"]),
        ({"documents": [{"pageContent": "a"}]}, ["a"]),
        ('["a", "b"]', ["a", "b"]),
        ("[not json", ["[not json"]),
        ([{"id": 7}], ['{"id": 7}']),
        (None, []),
        ([], []),
        (7, ["7"]),
    ],
)
def test_chunks_of_every_shape(value, chunks):
    assert chunks_of(value) == chunks


def test_the_result_s_own_context_wins_then_the_trace_then_the_pinned_one(trace):
    material = trace({"name": "kb", "kind": "retrieval", "output": j(["from the trace", "second"])})
    assert context_text("own", material, "pinned") == "own"
    assert context_text(["own", "too"], material, "pinned") == "[1] own\n\n[2] too"
    assert context_text(None, material, "pinned") == "[1] from the trace\n\n[2] second"
    assert context_text(None, None, "pinned") == "pinned"
    assert context_text(None, None, None) == ""
    assert actual_context(None, None) is None
    assert actual_context([], material) == []


def test_context_stated_on_the_trace_goes_before_its_retrieval_rows(trace):
    material = trace(
        {"name": "kb", "kind": "retrieval", "output": j(["row"])}, metadata=j({"retrievalContext": ["stated"]})
    )
    assert actual_context(None, material) == ["stated"]


def test_of_two_calls_of_one_tool_only_the_failed_one_is_marked(trace):
    calls = [{"name": "pay", "success": True}, {"name": "pay", "success": False, "error": "declined"}]
    pay = {"name": "pay", "kind": "tool"}
    assert trace(pay, pay, tool_calls=j(calls)).trajectory == "1. Tool pay\n2. Tool pay - FAILED\n   error: declined"


def test_what_is_nested_without_end_breaks_nothing():
    document, nested = {"content": "deep"}, ["deep"]
    for _ in range(5000):
        document, nested = {"document": document}, [nested]
    assert chunks_of([document, nested]) == ["(nested too deep to show)"] * 2
