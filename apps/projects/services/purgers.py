"""Who removes a project's rows that no foreign key cascade reaches: the telemetry tables.

An app registers `purge(project_pk)` in its AppConfig.ready():

    purgers.hooks.register("tracing", purge)

A purger deletes in batches with transactions of its own, may be called again for the same project at any time, also
after the project's row is gone, and returns when nothing of the project is left. It also makes sure that rows which
still wait in a queue of this process are not written afterwards.
"""

from __future__ import annotations

from apps.core.registry import Hooks

hooks: Hooks[[int]] = Hooks()


def purge(project_pk: int) -> None:
    """Run every purger for one project."""
    hooks.call(project_pk)
