"""Keeping each row's `child_*` counts right, so that a sum over rows counts every token once (TRC-123).

A row's own tokens are what it recorded less what its direct children cover. A row covers what it recorded or, where
that is more, what its own children cover. So levels that repeat the counts below them add nothing, and levels that
state none (a LangGraph node between the root and its model calls) hide nothing: the whole tree adds up to what its
top covers. Four counts are kept side by side; cached tokens are part of the input's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from apps.tracing.store.rows import Row

Counts = tuple[int, int, int, int]
NONE: Counts = (0, 0, 0, 0)

# How far up stored rows growing counts are carried: a longer way of levels without counts stops short of its top
# rather than keep the writer busy. Levels that arrive in one batch are not limited.
MAX_CLIMB = 100


def covered(row: Row) -> Counts:
    """What a row stands for in its parent: the greater of recorded and below, for each count."""
    return (
        max(row.input_tokens or 0, row.child_input_tokens),
        max(row.output_tokens or 0, row.child_output_tokens),
        max(row.cache_read_tokens or 0, row.child_cache_read_tokens),
        max(row.cache_write_tokens or 0, row.child_cache_write_tokens),
    )


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


def count_below(
    *,
    kids: Mapping[str, list[Row]],
    parents: dict[str, Row],
    stored: Mapping[str, Row],
    load_parent: Callable[[str], Row | None],
) -> None:
    """Add newly linked children to their parents and carry the growth up.

    `kids` are rows by the span id they name as parent: all that are new, and stored ones whose parent is new. `parents`
    are known rows by span id; `stored` those of them that were in the store before, by id; `load_parent` fetches a
    stored row by span id (it is then in `stored`). In a cycle a count goes round once.
    """
    done: set[str] = set()
    absent: set[str] = set()

    def known_parent(row: Row) -> Row | None:
        span_id = row.parent_span_id
        if span_id is None or span_id in absent:
            return None
        parent = parents.get(span_id)
        if parent is None and row.id in stored:
            parent = load_parent(span_id)
            if parent is None:
                absent.add(span_id)
            else:
                parents[span_id] = parent
        return parent

    def climb(row: Row, counts: Counts) -> None:
        passed: set[str] = set()
        while len(passed) < MAX_CLIMB or row.id not in stored:
            passed.add(row.id)
            counts = _add_below(row, counts)
            if counts == NONE:
                return
            parent = known_parent(row)
            if parent is None or parent.id in passed:
                return
            # A link not yet counted will be, with all the row covers by then.
            if row.parent_span_id not in done and not (row.id in stored and parent.id in stored):
                return
            row = parent

    for span_id in _deepest_first(kids, parents):
        parent = parents[span_id]
        counts = NONE
        for child in kids[span_id]:
            if child is not parent and not (child.id in stored and parent.id in stored):
                counts = _plus(counts, covered(child))
        done.add(span_id)
        if counts != NONE:
            climb(parent, counts)


def _deepest_first(kids: Mapping[str, list[Row]], parents: Mapping[str, Row]) -> Iterator[str]:
    """The span ids of known parents, each after those of its descendants; cycles are entered somewhere."""
    entered: set[str] = set()
    for top in kids:
        if top in entered or top not in parents:
            continue
        entered.add(top)
        path = [(top, iter(kids[top]))]
        while path:
            span_id, children = path[-1]
            for child in children:
                below = child.span_id
                if below is not None and below in kids and below not in entered and below in parents:
                    entered.add(below)
                    path.append((below, iter(kids[below])))
                    break
            else:
                path.pop()
                yield span_id
