"""Projects: the default one of a fresh install, creation and deletion."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from apps.core.api.errors import APIError, NotFound
from apps.projects.models import Organization, Project
from apps.projects.services import audit, purgers
from apps.projects.services.keys import (
    create_key,
    forget_cached_keys_now_and_on_commit,
    primary_key_of,
    restore_or_replace_key,
)
from apps.projects.services.starter import add_starter_content

logger = logging.getLogger(__name__)


@transaction.atomic
def ensure_default_project(*, key: str | None = None) -> tuple[Project, str]:
    """The default project and its key in clear; made on first start, in the default organization.

    `key` is the one kept in config.json. It becomes the new project's key, and helps a project whose stored key can
    no longer be decrypted because the instance secret has changed; without it that is InvalidToken.
    """
    organization = default_organization()
    project, created = Project.objects.get_or_create(
        is_default=True, defaults={"name": "Default", "organization": organization}
    )
    if created:
        add_starter_content(project)
        return project, create_key(project=project, key=key)
    return project, primary_key_of(project) or restore_or_replace_key(project=project, known=key)


def default_organization() -> Organization:
    """The organization that owns the projects of an instance without accounts."""
    organization, _ = Organization.objects.get_or_create(is_default=True, defaults={"name": "Default"})
    return organization


@transaction.atomic
def create_project(*, name: str, request: Any = None) -> tuple[Project, str]:
    """A project in the default organization with a key of its own and starter content; returns both."""
    project = Project.objects.create(name=name, organization=default_organization())
    add_starter_content(project)
    key = create_key(project=project)
    audit.record(
        action="project.create",
        project=project,
        request=request,
        summary_fields=["name"],
        target_type="project",
        target_id=project.uid,
    )
    return project, key


@transaction.atomic
def rename_project(*, project: Project, name: str, request: Any = None) -> None:
    """Give a project another name."""
    Project.objects.filter(pk=project.pk).update(name=name)
    forget_cached_keys_now_and_on_commit()
    audit.record(
        action="project.update",
        project=project,
        request=request,
        summary_fields=["name"],
        target_type="project",
        target_id=project.uid,
    )


@transaction.atomic
def rename_organization(*, organization: Organization, name: str, request: Any = None) -> None:
    """Give an organization another name."""
    Organization.objects.filter(pk=organization.pk).update(name=name)
    forget_cached_keys_now_and_on_commit()
    audit.record(
        action="organization.update",
        request=request,
        summary_fields=["name"],
        target_type="organization",
        target_id=organization.pk,
    )


def delete_project(*, uid: str, request: Any = None) -> None:
    """Remove a project and every row it owns for good (sdk projects.py:58-62).

    First its keys die, in a transaction of their own; then the telemetry goes in batches; then the project and what
    hangs on it by foreign keys. A deletion that was cut short is finished by `finish_deletions` or by asking again.
    Raises 404 for an unknown id, 400 for the default project and for the last one.
    """
    with transaction.atomic():
        # Postgres refuses to look for a NUL character.
        project = None if "\x00" in uid else Project.objects.select_for_update().filter(uid=uid).first()
        if project is None:
            raise NotFound("Project not found")
        if project.is_default:
            raise APIError("The default project cannot be deleted")
        if not Project.objects.filter(deleting=False).exclude(pk=project.pk).exists():
            raise APIError("Cannot delete the only remaining project")
        if not project.deleting:
            project.deleting = True
            project.save(update_fields=["deleting"])
            audit.record(
                action="project.delete",
                project=project,
                request=request,
                target_type="project",
                target_id=project.uid,
            )
        forget_cached_keys_now_and_on_commit()
    _remove(project)


def finish_deletions() -> int:
    """Finish deletions that a crash or a lost database cut short; returns how many projects went."""
    unfinished = list(Project.objects.filter(deleting=True))
    for project in unfinished:
        _remove(project)
    return len(unfinished)


def _remove(project: Project) -> None:
    pk = project.pk
    purgers.purge(pk)
    if connection.vendor == "postgresql" and not settings.INGEST_INLINE:
        # Another web process may take spans for the project until its cached key has aged.
        time.sleep(settings.CACHE_SECONDS)
    with transaction.atomic():
        Project.objects.filter(pk=pk).delete()
    # What was on its way to the tables while the first round ran.
    purgers.purge(pk)
    logger.info("project removed", extra={"project": project.uid})
