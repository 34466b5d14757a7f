"""Trees, metrics, steps and tool quality from rows (UI-023..027, MON-016..018, TRC-041, TRC-043)."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.core.ids import new_id
from apps.tracing import trajectory
from apps.tracing.store.reads import SpanRow

NS = 1_000_000
BASE = 1_777_000_000_000


def row(name: str, parent: str | None = None, start: float | None = None, **values: Any) -> SpanRow:
    """A row whose span id is its name; `start` in milliseconds from the base."""
    for key in ("input", "output", "tool_calls", "metadata", "performance_summary"):
        if key in values:
            values[key] = json.dumps(values[key])
    defaults: dict[str, Any] = dict.fromkeys(SpanRow.__struct_fields__)
    created = BASE + int(start or 0)
    defaults |= {
        "id": new_id(created),
        "span_id": name,
        "parent_span_id": parent,
        "name": name,
        "kind": "chain",
        "status": 0,
        "traffic": 0,
        "created_ms": created,
        "received_ms": created,
        "start_ns": None if start is None else int((BASE + start) * NS),
        "tool_count": 0,
        "tool_failures": 0,
    }
    return SpanRow(**(defaults | values))


def drawn(tree: trajectory.Tree) -> list[str]:
    """The tree as indented names, "?" for a missing span."""
    return ["  " * node.depth + (node.row.name if node.row else f"?{node.span_id}") for node in tree.walk()]


def test_tree_and_waterfall():
    """Children under their parents by start; offsets count from the root and may be negative."""
    rows = [
        row("b", "root", 40, latency_ms=50.0),
        row("root", None, 0, latency_ms=100.0),
        row("a", "root", -5, latency_ms=10.0),
        row("leaf", "b", 45, latency_ms=5.0),
        row("startless", "b"),
    ]
    tree = trajectory.build_tree(rows)
    assert drawn(tree) == ["root", "  a", "  b", "    startless", "    leaf"]
    offsets = {node.row.name: (node.offset_ms, node.duration_ms) for node in tree.walk() if node.row}
    assert offsets == {
        "root": (0, 100),
        "a": (-5, 10),
        "b": (40, 50),
        "leaf": (45, 5),
        "startless": (40, 0),
    }
    assert (tree.begin_ms, tree.end_ms, tree.extent_ms) == (-5, 100, 105)


def test_arrival_order_does_not_matter():
    """Any order of rows gives the same tree."""
    rows = [row("root", None, 0), row("a", "root", 1), row("b", "a", 2), row("c", "a", 3), row("d", "root", 4)]
    expected = drawn(trajectory.build_tree(rows))
    for seed in range(10):
        random.Random(seed).shuffle(rows)
        assert drawn(trajectory.build_tree(rows)) == expected


def test_missing_parent_has_a_node_of_its_own():
    """Its children hang under one "missing span", below the trace they belong to; re-parented when it comes."""
    rows = [row("a", None, 0, latency_ms=9.0), row("c", "b", 3, latency_ms=2.0), row("d", "b", 6, latency_ms=1.0)]
    tree = trajectory.build_tree(rows)
    assert drawn(tree) == ["a", "  ?b", "    c", "    d"]
    missing = tree.roots[0].children[0]
    assert (missing.is_missing, missing.offset_ms, missing.duration_ms) == (True, 3, 4)
    assert drawn(trajectory.build_tree([*rows, row("b", "a", 2)])) == ["a", "  b", "    c", "    d"]


def test_several_roots_keep_missing_spans_at_the_top():
    """Which turn they belong to cannot be told."""
    rows = [row("t1", None, 0), row("t2", None, 10), row("c", "gone", 5)]
    assert drawn(trajectory.build_tree(rows)) == ["t1", "t2", "?gone", "  c"]


def test_rows_that_are_each_others_parent():
    """No endless loop; each stands once, the earlier one first."""
    rows = [row("root", None, 0), row("x", "y", 1), row("y", "x", 2), row("tail", "y", 3), row("own", "own", 4)]
    tree = trajectory.build_tree(rows)
    assert drawn(tree) == ["root", "  x", "    y", "      tail", "  own"]
    assert [node.row.name for node in tree.walk() if node.in_cycle] == ["x", "y", "own"]


def test_a_cycle_alone():
    """Two rows, no root."""
    assert drawn(trajectory.build_tree([row("x", "y", 2), row("y", "x", 1)])) == ["y", "  x"]


def test_nothing():
    """No rows give an empty tree with metrics of 0."""
    tree = trajectory.build_tree([])
    assert drawn(tree) == []
    assert trajectory.metrics(tree).spans == 0
    assert trajectory.critical_path(tree) == []


def test_ten_thousand_spans_two_thousand_deep():
    """No recursion error, every row once."""
    rows = [row("s0", None, 0, latency_ms=1.0)]
    rows += [row(f"s{n}", f"s{n - 1}", n, latency_ms=1.0) for n in range(1, 2000)]
    rows += [row(f"w{n}", f"s{n % 2000}", n, latency_ms=1.0) for n in range(8000)]
    random.Random(1).shuffle(rows)
    tree = trajectory.build_tree(rows)
    assert sum(1 for _ in tree.walk()) == 10_000
    metrics = trajectory.metrics(tree)
    assert (metrics.spans, metrics.steps, metrics.depth) == (10_000, 9_999, 2001)
    assert trajectory.descendants(tree.roots[0]) == 9_999
    assert len(trajectory.critical_path(tree)) > 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-1, 12), st.integers(0, 5)), max_size=12, unique_by=lambda t: t[0]
    )
)
def test_any_rows_give_a_tree_with_each_of_them_once(shape):
    """Whatever points at whatever."""
    rows = [row(f"s{n}", None if parent < 0 else f"s{parent}", start) for n, parent, start in shape]
    tree = trajectory.build_tree(rows)
    assert sorted(node.row.name for node in tree.walk() if node.row) == sorted(item.name for item in rows)
    assert sorted(item.id for item in trajectory.in_order(rows)) == sorted(item.id for item in rows)


def test_metrics():
    """Counts of a small trace; tokens and cost once (TRC-123)."""
    rows = [
        row(
            "root",
            None,
            0,
            kind="agent",
            latency_ms=100.0,
            input_tokens=20,
            output_tokens=5,
            own_cost_usd=0.0,
            tool_calls=[{"name": "a", "success": False}, {"name": "b"}],
        ),
        row("LLM Call 1", "root", 1, kind="llm", latency_ms=30.0, input_tokens=12, output_tokens=3, own_cost_usd=0.5),
        row("LLM Call 2", "root", 40, kind="llm", latency_ms=20.0, input_tokens=8, output_tokens=2, own_cost_usd=0.25),
        row("kb", "root", 60, kind="retrieval", latency_ms=4.0),
        row("a", "root", 70, kind="tool", latency_ms=6.0, error="boom"),
    ]
    metrics = trajectory.metrics(trajectory.build_tree(rows))
    assert (metrics.spans, metrics.steps, metrics.depth) == (5, 4, 2)
    assert (metrics.llm_calls, metrics.retrievals, metrics.tool_calls, metrics.tool_failures) == (2, 1, 2, 1)
    assert (metrics.failures, metrics.latency_ms, metrics.llm_ms) == (1, 100, 50)
    assert (metrics.input_tokens, metrics.output_tokens, metrics.cost_usd) == (20, 5, 0.75)
    assert metrics.kinds == {"llm": 2, "retrieval": 1, "tool": 1}


def test_critical_path():
    """At each level the child that ended last."""
    rows = [
        row("root", None, 0, latency_ms=100.0),
        row("fast", "root", 0, latency_ms=10.0),
        row("slow", "root", 5, latency_ms=90.0),
        row("inner", "slow", 50, latency_ms=40.0),
    ]
    path = trajectory.critical_path(trajectory.build_tree(rows))
    assert [node.row.name for node in path if node.row] == ["root", "slow", "inner"]


def test_flat_trace_steps_come_from_its_summary():
    """Retrieval and execution steps, then tool calls (UI-026)."""
    flat = row(
        "t",
        performance_summary={
            "retrieval_steps": [{"name": "kb", "query": "q", "output": ["c"], "duration_ms": 3, "doc_count": 1}],
            "execution_steps": [{"input": "i", "output": "o", "duration_ms": 4.5}, "junk"],
        },
        tool_calls=[{"name": "search", "input": 1, "output": 2, "latency_ms": None}],
    )
    steps = trajectory.flat_steps(flat)
    assert [(step.name, step.kind, step.duration_ms) for step in steps] == [
        ("kb", "retrieval", 3),
        ("LLM Call 1", "llm", 4.5),
        ("search", "tool", None),
    ]
    assert (steps[0].input, steps[0].output, steps[0].doc_count) == ("q", ["c"], 1)


def test_flat_trace_without_steps_is_one_step():
    """Made from its own input and output (UI-027)."""
    (step,) = trajectory.flat_steps(row("t", input={"q": 1}, output="a", latency_ms=7.0, kind="llm"))
    assert (step.name, step.kind, step.input, step.output, step.duration_ms) == ("t", "llm", {"q": 1}, "a", 7)


@pytest.mark.parametrize("text", ["{", "[1", '"cut [agentx.trunc', "[" * 100_000])
def test_unreadable_payloads_are_shown_as_text(text):
    """A cut or very deep payload never breaks a page."""
    assert trajectory.parsed(text) == text
    broken = row("t")
    broken.tool_calls = broken.performance_summary = text
    assert trajectory.tool_quality(broken) == []
    assert len(trajectory.flat_steps(broken)) == 1


def test_tool_quality():
    """`success` decides; without it the output tells, and silence is neither passed nor failed (MON-018)."""
    calls = [
        {"name": "a", "success": True, "latency_ms": 5},
        {"name": "a", "success": False, "latency_ms": 7},
        {"name": "b", "output": "ERROR: nope"},
        {"name": "b", "output": "fine"},
        {"name": "c", "served": True},
        {"name": "c", "error": "boom"},
    ]
    quality = {item.name: item for item in trajectory.tool_quality(row("t", tool_calls=calls))}
    assert list(quality) == ["a", "b", "c"]
    assert [(q.calls, q.failed, q.passed, q.unknown) for q in quality.values()] == [
        (2, 1, 1, 0),
        (2, 1, 1, 0),
        (2, 1, 0, 1),
    ]
    assert (quality["a"].pass_rate, quality["a"].latency_ms) == (0.5, 12)
