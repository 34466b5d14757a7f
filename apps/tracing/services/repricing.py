"""Pricing recorded spans anew: a cost once stored stays until somebody asks for this."""

from __future__ import annotations

from dataclasses import dataclass

from apps.core.ids import time_prefix
from apps.projects.models import Project
from apps.tracing.rollups.fold import settle
from apps.tracing.store.changes import reprice_where


@dataclass(frozen=True, slots=True)
class Repriced:
    """How many spans were looked at, and how many got another cost."""

    seen: int
    changed: int


def reprice(*, since_ms: int, until_ms: int, project: Project | None = None) -> Repriced:
    """Price spans created in [since_ms, until_ms) at the catalog's prices of their own time; all projects or one.

    Aggregates follow. Works in small batches beside running ingest; may be repeated.
    """
    projects = [project] if project is not None else list(Project.objects.filter(deleting=False).order_by("pk"))
    seen = changed = 0
    until_id = time_prefix(until_ms)
    for each in projects:
        after: str | None = time_prefix(since_ms)
        while after is not None:
            looked, moved, after = reprice_where(
                project_id=each.pk, organization_id=each.organization_id, after_id=after, until_id=until_id
            )
            seen += looked
            changed += moved
    settle()
    return Repriced(seen, changed)
