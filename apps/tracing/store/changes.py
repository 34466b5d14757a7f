"""Taking stored rows away and re-pricing them; their contributions go or change in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from apps.tracing.ingest.normalize import price_own, price_row
from apps.tracing.rollups.contributions import Batch
from apps.tracing.store.backend import backend
from apps.tracing.store.rows import Row

# Rows a transaction deletes or changes: small enough that ingest beside it hardly waits.
BATCH_ROWS = 300


def delete_where(*, project_id: int, where: str, params: Sequence[object], count: bool = True) -> int:
    """Delete up to BATCH_ROWS rows of a project that meet a condition (%s placeholders), oldest id first.

    `count=False` is for a project that disappears as a whole: the aggregates are left alone, and the order does not
    matter (sorting all that is left for each batch would make the work quadratic). Returns how many went.
    """
    store = backend()
    # "+" keeps the planner from an index of the project, which would sort all that matches for each batch; a project
    # that goes as a whole is read by just that index.
    owner = "+project_id" if count else "project_id"
    with store.transaction():
        store.lock_projects([project_id])
        rows = store.load_rows(f"{owner} = %s AND {where}", (project_id, *params), BATCH_ROWS, ordered=count)
        if not rows:
            return 0
        store.delete_rows(rows)
        if count:
            contributions = Batch()
            for row in rows:
                contributions.remove_deleted(row)
            store.insert_journal(contributions.encode())
        return len(rows)


def reprice_where(
    *, project_id: int, organization_id: str | None, after_id: str, until_id: str
) -> tuple[int, int, str | None]:
    """Price one batch of a project's rows with ids in [after_id, until_id) anew at today's catalog.

    Returns how many rows were looked at, how many changed, and the id after which the next batch starts (None: done).
    """
    store = backend()
    with store.transaction():
        store.lock_projects([project_id])
        # "+" keeps the planner on the primary key: an index of the project would sort the whole range for each batch.
        rows = store.load_rows(
            "+project_id = %s AND id >= %s AND id < %s", (project_id, after_id, until_id), BATCH_ROWS
        )
        contributions = Batch()
        changed: list[Row] = []
        for row in rows:
            if row.model is None:
                continue
            old = msgspec.structs.replace(row)
            row.organization_id = organization_id
            price_row(row)
            price_own(row)
            if (row.cost_usd, row.own_cost_usd) != (old.cost_usd, old.own_cost_usd):
                contributions.add(old, -1)
                contributions.add(row)
                changed.append(row)
        if changed:
            store.update_costs(changed)
            store.insert_journal(contributions.encode())
    following = rows[-1].id + "\x01" if len(rows) == BATCH_ROWS else None
    return len(rows), len(changed), following
