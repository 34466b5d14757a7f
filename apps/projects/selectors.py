"""Reads of projects."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from apps.core.times import from_ms
from apps.projects.models import ApiKey, AuditEvent, Project
from apps.projects.services.keys import primary_key_of


def list_projects() -> QuerySet[Project]:
    """Every live project with its primary key at hand, the default one first, then by age."""
    primary = ApiKey.objects.filter(is_primary=True, revoked_at=None)
    return (
        Project.objects.filter(deleting=False)
        .select_related("organization")
        .prefetch_related(Prefetch("api_keys", queryset=primary))
        .order_by("-is_default", "created_at", "pk")
    )


def audit_events(*, since_ms: int | None = None, action: str = "", limit: int = 100) -> list[AuditEvent]:
    """Rows of the audit trail, newest first; `action` is exact, `since_ms` inclusive."""
    events = AuditEvent.objects.order_by("-created_at", "-id")
    if since_ms is not None:
        events = events.filter(created_at__gte=from_ms(since_ms))
    if action:
        events = events.filter(action=action)
    return list(events[:limit])


def default_key() -> str | None:
    """The default project's key in clear, without writing; None on an instance that has none to show."""
    project = list_projects().filter(is_default=True).first()
    return primary_key_of(project) if project else None
