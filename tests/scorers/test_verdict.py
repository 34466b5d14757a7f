"""A judge's answer is read for certain or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.scorers.judging.verdict import Unusable, Verdict, parse_verdict

GOOD = json.dumps({"rating": 7, "justification": "2 of 3 claims supported."})

READABLE = {
    GOOD: (7, "2 of 3 claims supported."),
    f"```json\n{GOOD}\n```": (7, "2 of 3 claims supported."),
    f"```\n{GOOD}\n```": (7, "2 of 3 claims supported."),
    f"Here is my verdict:\n{GOOD}\nLet me know.": (7, "2 of 3 claims supported."),
    f'<think>maybe {{"rating": 2}}</think>\n{GOOD}': (7, "2 of 3 claims supported."),
    f"The set {{a, b}} is covered. {GOOD}": (7, "2 of 3 claims supported."),
    '{"rating": "8/10", "justification": "x"}': (8, "x"),
    '{"rating": "8 / 10", "justification": "x"}': (8, "x"),
    '{"rating": "8 out of 10", "justification": "x"}': (8, "x"),
    '{"rating": "8", "justification": "x"}': (8, "x"),
    '{"rating": "8,5", "justification": "x"}': (8.5, "x"),
    '{"rating": 0.9, "justification": "x"}': (0.9, "x"),
    '{"rating": 0, "justification": "x"}': (0, "x"),
    '{"rating": 10.0, "justification": "x"}': (10, "x"),
    '{"rating": 8, "justification": "x",}': (8, "x"),
    '{"rating": 8, "justification": "a, }b",\n}': (8, "a, }b"),
    "{'rating': 8, 'justification': 'it is fine'}": (8, "it is fine"),
    '{"Rating": 8, "reasoning": "x"}': (8, "x"),
    '{"rating": 8}': (8, ""),
    '{"rating": 8, "justification": "line one\nline two"}': (8, "line one\nline two"),
    '{"rating": 6, "justification": "Die Antwort ist gut, aber 3 von 4 Aussagen fehlen 10"}': (
        6,
        "Die Antwort ist gut, aber 3 von 4 Aussagen fehlen 10",
    ),
    '{"rating": 3, "justification": "quotes {\\"rating\\": 10} from the answer"}': (
        3,
        'quotes {"rating": 10} from the answer',
    ),
    "8/10": (8, ""),
    "8": (8, ""),
    "Rating: 8/10\nJustification: well put": (8, "well put"),
    "**Rating:** 8\n**Justification:** well put": (8, "well put"),
}

UNUSABLE = [
    "",
    "   \n",
    "null",
    "True",
    "[]",
    "{}",
    "INCORRECT",
    "CORRECT",
    "I'm sorry, but I can't help with that.",
    "The answer deserves 8 of 10, or perhaps 7.",
    "La respuesta es buena",
    "<think>8</think>",
    "Rating: 8\nJustification: x\nRating: 3",
    "Rating: 8 or 9",
    "8 9",
    "８",
    "٨",
    '{"rating": 11, "justification": "x"}',
    '{"rating": -1, "justification": "x"}',
    '{"rating": 98989, "justification": "x"}',
    '{"rating": 10.01, "justification": "x"}',
    '{"rating": 1e400, "justification": "x"}',
    '{"rating": NaN, "justification": "x"}',
    '{"rating": Infinity, "justification": "x"}',
    '{"rating": null, "justification": "x"}',
    '{"rating": true, "justification": "x"}',
    '{"rating": "", "justification": "x"}',
    '{"rating": "NaN", "justification": "x"}',
    '{"rating": "N/A", "justification": "x"}',
    '{"rating": "seven", "justification": "x"}',
    '{"rating": "4/5", "justification": "x"}',
    '{"rating": "85/100", "justification": "x"}',
    '{"rating": "80%", "justification": "x"}',
    '{"rating": "7-8", "justification": "x"}',
    '{"rating": "1,000", "justification": "x"}'.replace("1,000", "1,0,0"),
    '{"rating": "11/10", "justification": "x"}',
    '{"rating": "٨", "justification": "x"}',
    '{"rating": [8], "justification": "x"}',
    '{"rating": {"value": 8}, "justification": "x"}',
    '{"rating": 8, "rating": 3, "justification": "x"}',
    '{"rating": 8, "Rating": 3, "justification": "x"}',
    "{'rating': 8, 'rating': 3}",
    '{"bewertung": 8, "justification": "x"}',
    '{"score": 0.8}',
    "Score: 0.8",
    '{"result": {"rating": 8}}',
    '{"rating": 8, "justification": "x"} {"rating": 3, "justification": "y"}',
    '{"rating": 8, "justification": "x"}\n{"rating": 8, "justification": "x"}',
    '{"order": 1} {"rating": 8, "justification": "x"}',
    '{"rating": 8, "justification": "the answ',
    '{"rating": 8, "justification": {"a": {"rating": 9}',
    '{"draft": {"rating": 9}, "rating": ',
    '{"rating": 8, "justification": "x"',
    '{"a": 1 "rating": 8} {"rating": 9}',
    '{"a":' * 100_000,
    "{" * 100_000,
    '{"rating": ' + "9" * 10_000 + "}",
    "<html><body>502 Bad Gateway</body></html>",
]


@pytest.mark.parametrize("text", READABLE)
def test_a_readable_answer_gives_its_rating(text):
    rating, why = READABLE[text]
    assert parse_verdict(text, "stop") == Verdict(rating, why)


@pytest.mark.parametrize("text", UNUSABLE, ids=lambda text: text[:40])
def test_what_cannot_be_read_for_certain_is_no_rating(text):
    outcome = parse_verdict(text, "stop")
    assert isinstance(outcome, Unusable), outcome
    assert outcome.reason


def test_a_reply_cut_by_the_token_limit_is_no_rating_even_when_it_looks_whole():
    assert parse_verdict("1", "length") == Unusable("it was cut off at the token limit")
    assert isinstance(parse_verdict(GOOD, "length"), Unusable)
    assert isinstance(parse_verdict("", "content_filter"), Unusable)


def test_the_reason_says_what_was_wrong():
    assert parse_verdict('{"rating": 11}') == Unusable("its rating 11 is outside 0-10")
    assert parse_verdict('{"rating": "4/5"}') == Unusable('its rating "4/5" is on another scale than 0-10')
    assert parse_verdict(GOOD + GOOD) == Unusable("it holds more than one JSON object")


@pytest.mark.parametrize(
    "piece", ["{", "{ ", '{"a"', "{'a': ", "\n", "*", "<think>", "```", "rating: ", '{"rating": 8} ', "  {", "\\"]
)
def test_a_long_answer_costs_no_long_time(piece):
    for length in (90_000, 3_000_000):
        assert isinstance(parse_verdict(piece * (length // len(piece)), "stop"), Unusable)


fragments = st.lists(
    st.sampled_from(
        [
            '{"rating": ',
            "8",
            "11",
            '"8/10"',
            ', "justification": ',
            '"x"',
            "}",
            "{",
            "```json\n",
            "```",
            "'",
            "\\",
            ",",
            "NaN",
            "null",
            "Rating: ",
            "\n",
            "{'rating': 3}",
            "[",
            "]",
            "<think>",
            "</think>",
            "\x00",
            "\ud800",
            " ",
        ]
    ),
    max_size=30,
).map("".join)


@settings(max_examples=1500, deadline=None)
@given(st.one_of(st.text(), fragments), st.sampled_from([None, "stop", "length", "content_filter", "error"]))
def test_no_text_raises_or_leaves_the_scale(text, finish):
    outcome = parse_verdict(text, finish)
    if isinstance(outcome, Verdict):
        assert 0 <= outcome.rating <= 10
        assert outcome.justification.encode() is not None  # can be stored


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@settings(max_examples=500, deadline=None)
@given(json_values, json_values, st.text(max_size=50), st.text(max_size=50))
def test_any_json_in_any_prose_is_a_rating_in_range_or_none(rating, why, before, after):
    text = f"{before}{json.dumps({'rating': rating, 'justification': why})}{after}"
    outcome = parse_verdict(text, "stop")
    if isinstance(outcome, Verdict):
        assert 0 <= outcome.rating <= 10
        assert not isinstance(rating, bool) and rating is not None
