"""trace_tree: all rows of a trace, those under a span that never came included (TRC-040, TRC-041)."""

from __future__ import annotations

from apps.tracing import selectors, trajectory

BASE = 1_777_000_000_000


def drawn(project, root_id: str) -> list[str]:
    """The tree as indented names, "?" for a missing span."""
    tree = trajectory.build_tree(selectors.trace_tree(project, root_id, payloads=False))
    return ["  " * node.depth + (node.row.name if node.row else "?") for node in tree.walk()]


def test_rows_under_a_missing_span(project, span, api):
    """One listed trace; the row stands under a missing span until that comes, also when it was sent before its root."""
    span("C", span_id="c", parent_span_id="b", session_id="s", at_ms=BASE + 20)
    root = span("A", span_id="a", session_id="s", at_ms=BASE)
    assert drawn(project, root.pk) == ["A", "  ?", "    C"]
    assert [trace["name"] for trace in api.get("/ingest/traces").json()["traces"]] == ["A"]
    assert selectors.get_session(project, "s").turn_count == 1
    span("B", span_id="b", parent_span_id="a", session_id="s", at_ms=BASE + 10)
    assert drawn(project, root.pk) == ["A", "  B", "    C"]


def test_loose_rows_go_to_the_turn_they_fall_into(project, span):
    """Of several turns in a session the last one that had begun."""
    first = span("one", span_id="r1", session_id="s", at_ms=BASE)
    second = span("two", span_id="r2", session_id="s", at_ms=BASE + 1000)
    span("x", parent_span_id="gone", session_id="s", at_ms=BASE + 500)
    span("y", parent_span_id="gone too", session_id="s", at_ms=BASE + 1500)
    assert drawn(project, first.pk) == ["one", "  ?", "    x"]
    assert drawn(project, second.pk) == ["two", "  ?", "    y"]


def test_two_rows_that_are_each_others_parent(project, span):
    """They are in their session, and no reader loops."""
    root = span("root", span_id="r", session_id="s", at_ms=BASE)
    span("x", span_id="x", parent_span_id="y", session_id="s", at_ms=BASE + 1)
    span("y", span_id="y", parent_span_id="x", session_id="s", at_ms=BASE + 2)
    assert drawn(project, root.pk) == ["root", "  x", "    y"]


def test_unknown_and_foreign_roots(project, other_project, span):
    """An empty tree."""
    root = span("r")
    assert selectors.trace_tree(project, "nope") == []
    assert selectors.trace_tree(other_project, root.pk) == []


def test_number_of_queries_is_fixed(project, span, django_assert_num_queries):
    """Root, rows below it, rows without a root."""
    root = span("r", span_id="r", session_id="s")
    for n in range(12):
        span(f"c{n}", parent_span_id="r", session_id="s")
    with django_assert_num_queries(3):
        assert len(selectors.trace_tree(project, root.pk)) == 13
