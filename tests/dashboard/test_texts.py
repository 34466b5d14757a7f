"""Readable words out of payloads of every shape."""

from __future__ import annotations

import json

import pytest

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
