"""Readable words out of payloads of every shape."""

from __future__ import annotations

import json

import pytest

from apps.dashboard.messages import conversation
from apps.dashboard.texts import answered, asked, one_line


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("Where is it?", "Where is it?"),
        ({"query": "Where is it?"}, "Where is it?"),
        ({"input": {"question": "Where is it?"}}, "Where is it?"),
        ([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is it?"}], "Where is it?"),
        ({"messages": [["user", "Where is it?"]]}, "Where is it?"),
        ({"messages": [{"type": "human", "content": [{"type": "text", "text": "Where is it?"}]}]}, "Where is it?"),
        ({"contents": 7, "x": 1}, '{\n  "contents": 7,\n  "x": 1\n}'),
        (None, ""),
        ([], ""),
        (12, "12"),
    ],
)
def test_the_question_is_found(payload, text):
    assert asked(json.dumps(payload)) == text


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("It left.", "It left."),
        ({"answer": "It left.", "sources": []}, "It left."),
        ({"choices": [{"message": {"role": "assistant", "content": "It left."}}]}, "It left."),
        ({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "It left."}]}, "It left."),
        ([{"type": "text", "text": "It left."}], "It left."),
    ],
)
def test_the_answer_is_found(payload, text):
    assert answered(json.dumps(payload)) == text


def test_broken_and_cut_payloads_are_shown_as_they_are():
    assert asked('"Where is my par') == "Where is my par"
    assert asked("{broken") == "{broken"
    assert asked(None) == ""
    assert asked("[" * 100_000).startswith("[")


def test_a_line_is_cut_at_its_end():
    assert one_line("a\n  b") == "a b"
    assert one_line("x" * 200).endswith("…") and len(one_line("x" * 200)) == 160


def _as_the_client_writes(text: str) -> str:
    """What the published client sends for an answer of the OpenAI Agents SDK: four levels down, `str(value)[:200]`."""
    part = {"annotations": [], "text": text, "type": "output_text", "logprobs": []}
    message = {"id": "msg_1", "content": [str(part)[:200]], "role": "assistant", "status": "completed"}
    return json.dumps([{**message, "type": "message"}])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("The Grand Hotel.", "The Grand Hotel."),
        ('It\'s "open".\nTwo lines', 'It\'s "open".\nTwo lines'),
        ("word " * 60, ("word " * 60)[:171].rstrip() + "…"),
        ("it's " * 60, ("it's " * 60)[:171].rstrip() + "…"),
    ],
    ids=["short", "quotes", "cut", "cut with quotes"],
)
def test_answers_that_came_written_as_python_are_read(said, shown):
    payload = _as_the_client_writes(said)
    assert answered(payload).replace(" …", "…") == shown
    [message] = conversation(json.loads(payload))
    assert message.parts[0].text.replace(" …", "…") == shown


@pytest.mark.parametrize(
    "text", ["{'a': 1}", "{'text': 3, 'type': 'text'}", "{'annotations': [{'x': 1", "{'" + "x" * 500]
)
def test_other_text_stays_as_it_is(text):
    assert answered(json.dumps(text)) == text
