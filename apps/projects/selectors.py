"""Reads of projects."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from apps.projects.models import ApiKey, Project
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


def default_key() -> str | None:
    """The default project's key in clear, without writing; None on an instance that has none to show."""
    project = list_projects().filter(is_default=True).first()
    return primary_key_of(project) if project else None
