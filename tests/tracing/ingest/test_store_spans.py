"""Storing spans: identities, trees, sessions, agents, costs and aggregates, as a reader of the tables sees them."""

from __future__ import annotations

import itertools
import json

import pytest

from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Agent, Grain, OperationalEvent, Rollup, Session, Span, ToolRollup
from apps.tracing.rollups.fold import settle

pytestmark = pytest.mark.django_db


def span(name="agent", **fields):
    """A span whose payload members are given as Python values."""
    for key in ("input", "output", "tool_calls", "metadata", "performance_summary"):
        if key in fields:
            fields[key] = json.dumps(fields[key]).encode()
    return SpanIn(name=name, **fields)


def test_a_root_is_stored_with_agent_session_and_outcome(project):
    [stored] = store_spans(project, [span("bot", output="hi", input={"q": 1}, input_tokens=10, latency_ms=12.5)])
    row = Span.objects.get(id=stored.id)
    assert (row.name, row.root_id, row.kind, row.outcome) == ("bot", row.id, "chain", 0)
    assert row.session_id == f"trace_{row.id}"
    assert Agent.objects.get(id=row.agent_id).name == "bot"
    assert (row.input, row.output) == ('{"q": 1}', '"hi"')


def test_a_replay_answers_the_first_id_and_changes_nothing(project):
    [first] = store_spans(project, [span(span_id="s1", output="one")])
    [again] = store_spans(project, [span(span_id="s1", output="two")])
    twice = store_spans(project, [span(span_id="s2"), span(span_id="s2")])
    assert (again.id, again.deduped) == (first.id, True)
    assert [item.deduped for item in twice] == [False, True] and twice[0].id == twice[1].id
    assert Span.objects.get(id=first.id).output == '"one"'
    settle()
    assert sum(Rollup.objects.filter(grain=Grain.ALL_TIME).values_list("spans", flat=True)) == 2


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 2, 0, 3), (2, 0, 3, 1)])
@pytest.mark.parametrize("together", [True, False])
def test_an_opentelemetry_trace_stands_in_the_session_its_root_names(project, order, together):
    trace = "0af7651916cd43dd8448eb211c80319c"
    spans = [
        span("root", span_id="a", session_id="chat", trace_id=trace),
        span("step", span_id="b", parent_span_id="a", session_id=trace, trace_id=trace, error="boom"),
        span("tool", span_id="c", parent_span_id="b", session_id=trace, trace_id=trace),
        span("elsewhere", span_id="d", parent_span_id="a", session_id="other", trace_id=trace),
    ]
    arrival = [spans[index] for index in order]
    for batch in [arrival] if together else [[item] for item in arrival]:
        store_spans(project, batch)
    found = dict(Span.objects.values_list("name", "session_id"))
    assert found == {"root": "chat", "step": "chat", "tool": "chat", "elsewhere": "other"}
    settle()
    sessions = Session.objects.order_by("session_id").values_list("session_id", "turn_count", "span_count")
    assert list(sessions) == [("chat", 1, 3), ("other", 0, 1)]


def test_an_opentelemetry_child_without_its_parent_stands_under_its_trace(project):
    store_spans(project, [span("step", span_id="b", parent_span_id="a", session_id="t1", trace_id="t1")])
    store_spans(project, [span("root", span_id="x", session_id="t1", trace_id="t1")])
    assert set(Span.objects.values_list("session_id", flat=True)) == {"t1"}


def test_every_word_of_a_long_prompt_is_found(api, project):
    prompt = " ".join(f"identifier{n:04d}" for n in range(3000))
    [stored] = store_spans(project, [span(input=prompt, output="x " * 45_000 + "needle")])
    for word in ("identifier0000", "identifier1500", "identifier2999", "needle"):
        assert [row["_id"] for row in api.get("/ingest/traces", search=word).json()["traces"]] == [stored.id]


@pytest.mark.parametrize("root_first", [True, False])
def test_children_of_an_eval_run_are_eval_traffic(project, root_first):
    root = span("root", span_id="a", session_id="s", source="eval-run", input_tokens=1)
    child = span("llm", span_id="b", parent_span_id="a", input_tokens=5)
    for item in [root, child] if root_first else [child, root]:
        store_spans(project, [item])
    assert set(Span.objects.values_list("traffic", flat=True)) == {1}
    settle()
    assert set(Rollup.objects.values_list("traffic", flat=True)) == {1}
    assert not Session.objects.exists()


def test_absurd_numbers_neither_break_dates_nor_sums(api, project):
    far = 2**63 - 1
    for _ in range(3):
        [stored] = store_spans(
            project, [span(session_id="s", latency_ms=1e300, input_tokens=1e30, output_tokens=10**30, start_ns=far)]
        )
    listed = api.get("/agent-monitoring/sessions", window="30d")
    assert listed.status_code == 200
    assert [row["turnCount"] for row in listed.json()["sessions"]] == [3]
    detail = api.get(f"/ingest/traces/{stored.id}").json()
    assert (detail["latencyMs"], detail["inputTokens"], detail["outputTokens"]) == (1e12, 10**12, 10**12)
    assert detail["createdAt"].startswith("2262-04-11T")
    # A million such spans still add up within 64 bits.
    assert 1_000_000 * detail["inputTokens"] < 2**63


@pytest.mark.parametrize("length", [500, 501, 3000])
def test_a_session_is_found_by_the_id_it_was_sent_with(api, project, length):
    name = "s" * length
    store_spans(project, [span(session_id=name), span("c", parent_span_id="x", session_id=name)])
    assert len(api.get(f"/ingest/sessions/{name}/spans").json()["spans"]) == 2


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
@pytest.mark.parametrize("together", [True, False])
def test_every_order_of_arrival_gives_the_same_tree(project, order, together):
    spans = [
        span("root", span_id="a", session_id="s", input_tokens=100, output_tokens=20),
        span("tool", span_id="b", parent_span_id="a", input_tokens=100, output_tokens=20, kind="tool"),
        span("llm", span_id="c", parent_span_id="b", input_tokens=100, output_tokens=20, kind="llm"),
    ]
    arrival = [spans[index] for index in order]
    if together:
        store_spans(project, arrival)
    else:
        for item in arrival:
            store_spans(project, [item])
    root = Span.objects.get(span_id="a")
    assert set(Span.objects.values_list("root_id", "session_id", "agent_id")) == {(root.id, "s", root.agent_id)}
    settle()
    totals = Rollup.objects.filter(grain=Grain.ALL_TIME).values_list("input_tokens", "output_tokens")
    assert (sum(row[0] for row in totals), sum(row[1] for row in totals)) == (100, 20)
    session = Session.objects.get(session_id="s")
    assert (session.turn_count, session.span_count, session.input_tokens) == (1, 3, 100)
    assert set(Rollup.objects.values_list("agent_id", flat=True)) == {root.agent_id}


def test_cycles_and_self_parents_are_stored_without_end(project):
    store_spans(project, [span("x", span_id="x", parent_span_id="y", session_id="q")])
    store_spans(project, [span("y", span_id="y", parent_span_id="x"), span("z", span_id="z", parent_span_id="z")])
    assert list(Span.objects.filter(root_id=None).order_by("name").values_list("name", "session_id")) == [
        ("x", "q"),
        ("y", "q"),
        ("z", None),
    ]


def test_tool_calls_failures_and_the_event(project):
    calls = [{"name": "search", "success": True}, {"name": "refund", "success": False}, {"name": "search"}]
    [stored] = store_spans(project, [span(tool_calls=calls, error="boom", output="x", latency_ms=100)])
    row = Span.objects.get(id=stored.id)
    assert (row.kind, row.tool_count, row.tool_failures, row.outcome) == ("tool", 3, 1, 1)
    assert OperationalEvent.objects.get().key == "agent-tool-failure:refund"
    settle()
    tools = (
        ToolRollup.objects.filter(grain=Grain.DAY).order_by("tool").values_list("tool", "roots", "calls", "failures")
    )
    assert list(tools) == [("refund", 1, 1, 1), ("search", 1, 2, 0)]


def test_a_prices_own_tokens_only(project):
    from django.utils import timezone

    from apps.llm.models import CatalogModel, ModelPrice
    from apps.llm.pricing import forget

    model = CatalogModel.objects.create(model_id="m", provider="openai", label="m")
    ModelPrice.objects.create(
        model=model, valid_from=timezone.now().replace(year=2000), input_per_m=1e6, output_per_m=0
    )
    forget()
    store_spans(project, [span("llm", span_id="l", parent_span_id="r", input_tokens=7, model="m")])
    store_spans(project, [span("root", span_id="r", input_tokens=10, model="m", session_id="s")])
    settle()
    root = Span.objects.get(span_id="r")
    assert (root.cost_usd, root.own_cost_usd) == (10, 3)
    assert sum(Rollup.objects.filter(grain=Grain.ALL_TIME).values_list("cost_usd", flat=True)) == 10
    forget()


def test_long_payloads_keep_their_marker_and_small_keys(project, settings):
    settings.INGEST_MAX_FIELD_CHARS = 100
    [stored] = store_spans(
        project,
        [
            span(
                input="ü" * 300,
                output={"a": "b" * 300},
                metadata={"promptName": "p", "big": "x" * 500},
                tool_calls=[{"name": "t", "output": "y" * 500, "success": False}, {"name": "u"}],
            )
        ],
    )
    row = Span.objects.get(id=stored.id)
    assert json.loads(row.input) == "ü" * 100 + " [agentx.truncated]"
    assert json.loads(row.output).endswith(" [agentx.truncated]")
    metadata = json.loads(row.metadata)
    assert metadata["promptName"] == "p" and metadata["agentx.truncated"] is True and len(row.metadata) < 160
    first, second = json.loads(row.tool_calls)
    assert first["name"] == "t" and first["success"] is False and first["agentx.truncated"] is True
    assert second == {"name": "u"}


@pytest.mark.parametrize(
    "metadata",
    [
        {f"k{n}": "v" * 50 for n in range(5000)},
        {f"k{n}": n for n in range(20_000)},
        {f"k{n}": "v" * 30_000 for n in range(2000)},
        {"k" * 200_000: 1, "l": "x" * 95_000},
        {"k" * 200_000: 1},
        {"nested": {f"k{n}": "v" * 50 for n in range(5000)}},
    ],
    ids=["short values", "numbers", "long values", "long key", "one long key", "nested"],
)
def test_metadata_stays_within_its_cap_whatever_its_shape(project, settings, metadata):
    [stored] = store_spans(project, [span(metadata={"promptName": "p", **metadata})])
    text = Span.objects.get(id=stored.id).metadata
    kept = json.loads(text)
    assert len(text) <= settings.INGEST_MAX_FIELD_CHARS + 30
    assert kept["promptName"] == "p" and kept["agentx.truncated"] is True
    if max(map(len, metadata)) < 100:
        assert len(text) > settings.INGEST_MAX_FIELD_CHARS * 0.9  # no more is lost than must be


def test_the_store_takes_what_it_cannot_hold(project):
    [stored] = store_spans(
        project, [span("a\x00b\ud83e", input="x\x00y", output="half \ud83e", span_id="n\x00", latency_ms=-5)]
    )
    row = Span.objects.get(id=stored.id)
    assert row.name == "a\ufffdb\ufffd" and row.latency_ms == 0
    assert json.loads(row.input) == "x\ufffdy" and json.loads(row.output) == "half \ufffd"


def test_words_of_roots_are_found(project):
    from apps.tracing.selectors import TraceFilters, list_traces

    [hit] = store_spans(project, [span("bot", input="Größe zählt", output="refund \n issued 東京")])
    store_spans(project, [span("bot", output="something else")])
    for query, expected in [("GRÖSSE", [hit.id]), ("refund iss", [hit.id]), ("東京", [hit.id]), ("京 nothing", [])]:
        page = list_traces(project, TraceFilters(search=query))
        assert [row.id for row in page.rows] == expected, query
    assert list_traces(project, TraceFilters(search="!!!")).total == 0


@pytest.mark.parametrize("root_first", [True, False])
def test_a_tree_two_thousand_levels_deep_and_five_thousand_wide(project, root_first):
    deep = [span(f"d{n}", span_id=f"d{n}", parent_span_id=f"d{n - 1}" if n else "r") for n in range(2000)]
    wide = [span(f"w{n}", span_id=f"w{n}", parent_span_id="d0", input_tokens=1) for n in range(5000)]
    root = [span("root", span_id="r", session_id="s", input_tokens=9000)]
    spans = root + deep + wide if root_first else wide + deep[::-1] + root
    for start in range(0, len(spans), 500):
        store_spans(project, spans[start : start + 500])
    root_row = Span.objects.get(span_id="r")
    assert Span.objects.filter(root_id=root_row.id, session_id="s").count() == 7001
    assert Span.objects.get(span_id="d0").child_input_tokens == 5000
    settle()
    assert Session.objects.get().span_count == 7001
    assert sum(Rollup.objects.filter(grain=Grain.ALL_TIME).values_list("spans", flat=True)) == 7001


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
@pytest.mark.parametrize("size", [1, 4], ids=["one by one", "together"])
def test_a_span_without_a_session_is_of_the_session_its_parent_states(project, order, size):
    """OTLP spans fall back to their trace's id; a conversation named on the root alone still holds the whole tree."""
    spans = [
        span("root", span_id="r", session_id="conversation", trace_id="trace"),
        span("step", span_id="s", parent_span_id="r", session_id="trace", trace_id="trace"),
        span("call", span_id="c", parent_span_id="s", session_id="trace", trace_id="trace"),
        span("own", span_id="o", parent_span_id="s", session_id="other", trace_id="trace"),
    ]
    arriving = [spans[number] for number in order]
    for start in range(0, 4, size):
        store_spans(project, arriving[start : start + size])
    assert dict(Span.objects.values_list("span_id", "session_id")) == {
        "r": "conversation",
        "s": "conversation",
        "c": "conversation",
        "o": "other",
    }
    settle()
    assert set(Session.objects.values_list("session_id", "turn_count", "span_count")) == {
        ("conversation", 1, 3),
        ("other", 0, 1),
    }
