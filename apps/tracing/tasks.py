"""Background jobs of tracing; thin: each calls one service."""

from __future__ import annotations

from celery import shared_task

from apps.core import leases
from apps.projects.models import Project
from apps.tracing.services.repricing import reprice
from apps.tracing.services.retention import apply_retention


@shared_task
def expire_spans() -> int:
    """The daily retention job; runs once in a whole deployment."""
    with leases.held("span-retention", seconds=3600) as lease:
        return 0 if lease is None else apply_retention()


@shared_task
def reprice_spans(project_pk: int, since_ms: int, until_ms: int) -> int:
    """Price a range of one project's spans anew; a repeat changes nothing more. Returns how many costs changed."""
    project = Project.objects.filter(pk=project_pk, deleting=False).first()
    return reprice(since_ms=since_ms, until_ms=until_ms, project=project).changed if project else 0
