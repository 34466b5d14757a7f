"""The agent registry: explicit registration and monitoring profiles. Ingest registers agents by itself."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.projects.models import Project
from apps.tracing.models import Agent, AgentProfile

NAME_MAX = 500


def create_agent(*, project: Project, name: str) -> Agent:
    """A new agent, also when one of that name exists (source 1:1857-1875). The name is trimmed, NUL replaced."""
    return Agent.objects.create(project=project, name=name.replace("\x00", "\ufffd").strip()[:NAME_MAX])


@transaction.atomic
def save_profile(*, agent: Agent, changes: dict[str, Any]) -> AgentProfile:
    """Create the agent's profile or change the given fields of it (model field names); the rest stays (MON-070)."""
    profile, _ = AgentProfile.objects.select_for_update().get_or_create(agent=agent)
    if changes:
        for name, value in changes.items():
            setattr(profile, name, value)
        profile.save(update_fields=[*changes, "updated_at"])
    return profile
