"""Reads of the pages that go along a list or into one trace: where a page goes back to, who stands next to whom."""

from __future__ import annotations

from apps.projects.models import Project
from apps.tracing.selectors import PAGE_DEFAULT, TraceFilters, conditions
from apps.tracing.store import browse, reads
from apps.tracing.store.reads import SpanRow


def cursor_of_newer_page(project: Project, filters: TraceFilters, cursor: str, limit: int = PAGE_DEFAULT) -> str | None:
    """The cursor of the page before the one that `cursor` opens; None when that is the first page.

    A search or a tool filter is answered by an index that goes one way only: with them it is always None.
    """
    if filters.search or filters.tool:
        return None
    where, params = conditions(filters)
    # The page shown begins below `cursor`; the one before ends with `cursor` and begins below the row `limit` above it.
    newer = browse.roots_after(project.pk, where, params, after=cursor, limit=limit)
    return newer[-1] if len(newer) == limit else None


def count_newer(project: Project, filters: TraceFilters, after: str, limit: int = 500) -> int:
    """How many roots of these filters (search and tool left out) are newer than the row `after`, at most `limit`."""
    where, params = conditions(filters)
    return len(browse.roots_after(project.pk, where, params, after=after, limit=limit))


def neighbours(project: Project, root_id: str) -> tuple[str | None, str | None]:
    """(newer, older) root next to this one in the project's list of traces; None at its ends."""
    newer = browse.roots_after(project.pk, "", [], after=root_id, limit=1)
    older = reads.roots(project.pk, "", [], before=root_id, limit=1, select=reads.LIGHT)
    return (newer[0] if newer else None, older[0].id if older else None)


def tree_version(project: Project, root_id: str) -> tuple[int, str | None]:
    """Changes when a row below the root arrives or goes."""
    return browse.tree_version(project.pk, root_id)


def streamed_calls(project: Project, root_id: str, limit: int = 100) -> list[SpanRow]:
    """Model calls of a trace with their metadata only, which is where streamed ones say when they first spoke."""
    return browse.model_calls(project.pk, root_id, limit=limit)
