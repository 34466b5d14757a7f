"""What an operator wants to see at a glance: organizations, their size and their last 24 hours (AUTH-082, 083)."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils import timezone

from apps.core.times import datetime_to_iso, now_ms
from apps.llm.models import ModelCall
from apps.projects.models import Organization, Project
from apps.tracing.models import Grain, Rollup
from apps.tracing.rollups.fold import settle

_DAY_SECONDS = 24 * 3600
_FIVE_MINUTES = 300
JUDGE = "judge"


def overview() -> dict[str, Any]:
    """`{ organizations: [...], unassigned: { projects, judgeCalls24h } }` with a fixed number of queries.

    Projects of an instance without accounts belong to the default organization; as long as that has no member, they
    are what the wire calls unassigned.
    """
    traces = _traces_by_project()
    judged = _judge_calls_by_organization()
    projects: dict[str, list[int]] = defaultdict(list)
    for pk, organization_id in Project.objects.filter(deleting=False).values_list("pk", "organization_id"):
        projects[organization_id].append(pk)
    organizations = []
    unassigned = {"projects": 0, "judgeCalls24h": 0}
    rows = Organization.objects.annotate(members=Count("memberships", distinct=True)).order_by("created_at", "id")
    for row in rows:
        own = projects.get(row.id, [])
        if row.is_default and not row.members:
            unassigned["projects"] += len(own)
            unassigned["judgeCalls24h"] += judged.get(row.id, 0)
            continue
        organizations.append(
            {
                "_id": row.id,
                "name": row.name,
                "createdAt": datetime_to_iso(row.created_at),
                "members": row.members,
                "projects": len(own),
                "judgeCalls24h": judged.get(row.id, 0),
                "traces24h": sum(traces.get(pk, 0) for pk in own),
            }
        )
    return {"organizations": organizations, "unassigned": unassigned}


def _judge_calls_by_organization() -> dict[str, int]:
    """Calls to judge models of the last 24 hours."""
    rows = (
        ModelCall.objects.filter(purpose=JUDGE, created_at__gte=timezone.now() - timedelta(days=1))
        .exclude(project=None)
        .values_list("project__organization_id")
        .annotate(Count("id"))
        .order_by()
    )
    return dict(rows)


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
