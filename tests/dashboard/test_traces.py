"""Live Traces: filters, paging, previews, empty states, export."""

from __future__ import annotations

import csv
import io
import json

import pytest

from apps.projects.services.projects import create_project
from apps.tracing.ingest.pipeline import store_spans
from tests.dashboard.conftest import span, text_of

pytestmark = pytest.mark.django_db


def listed(client, query: str = "") -> str:
    return text_of(client.get(f"/traces{query}"))


def test_a_row_shows_what_was_asked_and_answered(client, tree):
    page = listed(client)
    assert "Where is my order?" in page
    assert "On its way." in page
    assert "1-1 of 1" in page
    assert "langchain" in page
    assert ">1/2<" in page  # tool quality
    assert "1,020" in page  # tokens of the whole tree, once
    assert f'href="/traces/{tree[0]}"' in page
    assert "TimeoutError" not in page  # a child's error is not the trace's


def test_children_are_not_listed(client, tree):
    assert f"/traces/{tree[1]}" not in listed(client)


def test_filters_narrow_and_stand_in_the_address(client, store):
    store(
        span("one", span_id="1" * 32, input="alpha", framework="crewai", error="boom"),
        span("two", span_id="2" * 32, input="beta", framework="LangChain"),
        span("three", span_id="3" * 32, input="gamma"),
        span("four", span_id="4" * 32, input="delta", metadata={"evalRunId": "r"}, source="eval-run"),
    )

    def names(query: str) -> set[str]:
        page = listed(client, query)
        return {word for word in ("alpha", "beta", "gamma", "delta") if word in page}

    assert names("") == {"alpha", "beta", "gamma"}
    assert names("?source=eval") == {"delta"}
    assert names("?source=all") == {"alpha", "beta", "gamma", "delta"}
    assert names("?framework=crewai&framework=langchain") == {"alpha", "beta"}
    assert names("?framework=other") == {"gamma"}
    assert names("?status=error") == {"alpha"}
    assert names("?q=gamma") == {"gamma"}
    assert names("?window=1h") <= {"alpha", "beta", "gamma"}
    assert names("?source=nonsense&window=nonsense&cursor=nonsense") == {"alpha", "beta", "gamma"}


def test_paging_goes_on_and_back_without_losing_a_row(client, store):
    store(*[span(f"run {n}", span_id=f"{n:032x}", input=f"question {n:03d}", at_ms=n) for n in range(120)])
    first = client.get("/traces")
    listing = first.context["listing"]
    assert listing.pager == "1-50 of 120"
    second = client.get(listing.older).context["listing"]
    third = client.get(second.older).context["listing"]
    assert (second.pager, third.pager) == ("51-100 of 120", "101-120 of 120")
    assert not third.older
    seen = [row.id for page in (listing, second, third) for row in page.rows]
    assert len(set(seen)) == 120
    back = client.get(third.newer).context["listing"]
    assert [row.id for row in back.rows] == [row.id for row in second.rows]
    assert [row.id for row in client.get(back.newer).context["listing"].rows] == [row.id for row in listing.rows]


def test_the_number_of_queries_does_not_grow_with_the_rows(client, store, django_assert_max_num_queries):
    store(*[span(f"run {n}", span_id=f"{n:032x}", input="x", at_ms=n) for n in range(50)])
    client.get("/traces")
    with django_assert_max_num_queries(16):
        client.get("/traces")


def test_a_big_payload_does_not_swell_the_list(client, store):
    picture = "data:image/png;base64," + "A" * 150_000
    store(
        *[
            span(
                f"v {n}",
                span_id=f"{n:032x}",
                input=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": picture}}]}],
                tool_calls=[{"name": "t", "output": picture}],
            )
            for n in range(20)
        ]
    )
    page = client.get("/traces")
    assert len(page.content) < 200_000
    assert "AAAAAAAAAAAAAAAAAAAA" * 20 not in text_of(page)


def test_markup_in_payloads_stays_text(client, store):
    store(span("<b>x</b>", span_id="1" * 32, input="<img src=x onerror=alert(1)>", error="<script>alert(1)</script>"))
    page = listed(client)
    assert "<img src=x" not in page
    assert "<script>alert" not in page


def test_half_a_character_and_an_empty_character_are_listed(client, project):
    from apps.tracing.ingest.records import SpanIn

    store_spans(
        project,
        [
            SpanIn(name="odd", span_id="1" * 32, input=b'"a\\ud83eb"'),
            SpanIn(name="nul", span_id="2" * 32, input=b'"x\\u0000y"'),
        ],
    )
    page = client.get("/traces")
    assert page.status_code == 200
    assert "1-2 of 2" in text_of(page)


def test_the_first_time_shows_how_to_send_a_trace(client, project):
    page = listed(client)
    assert "Send the first trace" in page
    assert project.key not in page and "agtx_local_…" in page
    assert page.count('data-shows="way-') == 4
    assert "http://testserver/api/v1" in page
    assert "1-" not in page.split("<main", 1)[1].split("pager")[0] or "pager" not in page


def test_an_empty_result_names_the_filter_to_drop_and_what_that_gives(client, tree):
    page = client.get("/traces?status=error&framework=langchain")
    ways = page.context["ways"]
    assert [way.count for way in ways] == [1]
    assert "status is" in ways[0].text
    assert ways[0].url == "/traces?framework=langchain"


def test_only_the_region_goes_over_htmx(client, tree):
    region = text_of(client.get("/traces", headers={"HX-Request": "true"}))
    assert "<html" not in region
    assert 'id="traces"' in region


def test_another_projects_traces_are_not_there(client, tree):
    other, _key = create_project(name="Other")
    client.cookies["agentx_project"] = other.uid
    for address in (
        f"/traces/{tree[0]}",
        f"/traces/{tree[0]}/peek",
        f"/traces/{tree[0]}/raw.json",
        f"/traces/{tree[0]}/spans/{tree[1]}",
        f"/traces/{tree[0]}/spans/{tree[0]}/field/input",
        f"/traces/{tree[0]}/children?of={tree[0]}",
    ):
        assert client.get(address).status_code == 404, address


def test_the_expanded_row(client, tree):
    page = text_of(client.get(f"/traces/{tree[0]}/peek"))
    assert "Where is my order?" in page
    assert "1 failed" in page


def test_new_rows_are_counted_with_the_lists_filters(client, store):
    first, *_rest = store(
        span("a", span_id="1" * 32, at_ms=0),
        span("b", span_id="2" * 32, at_ms=5),
        span("c", span_id="3" * 32, at_ms=9, error="x"),
    )
    assert client.get("/traces/new", {"after": first}).json() == {"count": 2}
    assert client.get("/traces/new", {"after": first, "status": "error"}).json() == {"count": 1}
    assert client.get("/traces/new", {"after": "nonsense"}).json() == {"count": 0}


def test_the_volume_chart_counts_what_the_list_counts(client, store):
    store(span("a", span_id="1" * 32), span("b", span_id="2" * 32, error="x"), span("c", span_id="3" * 32))
    volume = client.get("/traces?window=24h").context["volume"]
    assert (volume.total, volume.failed) == (3, 1)
    bar = volume.bars[0]
    inside = client.get(f"/traces?since={bar.since}&until={bar.until}").context["listing"]
    assert inside.total == bar.total
    assert "volume" not in client.get("/traces?q=a").context or client.get("/traces?q=a").context["volume"] is None


def test_exports_hold_the_filtered_rows(client, store):
    store(
        span("one", span_id="1" * 32, input="=SUM(A1)", framework="crewai", latency_ms=12.5),
        span("two", span_id="2" * 32, input='say "hi", please', at_ms=4),
    )
    answer = client.get("/traces/export.csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="traces-default-all.csv"'
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert [row["input"] for row in rows] == ['say "hi", please', "'=SUM(A1)"]
    answer = client.get("/traces/export.json?framework=crewai")
    data = json.loads(b"".join(answer.streaming_content))
    assert [(row["name"], row["latencyMs"], row["framework"]) for row in data] == [("one", 12.5, "crewai")]
    assert client.get("/traces/export.xls").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "q=%00",
        "q=%22%27%28%29%3A*%5E-",
        "agent=%00&model=%00&tool=%00&framework=%00",
        "cursor=%00aaaaaaaaaaaaaaaaaaaa",
        "since=0&until=999999999999999",
        "since=999999999999999",
        "since=5&until=1",
        "at=99999999999999999999",
        "q=" + "x" * 5000,
        "framework=" + "a" * 5000,
    ],
)
def test_no_address_breaks_the_page(client, tree, query):
    assert client.get(f"/traces?{query}").status_code == 200


def test_an_address_that_is_no_id_is_not_found(client, tree):
    for part in ("%00" + "a" * 20, "a" * 20 + "ü", "x" * 21):
        assert client.get(f"/traces/{part}").status_code == 404
        assert client.get(f"/traces/{tree[0]}/spans/{part}").status_code == 404
        assert client.get(f"/traces/{tree[0]}?span={part}&top={part}&kind={part}").status_code == 200
    assert client.get("/palette?q=%00%27").status_code == 200
    client.cookies["agentx_project"] = "%00"
    assert client.get("/traces").status_code == 200
