"""GET /ingest/traces (source 1:1610-1701)."""

from __future__ import annotations

import pytest

from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn

MINIMAL = {"_id", "name", "spanKind", "judgeScores", "source", "createdAt", "sessionId", "inputTokens", "outputTokens"}
OPTIONAL = {
    "input",
    "output",
    "latencyMs",
    "error",
    "framework",
    "model",
    "toolCalls",
    "spanId",
    "startedAt",
    "trafficSource",
}


def test_empty_project(api):
    """No traces: an empty page with a total of 0."""
    response = api.get("/ingest/traces")
    assert response.status_code == 200
    assert response["content-type"] == "application/json"
    assert response.json() == {"totalCount": 0, "traces": [], "hasNextPage": False, "nextCursor": None}


def test_minimal_trace_has_exactly_the_keys_that_are_always_there(api, span):
    """Absent optional members are left out, not null (TRC-112); every root has a session (TRC-045)."""
    span("bare")
    (trace,) = api.get("/ingest/traces").json()["traces"]
    assert set(trace) == MINIMAL
    assert trace["judgeScores"] is None
    assert trace["inputTokens"] is None
    assert trace["outputTokens"] is None
    assert trace["spanKind"] == "chain"
    assert trace["source"] == "sdk"


def test_full_trace_has_every_key(api, span):
    """All members, as documented (TRC-111, TRC-113)."""
    span(
        "full",
        kind="llm",
        input=[{"role": "user", "content": "hi"}],
        output="bye",
        latency_ms=1340.0,
        error="late",
        framework="langchain",
        model="gpt-4o",
        tool_calls=[{"name": "search", "served": 1}],
        session_id="s1",
        span_id="a1",
        start_ns=1_777_000_000_123_456_789,
        source="eval-run",
        input_tokens=150,
        output_tokens=45,
        metadata={"no": "list"},
        performance_summary={"no": "list"},
    )
    response = api.get("/ingest/traces")
    (trace,) = response.json()["traces"]
    assert set(trace) == MINIMAL | OPTIONAL
    assert trace["input"] == [{"role": "user", "content": "hi"}]
    assert trace["toolCalls"] == [{"name": "search", "served": 1}]
    assert trace["startedAt"] == trace["createdAt"] == "2026-04-24T03:06:40.123Z"
    assert trace["trafficSource"] == "eval-run"
    assert b'"latencyMs":1340,' in response.content


def test_payloads_are_the_bytes_that_came(api, project):
    """Big numbers, spelling of numbers and key order survive, as nothing is re-encoded."""
    [_] = store_spans(project, [SpanIn(name="raw", input=b'{"b":1.50,"a":123456789012345678901234567890}')])
    assert b'"input":{"b":1.50,"a":123456789012345678901234567890}' in api.get("/ingest/traces").content


def test_only_roots_newest_first(api, span):
    """Children are no traces; imported history stands at its own time (TRC-103)."""
    span("new", at_ms=3_000)
    span("old", at_ms=1_000)
    span("middle", at_ms=2_000)
    span("child", parent_span_id="p", at_ms=4_000)
    body = api.get("/ingest/traces").json()
    assert [trace["name"] for trace in body["traces"]] == ["new", "middle", "old"]
    assert body["totalCount"] == 3


@pytest.mark.parametrize("size", [1, 2, 7])
def test_pages_neither_overlap_nor_skip(api, span, size):
    """Following nextCursor gives each id once, also for equal times, with the same total (TRC-105, TRC-106)."""
    expected = {span(f"t{n}", at_ms=5_000 + n // 3).pk for n in range(13)}
    seen: list[str] = []
    cursor = None
    while True:
        body = api.get("/ingest/traces", limit=size, **({"cursor": cursor} if cursor else {})).json()
        assert body["totalCount"] == 13
        seen += [trace["_id"] for trace in body["traces"]]
        cursor = body["nextCursor"]
        assert body["hasNextPage"] is (cursor is not None)
        if cursor is None:
            break
        assert cursor == body["traces"][-1]["_id"]
    assert len(seen) == 13
    assert set(seen) == expected
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(("limit", "rows"), [("500", 100), ("0", 1), ("-3", 1), ("", 50), (None, 50)])
def test_limit_is_clamped(api, span, limit, rows):
    """1 to 100, default 50 (TRC-104)."""
    for n in range(101):
        span(f"t{n}")
    query = {} if limit is None else {"limit": limit}
    assert len(api.get("/ingest/traces", **query).json()["traces"]) == rows


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "many"},
        {"limit": "1.5"},
        {"source": "foo"},
        {"cursor": "nope"},
        {"cursor": "mJ3vQ8pTr2LqYw6bZk9Xd"},
    ],
)
def test_odd_queries_are_refused(api, span, query):
    """400 with a readable text (TRC-110)."""
    span("t")
    response = api.get("/ingest/traces", **query)
    assert response.status_code == 400
    assert set(response.json()) == {"error"}


def test_cursor_of_another_project_is_unknown(api, span, other_project):
    """Its ids mean nothing here."""
    foreign = span("theirs", of=other_project)
    span("ours")
    assert api.get("/ingest/traces", cursor=foreign.pk).status_code == 400


def test_framework_filter(api, span):
    """Folded like the stored value; repeated is a union; "other" finds unlabelled rows (TRC-107)."""
    span("lc", framework="langchain")
    span("cr", framework="crewai")
    span("own", framework="my-inhouse-runner")
    span("none")

    def names(*labels: str) -> tuple[list[str], int]:
        body = api.get("/ingest/traces", framework=list(labels)).json()
        return sorted(trace["name"] for trace in body["traces"]), body["totalCount"]

    assert names(" LangChain ") == (["lc"], 1)
    assert names("langchain", "crewai") == (["cr", "lc"], 2)
    assert names("my-inhouse-runner") == (["own"], 1)
    assert names("other") == (["none"], 1)
    assert names("other", "crewai") == (["cr", "none"], 2)
    assert names("absent") == ([], 0)


def test_source_filter(api, span):
    """production leaves eval-run traffic out, eval shows only it, all is the default (TRC-109)."""
    span("live")
    span("quiet", monitor=False)
    span("run", source="eval-run")

    def names(**query: str) -> tuple[list[str], int]:
        body = api.get("/ingest/traces", **query).json()
        return sorted(trace["name"] for trace in body["traces"]), body["totalCount"]

    assert names(source="production") == (["live", "quiet"], 2)
    assert names(source="eval") == (["run"], 1)
    assert names(source="all") == names() == (["live", "quiet", "run"], 3)


def test_key_is_required(api, span, client):
    """401 with the one text; another project sees nothing of it."""
    span("t")
    for headers in ({}, {"x-api-key": "agtx_local_nope"}):
        response = client.get("/api/v1/ingest/traces", headers=headers)
        assert response.status_code == 401
        assert response.json() == {"error": "Invalid or missing API key"}


def test_projects_are_separate(api, other_api, span):
    """A project lists its own rows only."""
    span("ours")
    assert other_api.get("/ingest/traces").json()["totalCount"] == 0


def test_json_content_type_without_a_body_is_fine(api, span):
    """Clients send the header on every call (SDK-004)."""
    span("t")
    response = api.client.get("/api/v1/ingest/traces", headers={"content-type": "application/json"})
    assert response.status_code == 200


@pytest.mark.parametrize("accept", ["*/*", "text/html", "application/xml"])
def test_answers_json_whatever_is_accepted(api, span, accept):
    """The API has one format."""
    response = api.client.get("/api/v1/ingest/traces?format=xml", headers={"accept": accept})
    assert response.status_code == 200
    assert response["content-type"] == "application/json"


def test_number_of_queries_is_fixed(api, span, django_assert_num_queries):
    """The same for one row and for a full page."""
    span("t")
    api.get("/ingest/traces")
    with django_assert_num_queries(3):
        api.get("/ingest/traces")
    for n in range(60):
        span(f"t{n}", framework=f"f{n}")
    body = api.get("/ingest/traces").json()
    with django_assert_num_queries(3):
        api.get("/ingest/traces")
    with django_assert_num_queries(4):
        api.get("/ingest/traces", cursor=body["nextCursor"])
