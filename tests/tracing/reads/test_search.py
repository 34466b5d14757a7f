"""Text search and the filters that pages combine with it (TRC-108)."""

from __future__ import annotations

import random

import pytest

from apps.tracing import selectors
from apps.tracing.selectors import TraceFilters
from apps.tracing.store import searches


def found(api, text: str, **query: object) -> list[str]:
    """Names of the traces a search lists; the total must say the same."""
    body = api.get("/ingest/traces", search=text, **query).json()
    assert body["totalCount"] == len(body["traces"])
    return [trace["name"] for trace in body["traces"]]


def test_what_is_searched(api, span):
    """Name, input, output, error, session id and trace id; nothing else."""
    row = span(
        "checkout-bot",
        input={"messages": [{"content": "Where is my Refund?"}]},
        output="It was shipped",
        error="TimeoutError: upstream",
        session_id="conv-Alpha77",
        metadata={"secretword": "hidden"},
    )
    span("other")
    for text in ("checkout", "REFUND", "shipped", "timeouterror", "alpha77", "conv-alpha77", row.pk, "refund upstream"):
        assert found(api, text) == ["checkout-bot"], text
    for text in ("secretword", "nothing", "refund nothing", "messages refund absent"):
        assert found(api, text) == [], text


def test_alias_and_blanks(api, span):
    """`q` works too; a blank search is none; signs alone find nothing."""
    span("hello")
    assert api.get("/ingest/traces", q="hello").json()["totalCount"] == 1
    assert api.get("/ingest/traces", search="  ").json()["totalCount"] == 1
    assert api.get("/ingest/traces", search="?!").json() == {
        "totalCount": 0,
        "traces": [],
        "hasNextPage": False,
        "nextCursor": None,
    }


def test_last_word_may_be_half_typed(api, span):
    """From three letters on; the words before it are whole."""
    span("password reset")
    span("passport check")
    assert found(api, "passw") == ["password reset"]
    assert found(api, "pass") == ["passport check", "password reset"]
    assert found(api, "pa") == []
    assert found(api, "reset passw") == ["password reset"]
    assert found(api, "passw reset") == []


def test_many_words_with_one_beginning(api, span):
    """More words than are put in the prefix's place."""
    for n in range(30):
        span(f"item{n:02}")
    assert len(found(api, "item")) == 30
    assert found(api, "item07") == ["item07"]


@pytest.mark.parametrize(
    "text",
    ['"', "a OR b", "NOT x", "x*", "(", "^a", "{body}: x", "a AND", "'; drop table", "\\", "%", "a:b", "§e", "\x00"],
)
def test_query_syntax_is_plain_text(api, span, text):
    """Whatever is typed is looked for, never interpreted; never a 500."""
    span("plain")
    assert api.get("/ingest/traces", search=text).status_code == 200


def test_other_scripts(api, span):
    """Case folding beyond ASCII, Chinese and Japanese by characters."""
    span("bot", input="Größe der Straße", output="東京タワー")
    for text in ("GRÖSSE", "straße", "東京", "タワー"):
        assert found(api, text) == ["bot"], text


def test_search_with_filters(api, span):
    """Every filter of the list scopes a search, total included."""
    span("a refund", framework="langchain")
    span("b refund", source="eval-run")
    span("c refund", error="refund boom", model="gpt-4o", tool_calls=[{"name": "kb"}])
    span("d refund", monitor=False)
    span("e other", framework="langchain")
    assert found(api, "refund", source="production") == ["d refund", "c refund", "a refund"]
    assert found(api, "refund", source="eval") == ["b refund"]
    assert found(api, "refund", framework="langchain") == ["a refund"]
    assert found(api, "refund", framework="other") == ["d refund", "c refund", "b refund"]
    assert found(api, "refund", framework=["langchain", "other"], source="production") == [
        "d refund",
        "c refund",
        "a refund",
    ]


def test_other_projects_are_not_found(api, other_api, span):
    """Neither by word nor by id."""
    row = span("refund")
    assert found(other_api, "refund") == []
    assert found(other_api, row.pk) == []


def listed(project, **filters: object) -> list[str]:
    """Names by filters that pages use, checked against the total."""
    page = selectors.list_traces(project, TraceFilters(**filters))
    assert page.total == len(page.rows) == selectors.count_traces(project, TraceFilters(**filters))
    return [row.name for row in page.rows]


def test_filters_of_pages(project, span):
    """Agent, model, status, tool and time, alone and together."""
    day = 86_400_000
    base = 1_777_000_000_000
    span("old", at_ms=base - 3 * day, model="m1", tool_calls=[{"name": "kb"}, {"name": "kb"}])
    span("mid", at_ms=base, model="m2", error="boom", tool_calls=[{"name": "web"}])
    span("new", at_ms=base + 5000, model="m1", tool_calls=[{"name": "kb", "success": False}])
    agent = selectors.list_agents(project)[0]
    assert listed(project, agent_id=agent.pk) == [agent.name]
    assert listed(project, model="m1") == ["new", "old"]
    assert listed(project, status="error") == ["mid"]
    assert listed(project, status="ok") == ["new", "old"]
    assert listed(project, tool="kb") == ["new", "old"]
    assert listed(project, tool="kb", model="m2") == []
    assert listed(project, since_ms=base) == ["new", "mid"]
    assert listed(project, since_ms=base + 1) == ["new"]
    assert listed(project, until_ms=base + 5000) == ["mid", "old"]
    assert listed(project, since_ms=base - 4 * day, until_ms=base + 1) == ["mid", "old"]
    assert listed(project, since_ms=base - 4 * day, until_ms=base + 1, status="ok") == ["old"]
    assert listed(project, tool="kb", since_ms=base) == ["new"]
    assert listed(project, search="old", until_ms=base) == ["old"]
    assert listed(project, search="old", since_ms=base) == []
    assert listed(project, search="mid", tool="web", status="error") == ["mid"]


def test_tool_names_are_not_looked_for_as_text(project, span):
    """A tool named in another call's input does not count."""
    span("a", tool_calls=[{"name": "web", "input": {"name": "kb"}}])
    assert listed(project, tool="kb") == []


@pytest.mark.parametrize("few", [0, 4000])
@pytest.mark.parametrize("text", ["common", "third", "rare"])
def test_pages_of_a_search(api, project, span, monkeypatch, few, text):
    """Newest first without gaps or repeats, whether matches are fetched or walked, also for imported history."""
    monkeypatch.setattr(searches, "FEW", few)
    monkeypatch.setattr(searches, "CHUNK_FIRST", 8)
    monkeypatch.setattr(searches, "RUNS_MOST", 2)
    numbers = list(range(60))
    random.Random(3).shuffle(numbers)
    expected = []
    for n in numbers:
        words = "common" + (" third" if n % 3 == 0 else "") + (" rare" if n == 5 else "")
        row = span(f"t{n}", input=words, at_ms=1_777_000_000_000 + n * 1000)
        if text in words:
            expected.append(row.pk)
    seen: list[str] = []
    cursor = None
    while True:
        body = api.get("/ingest/traces", search=text, limit=7, **({"cursor": cursor} if cursor else {})).json()
        assert body["totalCount"] == len(expected)
        seen += [trace["_id"] for trace in body["traces"]]
        cursor = body["nextCursor"]
        if cursor is None:
            break
    assert seen == sorted(expected, reverse=True)


@pytest.mark.parametrize("scan", [0, 2000])
def test_sparse_filters_ask_the_index(project, span, monkeypatch, scan):
    """The same rows by either way."""
    monkeypatch.setattr(selectors, "_SCAN_MOST", scan)
    for n in range(20):
        span(f"t{n}", framework="rare" if n % 7 == 0 else None, error="x" if n % 2 else None)
    assert listed(project, frameworks=("rare",)) == ["t14", "t7", "t0"]
    assert listed(project, frameworks=("rare",), status="error") == ["t7"]
    assert listed(project, frameworks=("rare", "other"), status="error") == [f"t{n}" for n in range(19, 0, -2)]


def test_new_traces_are_found_at_once(api, span):
    """A total that was shown before does not linger."""
    span("refund one")
    assert found(api, "refund") == ["refund one"]
    span("refund two")
    assert found(api, "refund") == ["refund two", "refund one"]


def test_number_of_queries_does_not_grow(api, span, django_assert_max_num_queries):
    """A search takes a bounded number of queries, however much it finds."""
    for n in range(40):
        span(f"refund {n}")
    api.get("/ingest/traces")
    with django_assert_max_num_queries(9):
        assert api.get("/ingest/traces", search="refund", limit=20).json()["hasNextPage"]


def test_a_second_project_changes_nothing(api, span, other_project, other_api):
    """A search answered while the project was alone in the database stays its own afterwards."""
    span("refund ours")
    assert found(api, "refund") == ["refund ours"]
    span("refund theirs", of=other_project)
    span("refund too", of=other_project)
    assert found(api, "refund") == ["refund ours"]
    assert found(other_api, "refund") == ["refund too", "refund theirs"]
