"""The daily budget of judge calls (AUTH-067, AUTH-068): counted before the call, per instance and UTC day."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Sum

from apps.llm.gateway.errors import ModelUnavailable
from apps.projects.models import Project, QuotaUsage

JUDGE_KIND = "judge"
QUOTA_TEXT = "Daily judge quota reached ({limit} calls, AGENTX_QUOTA_JUDGE_CALLS_PER_DAY); it resets at midnight UTC."


def take_judge_call(project: Project) -> None:
    """Count one judge call of today; raises ModelUnavailable when the quota is used up, and then counts nothing."""
    limit = settings.QUOTA_JUDGE_CALLS_PER_DAY
    today = datetime.now(UTC).date()
    with transaction.atomic():
        row, _ = QuotaUsage.objects.get_or_create(project=project, day=today, kind=JUDGE_KIND)
        rows = QuotaUsage.objects.filter(day=today, kind=JUDGE_KIND)
        if limit is not None:
            if connection.features.has_select_for_update:
                # Every judge call of the instance waits here for a moment, so two cannot take the last one.
                list(rows.select_for_update().order_by("pk").values_list("pk"))
            if (rows.aggregate(total=Sum("used"))["total"] or 0) >= limit:
                raise ModelUnavailable(QUOTA_TEXT.format(limit=limit), "quota")
        QuotaUsage.objects.filter(pk=row.pk).update(used=F("used") + 1)
