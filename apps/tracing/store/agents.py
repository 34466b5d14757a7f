"""Which agent a new root belongs to; an unknown name is registered (source 1:1719-1720, 1:1763-1765).

Runs under the projects' write lock, so parallel first traces of a name make one agent. The cache holds what earlier
transactions committed; a name's oldest agent never changes, because agents are never deleted one by one.
"""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from apps.core.ids import LENGTH, id_ms
from apps.tracing.models import Agent
from apps.tracing.store.rows import Row

MAX_NAME = 500
_MAX_CACHED = 50_000
_cache: dict[tuple[int, str], str] = {}


def forget_cached_agents() -> None:
    """Drop this process's cache; called when a project is purged."""
    _cache.clear()


def resolve(project_id: int, roots: list[Row]) -> None:
    """Set `agent_id` of every root: the agent its reference or its name says, registered if need be."""
    missing: dict[str, list[Row]] = {}
    for row in roots:
        label = (row.agent_ref or row.name).strip()[:MAX_NAME]
        agent_id = _cache.get((project_id, label))
        if agent_id is None:
            missing.setdefault(label, []).append(row)
        else:
            row.agent_id = agent_id
    if not missing:
        return
    found: dict[str, str] = {}
    labels = list(missing)
    for label, agent_id in (
        Agent.objects.filter(project_id=project_id, name__in=labels)
        .order_by("-created_at", "-id")
        .values_list("name", "id")
    ):
        found[label] = agent_id
    references = {
        label for label, rows in missing.items() if _looks_like_id(label) and any(row.agent_ref for row in rows)
    }
    if references:
        for agent_id in Agent.objects.filter(project_id=project_id, id__in=references).values_list("id", flat=True):
            found[agent_id] = agent_id
    for label, rows in missing.items():
        agent_id = found.get(label)
        if agent_id is None:
            agent_id = found[label] = Agent.objects.create(project_id=project_id, name=label).id
        for row in rows:
            row.agent_id = agent_id
    if not settings.INGEST_INLINE:
        transaction.on_commit(lambda: _remember(project_id, found))


def _remember(project_id: int, found: dict[str, str]) -> None:
    if len(_cache) > _MAX_CACHED:
        _cache.clear()
    for label, agent_id in found.items():
        _cache[(project_id, label)] = agent_id


def _looks_like_id(label: str) -> bool:
    if len(label) != LENGTH:
        return False
    try:
        id_ms(label)
    except ValueError:
        return False
    return True
