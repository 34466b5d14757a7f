"""GET /ingest/traces/{id} and the spans of a session (source 1:1657-1663)."""

from __future__ import annotations

import pytest

BASE = 1_777_000_000_000


def test_detail_adds_what_the_list_leaves_out(api, span):
    """Flat object with metadata, performance summary, cache counts and cost (TRC-117)."""
    row = span(
        "t",
        metadata={"env": "prod"},
        performance_summary={"steps": [1]},
        input_tokens=10,
        output_tokens=2,
        cache_read_tokens=4,
        cache_write_tokens=0,
    )
    body = api.get(f"/ingest/traces/{row.pk}").json()
    assert body["_id"] == row.pk
    assert body["metadata"] == {"env": "prod"}
    assert body["performanceSummary"] == {"steps": [1]}
    assert (body["cacheReadTokens"], body["cacheWriteTokens"]) == (4, 0)
    assert "topic" not in body


def test_minimal_detail(api, span):
    """Absent optionals are left out; the cost is null, never 0 (TRC-122)."""
    row = span("t", model="no-such-model")
    body = api.get(f"/ingest/traces/{row.pk}").json()
    assert set(body) == {
        "_id",
        "name",
        "model",
        "spanKind",
        "judgeScores",
        "source",
        "createdAt",
        "sessionId",
        "inputTokens",
        "outputTokens",
        "estimatedCostUSD",
    }
    assert body["estimatedCostUSD"] is None


def test_a_price_that_came_later_costs_the_row_on_reading(api, span, project):
    """A row stored without a price has a cost once its model has one, though the price holds from later on."""
    from django.utils import timezone

    from apps.llm import pricing
    from apps.llm.models import CatalogModel, ModelPrice

    row = span("t", model="house-model", input_tokens=1_000_000, output_tokens=0)
    path = f"/ingest/traces/{row.pk}"
    assert api.get(path).json()["estimatedCostUSD"] is None
    model = CatalogModel.objects.create(model_id="house-model", provider="custom", label="House")
    ModelPrice.objects.create(model=model, valid_from=timezone.now(), input_per_m=3.0, output_per_m=5.0)
    pricing.forget()
    assert api.get(path).json()["estimatedCostUSD"] == 3.0
    pricing.forget()


def test_child_rows_can_be_read(api, span):
    """By id, with parentSpanId (TRC-119)."""
    row = span("child", span_id="c", parent_span_id="r")
    assert api.get(f"/ingest/traces/{row.pk}").json()["parentSpanId"] == "r"


def test_unknown_ids_are_404(api, other_api, span):
    """The same answer for no id, a random id and another project's id (TRC-120)."""
    row = span("t")
    for client, span_id in ((api, "x"), (api, "mJ3vQ8pTr2LqYw6bZk9Xd"), (other_api, row.pk)):
        response = client.get(f"/ingest/traces/{span_id}")
        assert response.status_code == 404
        assert response.json() == {"error": "Trace not found"}


def test_session_spans_in_the_order_they_began(api, span):
    """Roots and children, never paged, by their own starts and not by arrival (TRC-048, TRC-043)."""
    span("late", session_id="s", span_id="b", at_ms=BASE + 900)
    span("child2", session_id="s", parent_span_id="a", at_ms=BASE + 20)
    span("root", session_id="s", span_id="a", at_ms=BASE)
    span("before", session_id="s", parent_span_id="a", at_ms=BASE - 5)
    span("startless", session_id="s", parent_span_id="a")
    span("elsewhere", session_id="s2")
    spans = api.get("/ingest/sessions/s/spans").json()["spans"]
    assert [item["name"] for item in spans] == ["before", "root", "startless", "child2", "late"]
    assert "estimatedCostUSD" in spans[0]


def test_many_spans_in_one_answer(api, span):
    """150 rows come together."""
    for n in range(150):
        span(f"n{n}", session_id="s", at_ms=BASE + n)
    spans = api.get("/ingest/sessions/s/spans").json()["spans"]
    assert [item["name"] for item in spans] == [f"n{n}" for n in range(150)]


def test_unknown_session_is_empty(api, other_api, span):
    """200 with no spans, also for another project's session."""
    span("t", session_id="s")
    for client, name in ((api, "none"), (other_api, "s")):
        response = client.get(f"/ingest/sessions/{name}/spans")
        assert (response.status_code, response.json()) == (200, {"spans": []})


@pytest.mark.parametrize(
    ("session_id", "path"),
    [
        ("a/b c", "a/b c"),
        ("a/b c", "a%2Fb%20c"),
        ("mw:1.2", "mw:1.2"),
        ("x/spans", "x/spans"),
        ("x/spans/spans", "x/spans/spans"),
        ("ключ", "ключ"),
        ("50%", "50%25"),
        ("one\ntwo", "one%0Atwo"),
    ],
)
def test_session_ids_reach_the_handler_unescaped(api, span, session_id, path):
    """Slashes, spaces and colons in the id (TRC-049)."""
    span("t", session_id=session_id)
    spans = api.get(f"/ingest/sessions/{path}/spans").json()["spans"]
    assert [item["sessionId"] for item in spans] == [session_id]


def test_number_of_queries_is_fixed(api, span, django_assert_num_queries):
    """One query for a detail and one for a session, whatever its size."""
    row = span("t", session_id="s", model="m", input_tokens=1)
    api.get(f"/ingest/traces/{row.pk}")
    with django_assert_num_queries(1):
        api.get(f"/ingest/traces/{row.pk}")
    for n in range(20):
        span(f"t{n}", session_id="s", model="m", input_tokens=1)
    with django_assert_num_queries(1):
        api.get("/ingest/sessions/s/spans")
