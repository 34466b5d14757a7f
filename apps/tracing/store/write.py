"""Storing a batch of rows: replays, quota, agents, trees, costs, and what the batch adds to the aggregates.

`store_rows` runs inside one transaction of the calling thread's connection and under the write lock of the projects
concerned (SQLite: the immediate transaction; Postgres: an advisory lock per project), so parallel processes never
miss each other's parents, children, agents or replays. Everything that changes span rows goes through here or through
`apps.tracing.store.changes`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from django.conf import settings

from apps.core.ids import new_id
from apps.tracing.ingest import checks
from apps.tracing.ingest.errors import PROJECT_GONE, QUOTA_REACHED
from apps.tracing.ingest.normalize import first_failed_tool, price_own, price_row
from apps.tracing.ingest.records import Stored
from apps.tracing.models import Outcome, Traffic
from apps.tracing.rollups.contributions import Batch
from apps.tracing.store import agents, quota
from apps.tracing.store.backend import Backend, Found, backend
from apps.tracing.store.counts import count_below
from apps.tracing.store.rows import Row, add_child_models

_PRODUCTION, _EVAL, _UNMONITORED = int(Traffic.PRODUCTION), int(Traffic.EVAL_RUN), int(Traffic.UNMONITORED)
_EVENT_KEYS = {
    int(Outcome.TRACE_ERROR): "agent-trace-error",
    int(Outcome.EMPTY_RESPONSE): "empty-agent-response",
}


# Projects whose deletion has begun in this process: what still waits in the queue for them is refused.
_refused_projects: set[int] = set()


def refuse_project(project_id: int) -> None:
    """Store nothing more for a project that is being deleted."""
    if not settings.INGEST_INLINE:
        _refused_projects.add(project_id)


class Written(msgspec.Struct):
    """The result of one batch: an answer for each row in order, and the rows that it brought into the store."""

    answers: list[Stored]
    new: list[Row]
    deduped: int


def store_rows(rows: list[Row], *, again: bool = False) -> Written:
    """Store the rows; call it inside a transaction (`backend().transaction()`).

    `again` says that an earlier try with these rows may have committed although nobody heard of it: rows that are
    stored under their own ids are answered as new, because they are, and not stored twice.
    """
    store = backend()
    by_project: dict[int, list[int]] = {}
    for position, row in enumerate(rows):
        by_project.setdefault(row.project_id, []).append(position)
    found = store.begin({project_id: _named(rows, by_project[project_id]) for project_id in sorted(by_project)})
    own_ids: set[str] = store.existing_ids([row.id for row in rows]) if again else set()
    answers: list[Stored | None] = [None] * len(rows)
    contributions = Batch()
    new: list[Row] = []
    touched: list[Row] = []
    recovered: list[Row] = []
    deduped = 0
    for project_id, positions in by_project.items():
        if project_id in _refused_projects:
            for position in positions:
                answers[position] = Stored(refused=PROJECT_GONE)
            continue
        accepted: list[Row] = []
        stored_ids = found[project_id].ids
        seen: dict[str, str] = {}
        allowance = quota.Allowance(project_id) if settings.QUOTA_TRACES_PER_DAY is not None else None
        for position in positions:
            row = rows[position]
            if row.id in own_ids:
                answers[position] = Stored(row.id)
                recovered.append(row)
                continue
            span_id = row.span_id
            if span_id is not None:
                known = stored_ids.get(span_id) or seen.get(span_id)
                if known is not None:
                    answers[position] = Stored(known, True)
                    deduped += 1
                    continue
            if allowance is not None and row.parent_span_id is None and not allowance.take():
                answers[position] = Stored(refused=QUOTA_REACHED.format(limit=allowance.limit))
                continue
            if span_id is not None:
                seen[span_id] = row.id
            answers[position] = Stored(row.id)
            accepted.append(row)
        if allowance is not None:
            allowance.save()
        if accepted:
            agents.resolve(project_id, [row for row in accepted if row.parent_span_id is None])
            touched += _link(store, project_id, accepted, found[project_id], contributions)
            new += accepted
    if new:
        store.insert(new)
        if touched:
            store.update_links(touched)
        roots = [row for row in new if row.parent_span_id is None]
        if roots:
            store.insert_events([event for row in roots if (event := _event(row)) is not None])
            store.insert_checks([item for row in roots if (item := _check(row)) is not None])
        store.insert_journal(contributions.encode())
    return Written([answer for answer in answers if answer is not None], new + recovered, deduped)


def _check(row: Row) -> tuple[int, str, str | None, int] | None:
    """The place in the queue of live checks of a root that is to be checked, when its project checks anything."""
    if row.outcome is None or not checks.is_checked(row.project_id):
        return None
    patterns = None if row.pattern_ids is None else msgspec.json.encode(row.pattern_ids).decode()
    return (row.project_id, row.id, patterns, row.received_ms)


def _event(row: Row) -> tuple[str, int, str, str | None, str, int] | None:
    """The operational event of a checked root that failed: one, by the order of Outcome (source 1:7174-7180)."""
    if not row.outcome:
        return None
    key = _EVENT_KEYS.get(row.outcome) or f"agent-tool-failure:{first_failed_tool(row.tool_calls)}"
    return (new_id(row.created_ms), row.project_id, row.id, row.agent_id, key[:240], row.created_ms)


def _named(rows: list[Row], positions: list[int]) -> tuple[list[str], list[str]]:
    """The span ids of a project's rows, and the span ids of parents they name."""
    span_ids = []
    parents = set()
    for position in positions:
        row = rows[position]
        if row.span_id is not None:
            span_ids.append(row.span_id)
        if row.parent_span_id is not None:
            parents.add(row.parent_span_id)
    return span_ids, list(parents.difference(span_ids))


def _link(store: Backend, project_id: int, new: list[Row], found: Found, contributions: Batch) -> list[Row]:
    """Place new rows in their trees, in any order of arrival; returns the stored rows that changed.

    Contributions of the new rows are added; those of changed rows are replaced.
    """
    by_span_id: dict[str, Row] = {row.span_id: row for row in new if row.span_id is not None}
    absent = {
        row.parent_span_id
        for row in new
        if row.parent_span_id is not None and row.parent_span_id not in by_span_id and row.parent_span_id in found.ids
    }
    before: dict[str, Row] = {}  # stored rows as they were, by id
    stored: dict[str, Row] = {}  # the same rows as they become

    def adopt_loaded(loaded: Iterable[Row]) -> list[Row]:
        result = []
        for row in loaded:
            known = stored.get(row.id)
            if known is None:
                before[row.id] = row
                known = stored[row.id] = msgspec.structs.replace(row)
            result.append(known)
        return result

    parents = dict(by_span_id)
    if absent:
        for row in adopt_loaded(store.load_by_span_ids(project_id, list(absent))):
            if row.span_id is not None:
                parents[row.span_id] = row
    kids: dict[str, list[Row]] = {}
    for row in new:
        if row.parent_span_id is not None:
            kids.setdefault(row.parent_span_id, []).append(row)
    orphans = adopt_loaded(store.load_by_parents(project_id, list(by_span_id))) if found.children else []
    expanded = set(by_span_id)
    for child in orphans:
        kids.setdefault(child.parent_span_id or "", []).append(child)

    if kids:
        count_below(
            kids=kids,
            parents=parents,
            stored=stored,
            load_above=lambda span_ids: adopt_loaded(store.load_with_ancestors(project_id, span_ids)),
        )

    frontier: list[Row] = []
    for row in new:
        if row.parent_span_id is None:
            row.root_id = row.id
            if row.session_id is None:
                row.session_id = f"trace_{row.id}"
        else:
            parent = parents.get(row.parent_span_id)
            if parent is not None and parent is not row:
                _inherit(row, parent)
        frontier.append(row)
    while frontier:
        unknown = {
            row.span_id
            for row in frontier
            if row.id in stored and row.span_id is not None and row.span_id not in expanded
        }
        if unknown:
            expanded |= unknown
            listed = {child.id for span_id in unknown for child in kids.get(span_id, ())}
            for child in adopt_loaded(store.load_by_parents(project_id, list(unknown))):
                if child.id not in listed:
                    kids.setdefault(child.parent_span_id or "", []).append(child)
        reached: list[Row] = []
        for row in frontier:
            if row.span_id is None:
                continue
            for child in kids.get(row.span_id, ()):
                if child is not row and _inherit(child, row):
                    reached.append(child)
        frontier = reached

    # Models that descendants ran on, noted in their root: model comparison counts traces by it.
    ran_on: dict[str, set[str]] = {}
    for row in (*new, *stored.values()):
        if row.model is None or row.root_id is None or row.root_id == row.id:
            continue
        known = before.get(row.id)
        if known is None or known.root_id is None:
            ran_on.setdefault(row.root_id, set()).add(row.model)
    if ran_on:
        roots = {row.id: row for row in (*new, *stored.values()) if row.id in ran_on}
        distant = [root_id for root_id in ran_on if root_id not in roots]
        if distant:
            roots.update((row.id, row) for row in adopt_loaded(store.load_by_ids(project_id, distant)))
        for root_id, models in ran_on.items():
            if root_id in roots:
                add_child_models(roots[root_id], models)

    for row in new:
        price_row(row)
        price_own(row)
        contributions.add(row)
    changed = []
    for row_id, row in stored.items():
        old = before[row_id]
        if row != old:
            row.organization_id = new[0].organization_id
            if row.model is not None:
                price_own(row)
            if old.session_id is not None and (old.session_id != row.session_id or old.traffic != row.traffic):
                contributions.remove_deleted(old)  # it may have been the first or last of that session
            else:
                contributions.add(old, -1)
            contributions.add(row)
            changed.append(row)
    return changed


def _inherit(child: Row, parent: Row) -> bool:
    """Give a child what it has from its parent: root, agent, session, and the traffic of eval-run and unmonitored roots.

    A child of OpenTelemetry that names no session stands under its trace id until its parent has a session.
    """
    changed = False
    if child.root_id is None and parent.root_id is not None:
        child.root_id = parent.root_id
        child.agent_id = parent.agent_id
        if parent.traffic in (_EVAL, _UNMONITORED) and child.traffic == _PRODUCTION:
            child.traffic = parent.traffic
        changed = True
    if child.session_id is None and parent.session_id is not None:
        child.session_id = parent.session_id
        changed = True
    elif parent.session_id is not None and parent.session_id != child.session_id:
        trace_id = child.trace_id or parent.trace_id
        if trace_id is not None and child.session_id == trace_id:
            child.session_id = parent.session_id
            child.trace_id = trace_id
            changed = True
    return changed
