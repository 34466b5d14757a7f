"""The trace page: figures, waterfall, graph, raw view, rail."""

from __future__ import annotations

import json

import pytest

from tests.dashboard.conftest import span, text_of

pytestmark = pytest.mark.django_db


def rows(client, address: str) -> list[tuple[str, int]]:
    return [(row.name, row.level) for row in client.get(address).context["rows"]]


def test_the_figures_of_a_streamed_trace(client, tree):
    page = text_of(client.get(f"/traces/{tree[0]}"))
    for text in ("4.00 s", "2.91 s", "900 / 120"):  # duration, first token (2.6 s + 310 ms), tokens
        assert text in page, text
    trace = client.get(f"/traces/{tree[0]}").context["trace"]
    assert (trace.metrics.tool_calls, trace.steps, trace.metrics.failures, trace.metrics.depth) == (2, 3, 1, 2)


def test_the_waterfall_is_the_tree_in_order_of_time(client, tree):
    shown = rows(client, f"/traces/{tree[0]}")
    assert shown[0] == ("support-agent", 1)
    assert {name for name, level in shown[1:3]} == {"track", "kb"}
    assert shown[3] == ("LLM Call 1", 2)
    found = client.get(f"/traces/{tree[0]}").context["rows"]
    model = found[3]
    assert (round(model.x), round(model.width)) == (65, 30)
    assert model.first_token is not None


def test_a_kind_leaves_only_its_steps(client, tree):
    assert rows(client, f"/traces/{tree[0]}?kind=retrieval") == [("kb", 1)]
    assert {name for name, _level in rows(client, f"/traces/{tree[0]}?kind=retrieval&kind=llm")} == {"kb", "LLM Call 1"}


def test_selecting_a_step_shows_what_went_in_and_out(client, tree):
    rail = text_of(client.get(f"/traces/{tree[0]}/spans/{tree[1]}"))
    assert "TimeoutError: no answer" in rail
    assert "50.0 % of the trace" in rail
    chunks = text_of(client.get(f"/traces/{tree[0]}/spans/{tree[2]}"))
    assert "Poles last two years." in chunks
    assert "<ol" in chunks
    root = text_of(client.get(f"/traces/{tree[0]}/spans/{tree[0]}"))
    assert "Be brief." in root
    assert 'data-role="user"' in root
    assert "timed out" in root


def test_the_address_of_a_child_opens_its_trace(client, tree):
    answer = client.get(f"/traces/{tree[1]}")
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"/traces/{tree[0]}?span={tree[1]}"


def test_a_span_that_was_never_sent_has_its_place(client, store):
    ids = store(
        span("root", span_id="a" * 32, session_id="s", latency_ms=100),
        span("lost child", span_id="b" * 16, parent_span_id="f" * 16, session_id="s", at_ms=10, latency_ms=5),
    )
    page = client.get(f"/traces/{ids[0]}")
    assert [(row.name, row.level) for row in page.context["rows"]] == [
        ("root", 1),
        ("Missing span", 2),
        ("lost child", 3),
    ]
    rail = client.get(f"/traces/{ids[0]}/spans/missing:{'f' * 16}")
    assert "never sent" in text_of(rail)


def test_spans_that_are_each_others_parents_do_not_hang_the_page(client, store):
    ids = store(
        span("x", span_id="a" * 16, parent_span_id="b" * 16, session_id="s"),
        span("y", span_id="b" * 16, parent_span_id="a" * 16, session_id="s"),
    )
    assert client.get(f"/traces/{ids[0]}").status_code == 200


def test_a_deep_tree_draws_a_bounded_page_and_every_level_can_be_reached(client, store):
    spans = [span("root", span_id=f"{0:016x}", latency_ms=1000)]
    spans += [
        span(f"level {n}", span_id=f"{n:016x}", parent_span_id=f"{n - 1:016x}", at_ms=n * 0.1, latency_ms=900)
        for n in range(1, 2001)
    ]
    ids = store(*spans)
    page = client.get(f"/traces/{ids[0]}")
    assert len(page.context["rows"]) < 400
    assert len(page.content) < 400_000
    deepest = client.get(f"/traces/{ids[0]}?span={ids[2000]}")
    names = [row.name for row in deepest.context["rows"]]
    assert names[-1] == "level 2000"
    assert len(names) < 60
    folded = page.context["rows"][-1]
    below = client.get(f"/traces/{ids[0]}/children", {"of": folded.key})
    assert [row.level for row in below.context["rows"]] == [folded.level + 1]
    assert client.get(f"/traces/{ids[0]}?view=graph").status_code == 200


def test_thousands_of_children_come_in_parts(client, store):
    spans = [span("root", span_id="f" * 16, latency_ms=5000)]
    spans += [
        span(f"step {n}", span_id=f"{n:016x}", parent_span_id="f" * 16, at_ms=n, latency_ms=1, kind="tool")
        for n in range(3000)
    ]
    ids = store(*spans)
    page = client.get(f"/traces/{ids[0]}")
    assert len(page.context["rows"]) == 102
    assert "2,900 more steps" in text_of(page)
    part = client.get(f"/traces/{ids[0]}/children", {"of": ids[0], "from": "100"})
    assert part.context["rows"][0].name == "step 100"
    assert part.context["rows"][-1].rest == 2800
    store(span("late step", span_id="e" * 16, parent_span_id="f" * 16, at_ms=3500))
    assert "2,901 more steps" in text_of(client.get(f"/traces/{ids[0]}"))
    graph = client.get(f"/traces/{ids[0]}?view=graph").context["graph"]
    assert {(box.name, box.count) for box in graph.boxes} == {("root", 1), ("step", 3000), ("late step", 1)}


def test_a_flat_trace_draws_the_steps_of_its_summary(client, store):
    ids = store(
        span(
            "flat",
            span_id="1" * 32,
            input="q",
            output="a",
            latency_ms=900,
            performance_summary={
                "retrieval_steps": [
                    {"name": "kb", "query": "refund", "output": ["One", "Two"], "duration_ms": 120, "doc_count": 2}
                ],
                "execution_steps": [{"name": "LLM Call 1", "duration_ms": 500}],
            },
        )
    )
    names = [name for name, _level in rows(client, f"/traces/{ids[0]}")]
    assert names == ["flat", "kb", "LLM Call 1"]
    step = text_of(client.get(f"/traces/{ids[0]}/spans/step:0"))
    assert "refund" in step
    assert "One" in step


def test_a_trace_with_nothing_finer_is_one_step(client, store):
    ids = store(span("plain", span_id="1" * 32, input="q", output="a", latency_ms=3))
    page = client.get(f"/traces/{ids[0]}")
    assert [row.name for row in page.context["rows"]] == ["plain"]
    assert page.context["trace"].steps == 1


def test_the_graph_merges_repeated_steps(client, store):
    spans = [span("agent", span_id="f" * 16, kind="agent", latency_ms=100)]
    for n in range(3):
        spans.append(
            span(
                f"LLM Call {n + 1}",
                span_id=f"{n:016x}",
                parent_span_id="f" * 16,
                at_ms=n * 30,
                latency_ms=10,
                kind="llm",
            )
        )
        spans.append(
            span(
                "lookup",
                span_id=f"{n + 10:016x}",
                parent_span_id="f" * 16,
                at_ms=n * 30 + 12,
                latency_ms=10,
                kind="tool",
            )
        )
    ids = store(*spans)
    graph = client.get(f"/traces/{ids[0]}?view=graph").context["graph"]
    assert sorted((box.name, box.count) for box in graph.boxes) == [("LLM Call", 3), ("agent", 1), ("lookup", 3)]
    assert any(edge.form == "back" for edge in graph.edges)


def test_raw_is_the_trace_as_the_api_has_it(client, tree):
    answer = client.get(f"/traces/{tree[0]}/raw.json?save=1")
    data = json.loads(b"".join(answer.streaming_content))
    assert data["trace"]["_id"] == tree[0]
    assert {item["_id"] for item in data["spans"]} == set(tree)
    assert "attachment" in answer.headers["Content-Disposition"]
    page = text_of(client.get(f"/traces/{tree[0]}?view=raw"))
    assert "&quot;spanKind&quot;" in page


def test_big_fields_are_fetched_on_demand(client, store):
    text = "x" * 90_000
    ids = store(span("big", span_id="1" * 32, input=text, output=text, metadata={"a": 1}))
    page = client.get(f"/traces/{ids[0]}")
    assert len(page.content) < 120_000
    whole = client.get(f"/traces/{ids[0]}/spans/{ids[0]}/field/input")
    assert json.loads(whole.content) == text
    assert whole.headers["Content-Type"].startswith("text/plain")
    assert client.get(f"/traces/{ids[0]}/spans/{ids[0]}/field/project_id").status_code == 404


def test_pictures_are_described_not_inlined(client, store):
    picture = "data:image/png;base64," + "A" * 90_000
    ids = store(
        span(
            "eyes",
            span_id="1" * 32,
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is it?"},
                        {"type": "image_url", "image_url": {"url": picture}},
                    ],
                }
            ],
        )
    )
    page = text_of(client.get(f"/traces/{ids[0]}"))
    assert "AAAAAAAAAA" not in page
    assert "image, 90" in page
    assert "<img" not in page


def test_markup_in_a_payload_stays_text(client, store):
    ids = store(
        span(
            "x",
            span_id="1" * 32,
            input=[{"role": "user", "content": "<script>alert(1)</script> **bold**"}],
            output={"<b>": "<i>"},
            error="<u>",
        )
    )
    page = text_of(client.get(f"/traces/{ids[0]}"))
    assert "<script>alert" not in page
    assert "**bold**" in page
    assert "&lt;b&gt;" in page


def test_neighbours_lead_to_the_next_trace(client, store):
    ids = store(*[span(f"r{n}", span_id=f"{n:032x}", at_ms=n) for n in range(3)])
    page = client.get(f"/traces/{ids[1]}")
    assert (page.context["newer"], page.context["older"]) == (ids[2], ids[0])


def test_an_unknown_trace_is_not_found(client, project):
    assert client.get("/traces/AAAAAAAAAAAAAAAAAAAAA").status_code == 404
    assert client.get("/traces/short").status_code == 404


def test_the_number_of_queries_does_not_grow_with_the_tree(client, store, django_assert_max_num_queries):
    spans = [span("root", span_id="f" * 16)] + [
        span(f"s{n}", span_id=f"{n:016x}", parent_span_id="f" * 16) for n in range(80)
    ]
    ids = store(*spans)
    with django_assert_max_num_queries(14):
        client.get(f"/traces/{ids[0]}")
