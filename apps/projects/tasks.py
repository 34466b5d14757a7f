"""Background work on projects."""

from __future__ import annotations

from celery import shared_task

from apps.core import leases
from apps.projects.services.projects import finish_deletions


@shared_task(name="projects.finish_deletions")
def finish_project_deletions() -> None:
    """Finish deletions that were cut short; once in a deployment at a time."""
    with leases.held("project-deletions") as lease:
        if lease is not None:
            finish_deletions()
