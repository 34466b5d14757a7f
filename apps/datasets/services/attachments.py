"""Who still uses a dataset's grading config and therefore stands in the way of deleting it (DATA-043).

The app above that can attach one registers a check in its AppConfig.ready():

    attachments.checks["live scorers"] = attached_names

where `attached_names(project, grading_id)` gives the names of what it is attached to, none when nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apps.projects.models import Project

checks: dict[str, Callable[[Project, str], Iterable[str]]] = {}


def attached_to(project: Project, grading_id: str) -> list[str]:
    """Names of everything this grading config is attached to."""
    return [name for check in list(checks.values()) for name in check(project, grading_id)]
