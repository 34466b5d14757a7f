"""What a new project starts with: its monitoring defaults, and what later apps add (scorers, templates; PROJ-011).

An app registers `add_starter(project)` in its AppConfig.ready():

    starter.hooks.register("scorers", add_starter)

The functions run inside the transaction that makes the project.
"""

from __future__ import annotations

from apps.core.registry import Hooks
from apps.projects.models import MonitoringDefaults, Project

hooks: Hooks[[Project]] = Hooks()


def add_starter_content(project: Project) -> None:
    """Give a project that was just made its settings row and every registered starter content."""
    MonitoringDefaults.objects.get_or_create(project=project)
    hooks.call(project)
