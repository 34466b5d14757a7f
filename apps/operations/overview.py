"""What an operator wants to see at a glance: organizations, their size and their last 24 hours (AUTH-082, 083)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db.models import Count, Q, Sum

from apps.core.times import datetime_to_iso, now_ms
from apps.projects.models import Organization, Project
from apps.tracing.models import Grain, Rollup
from apps.tracing.rollups.fold import settle

_DAY_SECONDS = 24 * 3600
_FIVE_MINUTES = 300
# No part of this version calls a judge model.
_JUDGE_CALLS = 0


def overview() -> dict[str, Any]:
    """`{ organizations: [...], unassigned: { projects, judgeCalls24h } }` with a fixed number of queries.

    Projects of an instance without accounts belong to the default organization; as long as that has no member, they
    are what the wire calls unassigned.
    """
    traces = _traces_by_project()
    projects: dict[str, list[int]] = defaultdict(list)
    for pk, organization_id in Project.objects.filter(deleting=False).values_list("pk", "organization_id"):
        projects[organization_id].append(pk)
    organizations = []
    unassigned = 0
    rows = Organization.objects.annotate(members=Count("memberships", distinct=True)).order_by("created_at", "id")
    for row in rows:
        own = projects.get(row.id, [])
        if row.is_default and not row.members:
            unassigned += len(own)
            continue
        organizations.append(
            {
                "_id": row.id,
                "name": row.name,
                "createdAt": datetime_to_iso(row.created_at),
                "members": row.members,
                "projects": len(own),
                "judgeCalls24h": _JUDGE_CALLS,
                "traces24h": sum(traces.get(pk, 0) for pk in own),
            }
        )
    return {"organizations": organizations, "unassigned": {"projects": unassigned, "judgeCalls24h": _JUDGE_CALLS}}


def _traces_by_project() -> dict[int, int]:
    """Root traces of the last 24 hours (to five minutes) by project."""
    settle()
    since = (now_ms() // 1000 - _DAY_SECONDS) // _FIVE_MINUTES * _FIVE_MINUTES
    rows = (
        Rollup.objects.filter(Q(grain=Grain.FIVE_MINUTES, bucket__gte=since, is_root=True))
        .values_list("project_id")
        .annotate(count=Sum("spans"))
    )
    return dict(rows)
