"""Keeping each row's `child_*` counts right, so that a sum over rows counts every token once (TRC-123).

A row's own tokens are what it recorded less what its direct children cover. A row covers what it recorded or, where
that is more, what its own children cover. So levels that repeat the counts below them add nothing, and levels that
state none (a LangGraph node between the root and its model calls) hide nothing: the whole tree adds up to what its
top covers. Four counts are kept side by side; cached tokens are part of the input's.

A late child only adds: what its parent covers more by it is added to the parent's parent, and so on as long as
anything grows. Every row is visited once for a batch, after all of its children; rows in a circle of parents take what
comes from outside it and hand nothing round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from apps.tracing.store.rows import Row

Counts = tuple[int, int, int, int]
NONE: Counts = (0, 0, 0, 0)
# Counts that newly reach a row from below, by its id.
_Brought = dict[str, tuple[Row, Counts]]


def covered(row: Row) -> Counts:
    """What a row stands for in its parent: the greater of recorded and below, for each count."""
    return (
        max(row.input_tokens or 0, row.child_input_tokens),
        max(row.output_tokens or 0, row.child_output_tokens),
        max(row.cache_read_tokens or 0, row.child_cache_read_tokens),
        max(row.cache_write_tokens or 0, row.child_cache_write_tokens),
    )


def count_below(
    *,
    kids: Mapping[str, list[Row]],
    parents: dict[str, Row],
    stored: Mapping[str, Row],
    load_above: Callable[[list[str]], Iterable[Row]],
) -> None:
    """Add newly linked children to their parents and carry the growth up.

    `kids` are rows by the span id they name as parent: all that are new, and stored ones whose parent is new. `parents`
    are known rows by span id; `stored` those that were in the store before, by id; `load_above` fetches stored rows by
    span id with all that is above them (they are then in `stored`).
    """
    parents.update((row.span_id, row) for row in stored.values() if row.span_id is not None)
    brought: _Brought = {}
    for span_id, children in kids.items():
        parent = parents.get(span_id)
        if parent is None:
            continue
        for child in children:
            if child is not parent and not (child.id in stored and parent.id in stored):
                _bring(brought, parent, covered(child))
    looked_for: set[str] = set()
    while brought:
        escaped = _carry_up(brought, parents, stored)
        missing = [span_id for span_id in escaped if span_id not in looked_for]
        looked_for.update(missing)
        if missing:
            parents.update((row.span_id, row) for row in load_above(missing) if row.span_id is not None)
        brought = {}
        for span_id in missing:
            if span_id in parents:
                _bring(brought, parents[span_id], escaped[span_id])


def _carry_up(brought: _Brought, parents: Mapping[str, Row], stored: Mapping[str, Row]) -> dict[str, Counts]:
    """Add to the rows and to those above them; returns what rises, by span id, to parents that are not loaded."""
    escaped: dict[str, Counts] = {}
    for row, hands_on in _children_first([row for row, _ in brought.values()], parents):
        known = brought.get(row.id)
        if known is None:
            continue
        growth = _add_below(row, known[1])
        if growth == NONE or not hands_on or row.parent_span_id is None:
            continue
        parent = parents.get(row.parent_span_id)
        if parent is not None:
            _bring(brought, parent, growth)
        elif row.id in stored:
            escaped[row.parent_span_id] = _plus(escaped.get(row.parent_span_id, NONE), growth)
    return escaped


def _children_first(receivers: Iterable[Row], parents: Mapping[str, Row]) -> list[tuple[Row, bool]]:
    """The receivers and the loaded rows above them, each after all of its children; False for rows in a circle."""
    reached: dict[str, Row] = {}
    waiting: dict[str, int] = {}
    for row in receivers:
        current: Row | None = row
        while current is not None and current.id not in reached:
            reached[current.id] = current
            current = parents.get(current.parent_span_id) if current.parent_span_id is not None else None
            if current is not None:
                waiting[current.id] = waiting.get(current.id, 0) + 1
    ready = [row for row in reached.values() if row.id not in waiting]
    order: list[tuple[Row, bool]] = []
    while ready:
        row = ready.pop()
        order.append((row, True))
        parent = parents.get(row.parent_span_id) if row.parent_span_id is not None else None
        if parent is not None:
            waiting[parent.id] -= 1
            if not waiting[parent.id]:
                ready.append(parent)
    if len(order) < len(reached):
        done = {row.id for row, _ in order}
        order += [(row, False) for row in reached.values() if row.id not in done]
    return order


def _bring(brought: _Brought, row: Row, counts: Counts) -> None:
    if counts != NONE:
        known = brought.get(row.id)
        brought[row.id] = (row, counts if known is None else _plus(known[1], counts))


def _plus(a: Counts, b: Counts) -> Counts:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


def _add_below(row: Row, counts: Counts) -> Counts:
    """Count these below a row; returns by how much it covers more."""
    old = covered(row)
    row.child_input_tokens += counts[0]
    row.child_output_tokens += counts[1]
    row.child_cache_read_tokens += counts[2]
    row.child_cache_write_tokens += counts[3]
    new = covered(row)
    return (new[0] - old[0], new[1] - old[1], new[2] - old[2], new[3] - old[3])
