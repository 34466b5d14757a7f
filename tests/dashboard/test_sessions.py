"""Sessions: the list, its filters and paging, and one conversation turn by turn."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.tracing import selectors as tracing
from tests.dashboard.seed import conversation, store


def test_one_row_a_conversation_with_its_first_question(client, project):
    conversation(project)
    store(project, session_id="chat-2", input="Hello")
    answer = client.get("/sessions")
    rows = {row.row.session_id: row for row in answer.context["rows"]}
    assert rows["chat-1"].title == "Where is my parcel?"
    assert (rows["chat-1"].row.turn_count, rows["chat-1"].row.span_count, rows["chat-1"].row.error_count) == (2, 3, 1)
    assert rows["chat-2"].title == "Hello"
    assert "1-2 of 2" in answer.content.decode()


def test_figures_are_sums_over_all_sessions(client, project):
    conversation(project, "a")
    conversation(project, "b")
    figures = client.get("/sessions").context["figures"]
    assert (figures.sessions, figures.turns, figures.spans, figures.with_errors) == (2, 4, 6, 2)
    assert figures.tokens == 2200


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("", {"chat", "mw_1", "dbx_2", "sim-3"}),
        ("users", {"chat"}),
        ("imported", {"mw_1", "dbx_2"}),
        ("simulated", {"sim-3"}),
    ],
)
def test_origins(client, project, origin, expected):
    for session_id in ("chat", "mw_1", "dbx_2"):
        store(project, session_id=session_id)
    store(project, session_id="sim-3", metadata={"simulated": True})
    answer = client.get("/sessions", {"origin": origin})
    assert {row.row.session_id for row in answer.context["rows"]} == expected


def test_imported_conversations_keep_their_dates_and_wear_a_mark(client, project):
    month = 20 * 24 * 3_600_000
    store(project, session_id="mw_9", ago_ms=month, input="Days off?")
    answer = client.get("/sessions?window=30d")
    row = answer.context["rows"][0]
    assert row.imported and "imported" in answer.content.decode()
    assert client.get("/sessions?window=7d").context["rows"] == []
    assert "imported" in client.get("/sessions/mw_9").content.decode()


def test_paging_reaches_every_session_once(client, project):
    for number in range(60):
        store(project, session_id=f"s{number:02d}", ago_ms=number * 1000)
    first = client.get("/sessions")
    assert "1-50 of 60" in first.content.decode()
    cursor = first.context["page"].next_cursor
    second = client.get("/sessions", {"cursor": cursor, "page": "2"})
    assert "51-60 of 60" in second.content.decode()
    seen = [row.row.session_id for page in (first, second) for row in page.context["rows"]]
    assert len(seen) == len(set(seen)) == 60
    assert client.get("/sessions", {"cursor": "nonsense"}).status_code == 302


def test_search_finds_ids_and_what_was_said(client, project):
    conversation(project)
    store(project, session_id="other-9", input="Something about umbrellas")
    assert [row.row.session_id for row in client.get("/sessions?q=CHAT").context["rows"]] == ["chat-1"]
    assert [row.row.session_id for row in client.get("/sessions?q=umbrellas").context["rows"]] == ["other-9"]
    assert client.get("/sessions?q=umbrellas").context["figures"].sessions == 1
    assert client.get("/sessions", {"q": '"(*%'}).status_code == 200


def test_empty_states_say_what_to_do(client, project):
    assert "No sessions yet" in client.get("/sessions").content.decode()
    conversation(project)
    html = client.get("/sessions?q=nothing").content.decode()
    assert "No session matches" in html and "Clear filters" in html


def test_list_queries_do_not_grow_with_sessions(client, project, django_assert_num_queries):
    conversation(project, "first")
    client.get("/sessions")
    with CaptureQueriesContext(connection) as few:
        client.get("/sessions")
    queries = len(few)
    assert queries <= 15
    for number in range(10):
        conversation(project, f"more-{number}")
    client.get("/sessions")
    with django_assert_num_queries(queries):
        client.get("/sessions")


def test_turns_stand_in_order_with_words_latency_tokens_and_errors(client, project):
    roots = conversation(project)
    answer = client.get("/sessions/chat-1")
    turns = answer.context["thread"].turns
    assert [turn.root.id for turn in turns] == roots
    assert (turns[0].question, turns[0].answer) == ("Where is my parcel?", "It arrives tomorrow.")
    assert (turns[0].spans, turns[0].tokens, turns[0].flagged) == (2, 1100, False)
    assert turns[1].failed and turns[1].flagged and turns[1].tool_failures == 1
    html = answer.content.decode()
    assert "RateLimitError: 429" in html and "840" in html
    assert f"/traces/{roots[0]}" in html


def test_a_turns_tree_is_one_request_away(client, project):
    root, _ = conversation(project)
    html = client.get(f"/turns/{root}").content.decode()
    assert "LLM Call 1" in html and 'aria-level="2"' in html
    assert client.get("/turns/unknown").status_code == 404


def test_spans_without_their_root_are_named(client, project):
    conversation(project)
    store(project, "orphan", span_id="x", parent_span_id="never", session_id="chat-1")
    answer = client.get("/sessions/chat-1")
    assert answer.context["thread"].waiting == 1
    assert "1 span waits" in answer.content.decode()


def test_long_conversations_are_paged(client, project):
    for number in range(55):
        store(project, session_id="long", ago_ms=(60 - number) * 1000, input=f"question {number}")
    first = client.get("/sessions/long").context["thread"]
    assert (first.turn_total, first.pages, len(first.turns)) == (55, 2, 50)
    second = client.get("/sessions/long?page=2").context["thread"]
    assert [turn.question for turn in second.turns] == [f"question {number}" for number in range(50, 55)]
    assert client.get("/sessions/long?page=99").context["thread"].page == 2


def test_markup_in_what_was_said_is_inert(client, project):
    store(project, session_id="x", input="<script>alert(1)</script>", output="<img onerror=1>")
    html = client.get("/sessions/x").content.decode()
    assert "<script>alert" not in html and "<img onerror" not in html


def test_ids_with_slashes_and_odd_characters_open(client, project):
    for session_id in ("a/b c", "ä?ö", "x%2Fy"):
        store(project, session_id=session_id, input="hi")
    listed = client.get("/sessions").content.decode()
    for row in client.get("/sessions").context["rows"]:
        from django.urls import reverse

        url = reverse("dashboard:session", args=[row.row.session_id])
        assert url in listed
        assert client.get(url).context["row"].session_id == row.row.session_id


def test_another_projects_session_is_not_found(client, project):
    from apps.projects.services.projects import create_project

    other, _ = create_project(name="Other")
    store(other, session_id="theirs")
    assert client.get("/sessions/theirs").status_code == 404
    assert tracing.get_session(other, "theirs") is not None
