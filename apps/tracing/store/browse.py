"""SELECTs that only pages need: neighbours in the list, totals of whole trees, model calls with their metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import connection

from apps.tracing.store.reads import LIGHT, TABLE, SpanRow, fetch


def roots_after(project_id: int, where: str, params: Sequence[Any], *, after: str, limit: int) -> list[str]:
    """Ids of at most `limit` roots newer than `after` that satisfy the condition, oldest first."""
    condition = f" AND {where}" if where else ""
    sql = (
        f"SELECT id FROM {TABLE} WHERE project_id = %s AND parent_span_id IS NULL AND id > %s{condition}"
        " ORDER BY id LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [project_id, after, *params, limit])
        return [row[0] for row in cursor.fetchall()]


class TreeTotals(msgspec.Struct):
    """What a trace's rows amount to together: own counts and own cost, so that no level counts twice.

    `model` is one that its model calls name, `models` how many different ones they do.
    """

    spans: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model: str | None = None
    models: int = 0


def tree_totals(project_id: int, roots: Sequence[SpanRow]) -> dict[str, TreeTotals]:
    """Totals by root id over each root and everything below it, in one query for all of them."""
    if not roots:
        return {}
    marks = ", ".join(["%s"] * len(roots))
    columns = "input_tokens, child_input_tokens, output_tokens, child_output_tokens, own_cost_usd, model, kind"

    def own(name: str) -> str:
        difference = f"{name} - child_{name}"
        return f"SUM(CASE WHEN {name} IS NULL THEN NULL WHEN {difference} > 0 THEN {difference} ELSE 0 END)"

    sql = (
        f"SELECT root, COUNT(*), {own('input_tokens')}, {own('output_tokens')}, SUM(own_cost_usd),"
        " MIN(CASE WHEN kind = 'llm' THEN model END), COUNT(DISTINCT CASE WHEN kind = 'llm' THEN model END) FROM ("
        f"SELECT id AS root, {columns} FROM {TABLE} WHERE project_id = %s AND id IN ({marks})"
        " UNION ALL "
        f"SELECT root_id AS root, {columns} FROM {TABLE}"
        f" WHERE root_id IN ({marks}) AND parent_span_id IS NOT NULL AND project_id = %s"
        ") rows_of_trees GROUP BY root"
    )
    ids = [row.id for row in roots]
    totals = {row.id: TreeTotals() for row in roots}
    with connection.cursor() as cursor:
        cursor.execute(sql, [project_id, *ids, *ids, project_id])
        for root, spans, tokens_in, tokens_out, cost, model, models in cursor.fetchall():
            totals[root] = TreeTotals(
                int(spans),
                None if tokens_in is None else int(tokens_in),
                None if tokens_out is None else int(tokens_out),
                cost,
                model,
                int(models),
            )
    return totals


def tree_version(project_id: int, root_id: str) -> tuple[int, str | None]:
    """(number, newest id) of the rows below a root: cheap to ask, and different as soon as one arrives or goes."""
    sql = f"SELECT COUNT(*), MAX(id) FROM {TABLE} WHERE root_id = %s AND parent_span_id IS NOT NULL AND project_id = %s"
    with connection.cursor() as cursor:
        cursor.execute(sql, [root_id, project_id])
        count, newest = cursor.fetchone()
    return int(count), newest


def model_calls(project_id: int, root_id: str, *, limit: int) -> list[SpanRow]:
    """The first rows of kind `llm` below a root, with metadata and no other payload."""
    select = LIGHT.replace("NULL AS metadata", "metadata")
    sql = (
        f"SELECT {select} FROM {TABLE} WHERE root_id = %s AND parent_span_id IS NOT NULL AND project_id = %s"
        " AND kind = 'llm' ORDER BY id LIMIT %s"
    )
    return fetch(sql, [root_id, project_id, limit])
