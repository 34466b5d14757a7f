"""Drafts of cases from traces and sessions (DATA-045..050)."""

from __future__ import annotations

import pytest

from apps.datasets.models import Dataset
from tests.datasets.conftest import PAGES, SDK

BASE = 1_787_270_400_000


def preview(api, mount=SDK, **body):
    return api.post(f"{mount}/datasets/case-preview", body)


@pytest.mark.parametrize("mount", [SDK, PAGES])
def test_of_a_trace(api, span, mount):
    """Question, reply, failure and source; expected results stay null."""
    row = span("agent", input="Where is my order?", output="Let me check.", error="boom", session_id="s")
    response = preview(api, mount, traceId=row.id, sessionId="ignored")
    assert response.status_code == 200
    assert response.json() == {
        "case": {
            "main_question": {"query": "Where is my order?", "expectedResults": None},
            "follow_up_questions": [],
            "source": {"traceId": row.id},
        },
        "turns": [{"query": "Where is my order?", "actualOutput": "Let me check.", "error": "boom", "traceId": row.id}],
    }
    assert not Dataset.objects.exists()


HISTORY = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "First?"},
    {"role": "assistant", "content": "One."},
]


@pytest.mark.parametrize(
    ("payload", "query"),
    [
        ("plain", "plain"),
        ([*HISTORY, {"role": "user", "content": "Last?"}], "Last?"),
        (
            [
                *HISTORY,
                {"role": "user", "content": [{"type": "text", "text": "Last"}, {"type": "input_text", "text": "?"}]},
            ],
            "Last\n?",
        ),
        ([*HISTORY, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "First?"),
        ([*HISTORY, {"role": "user", "content": [{"type": "tool_result", "content": "42"}]}], "First?"),
        ('[{"role": "user", "content": "as text"}]', "as text"),
        ({"messages": [*HISTORY, {"role": "user", "content": "Last?"}]}, "Last?"),
        ({"query": "now?", "chat_history": HISTORY}, "now?"),
        ({"contents": [{"role": "user", "parts": [{"text": "gemini?"}]}]}, "gemini?"),
        ([{"type": "human", "content": "langchain?"}, {"type": "ai", "content": "yes"}], "langchain?"),
        ([[{"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "dumped?"}}]], "dumped?"),
        ([["human", "pair?"]], "pair?"),
        ([{"role": "user", "parts": [{"type": "text", "content": "otel?"}]}], "otel?"),
        ({"input": [{"role": "user", "content": "responses?"}]}, "responses?"),
        ({"prompt": "p?", "temperature": 1}, "p?"),
        ({"ticket": 5}, '{"ticket": 5}'),
        ('{"not": "a conversation"}', '{"not": "a conversation"}'),
    ],
)
def test_question_of_an_input(api, span, payload, query):
    """The last thing the user said, whatever the framework (DATA-047)."""
    row = span("agent", input=payload, output={"choices": [{"message": {"role": "assistant", "content": "out"}}]})
    [turn] = preview(api, traceId=row.id).json()["turns"]
    assert (turn["query"], turn["actualOutput"]) == (query, "out")


def test_child_names_its_trace(api, span):
    """A child's id gives the case of its root."""
    root = span("agent", span_id="a", input="root?")
    child = span("llm", span_id="b", parent_span_id="a", input="child?")
    assert preview(api, traceId=child.id).json()["turns"] == [
        {"query": "root?", "actualOutput": None, "error": None, "traceId": root.id}
    ]


@pytest.mark.parametrize(
    ("session_id", "extra"),
    [("mw_77", {"framework": "moveworks"}), ("sim-1", {"metadata": {"simulated": True}}), ("dbx_1", {}), ("s", {})],
)
def test_of_a_session(api, span, session_id, extra):
    """Roots in time order whatever order they came in; children and turns without words are left out (DATA-048, 049)."""
    span("turn", session_id=session_id, span_id="3", input="Third?", output="3", at_ms=BASE + 3000, **extra)
    span("turn", session_id=session_id, span_id="1", input="First?", output="1", at_ms=BASE + 1000, **extra)
    span("llm", session_id=session_id, parent_span_id="1", input="child", at_ms=BASE + 1500)
    span("turn", session_id=session_id, input='{"interaction_type": "x"}', at_ms=BASE + 1700, **extra)
    span("turn", session_id=session_id, span_id="2", input="Second?", error="broke", at_ms=BASE + 2000, **extra)
    body = preview(api, sessionId=session_id).json()
    assert body["case"]["main_question"] == {"query": "First?", "expectedResults": None}
    assert [item["query"] for item in body["case"]["follow_up_questions"]] == ["Second?", "Third?"]
    assert body["case"]["source"] == {"sessionId": session_id}
    assert [(t["query"], t["actualOutput"], t["error"]) for t in body["turns"]] == [
        ("First?", "1", None),
        ("Second?", None, "broke"),
        ("Third?", "3", None),
    ]


def test_refusals(api, other_api, span):
    """Neither id 400; unknown, foreign or without a usable turn 404 (DATA-050)."""
    empty = span("agent", session_id="silent")
    row = span("agent", input="q", session_id="s")
    for body in ({}, {"traceId": None, "sessionId": ""}, {"traceId": 5}):
        assert preview(api, **body).status_code == 400
    for body in ({"traceId": "x" * 21}, {"traceId": "\0" * 21}, {"sessionId": "nope"}, {"sessionId": "\0"}):
        assert preview(api, **body).status_code == 404
    assert preview(api, traceId=empty.id).status_code == 404
    assert preview(api, sessionId="silent").status_code == 404
    assert preview(other_api, traceId=row.id).status_code == 404
    assert preview(other_api, sessionId="s").status_code == 404
    assert preview(api, traceId=row.id).status_code == 200


def test_long_session(api, span, django_assert_max_num_queries):
    """Queries do not grow with its turns."""
    for n in range(30):
        span("turn", session_id="long", input=f"q{n}", at_ms=BASE + n)
    preview(api, sessionId="long")
    with django_assert_max_num_queries(2):
        assert len(preview(api, sessionId="long").json()["turns"]) == 30


def test_cut_conversation_has_no_question(api, span):
    """What ingest cut off cannot be asked, and an earlier message does not stand for it; a long plain text can."""
    history = [{"role": "user", "content": "x" * 60_000}, {"role": "user", "content": "y" * 60_000}]
    assert preview(api, traceId=span("agent", input=history).id).status_code == 404
    [turn] = preview(api, traceId=span("agent", input="z" * 120_000).id).json()["turns"]
    assert turn["query"].startswith("zzz")
