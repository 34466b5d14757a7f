"""Projects: the default one of a fresh install, creation and deletion."""

from __future__ import annotations

from django.db import transaction

from apps.projects.models import MonitoringDefaults, Organization, Project
from apps.projects.services.keys import create_key, primary_key_of


@transaction.atomic
def ensure_default_project(*, key: str | None = None) -> tuple[Project, str]:
    """The default project and its key in clear; made on first start, in the default organization.

    `key` is the one kept in config.json; it is used only when the project has none yet.
    """
    organization, _ = Organization.objects.get_or_create(is_default=True, defaults={"name": "Default"})
    project, created = Project.objects.get_or_create(
        is_default=True, defaults={"name": "Default", "organization": organization}
    )
    if created:
        MonitoringDefaults.objects.create(project=project)
        return project, create_key(project=project, key=key)
    return project, primary_key_of(project)
