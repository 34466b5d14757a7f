"""What the write side needs of a database; one implementation for SQLite, one for Postgres.

All methods run on the calling thread's Django connection, inside a transaction that `transaction()` opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from django.db import connection

from apps.tracing.store.rows import Row


class Found(msgspec.Struct):
    """What is stored already of the span ids a batch names."""

    ids: dict[str, str]  # row ids by span id, of rows and of parents
    children: bool  # whether rows are stored that name one of the batch's rows as their parent


# Rows above others that one batch may load and change; no tree of an agent is near that deep.
MAX_ABOVE = 5000

# An operational event: id, project, trace, agent, key, time in milliseconds.
Event = tuple[str, int, str, str | None, str, int]

# A root queued for the live checks: project, trace, JSON list of the only patterns to look for, time in milliseconds.
Check = tuple[int, str, str | None, int]


class Backend(Protocol):
    """The interface of a span store's write side."""

    def transaction(self) -> AbstractContextManager[None]:
        """A write transaction that commits durably on exit."""

    def lock_projects(self, project_ids: Sequence[int]) -> None:
        """Make this transaction the only writer of these projects' spans until it ends; ids in ascending order."""

    def begin(self, batch: dict[int, tuple[list[str], list[str]]]) -> dict[int, Found]:
        """Lock the batch's projects and look up what it meets, by project.

        `batch` holds for each project the span ids of the batch's rows and the parents' span ids they name.
        """

    def load_by_span_ids(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored rows by their span ids, without payloads."""

    def load_by_parents(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored direct children of these span ids, without payloads."""

    def load_by_ids(self, project_id: int, ids: Sequence[str]) -> list[Row]:
        """Stored rows by their ids, without payloads."""

    def load_with_ancestors(self, project_id: int, span_ids: Sequence[str]) -> list[Row]:
        """Stored rows by their span ids with the rows above them, MAX_ABOVE at most: what is higher up is left out."""

    def existing_ids(self, ids: Sequence[str]) -> set[str]:
        """Which of these row ids are stored."""

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert new rows, and make roots findable by their words."""

    def update_links(self, rows: Sequence[Row]) -> None:
        """Write the columns a later arrival may change."""

    def update_costs(self, rows: Sequence[Row]) -> None:
        """Write `cost_usd` and `own_cost_usd`."""

    def insert_events(self, events: Sequence[Event]) -> None:
        """Insert operational events."""

    def insert_checks(self, items: Sequence[Check]) -> None:
        """Queue roots for the live checks."""

    def insert_journal(self, payload: bytes) -> None:
        """Insert the batch's contributions."""

    def load_rows(self, where: str, params: Sequence[object], limit: int, *, ordered: bool = True) -> list[Row]:
        """Whole rows, payloads included, by a condition with %s placeholders; for deletion and re-pricing."""

    def delete_rows(self, rows: Sequence[Row]) -> None:
        """Delete whole rows with their words and events."""


def backend() -> Backend:
    """The implementation for the default connection."""
    if connection.vendor == "postgresql":
        from apps.tracing.store.postgres import POSTGRES

        return POSTGRES
    from apps.tracing.store.sqlite import SQLITE

    return SQLITE
