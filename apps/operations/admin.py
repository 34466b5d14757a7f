"""The operators' front page, and the schedule of background work."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db import connection
from django.db.models import Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django_celery_beat.admin import CrontabScheduleAdmin as BeatCrontabAdmin
from django_celery_beat.admin import IntervalScheduleAdmin as BeatIntervalAdmin
from django_celery_beat.admin import PeriodicTaskAdmin as BeatTaskAdmin
from django_celery_beat.admin import PeriodicTaskForm as BeatTaskForm
from django_celery_beat.admin import TaskSelectWidget as BeatTaskSelect
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from apps.core.times import from_ms, now_ms
from apps.projects.models import ApiKey, Project, QuotaUsage
from apps.projects.selectors import audit_events
from apps.tracing.models import Agent, Grain, Rollup, Status
from apps.tracing.rollups.fold import settle
from config.version import VERSION

for _model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
    admin.site.unregister(_model)


_CHART_OPTIONS = {
    "barPercentage": 0.8,
    "maintainAspectRatio": False,
    "plugins": {"legend": {"display": True, "align": "end", "position": "top"}},
    "scales": {
        "x": {"stacked": True, "grid": {"display": False}},
        "y": {"stacked": True, "beginAtZero": True, "ticks": {"precision": 0}},
    },
}


class TaskSelect(UnfoldAdminSelectWidget, BeatTaskSelect):
    """The names of the registered tasks, in this site's look."""


class PeriodicTaskForm(BeatTaskForm):
    """django-celery-beat's form in this site's look."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "task" in self.fields:
            self.fields["task"].widget = UnfoldAdminTextInputWidget()
        if "regtask" in self.fields:
            self.fields["regtask"].widget = TaskSelect()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(BeatTaskAdmin, ModelAdmin):
    """Background work and when it runs; a switched-off task does not run."""

    form = PeriodicTaskForm


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(BeatIntervalAdmin, ModelAdmin):
    """Every so often."""


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(BeatCrontabAdmin, ModelAdmin):
    """At these times."""


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Figures of the front page: a fixed number of queries over aggregates, none over spans."""
    day = _last_24_hours()
    context["cards"] = [
        _card(
            _("Traces, 24 h"), f"{day['roots']:,}", _("root spans"), "tracing_span_changelist", "?row=trace&since=24h"
        ),
        _card(
            _("Failed, 24 h"),
            f"{day['failed']:,}",
            _("traces with an error"),
            "tracing_span_changelist",
            f"?row=trace&since=24h&status__exact={Status.ERROR.value}",
        ),
        _card(_("Spans, 24 h"), f"{day['spans']:,}", _("all rows"), "tracing_span_changelist", "?since=24h"),
        _card(_("Cost, 24 h"), f"${day['cost']:,.2f}", _("where priced"), "llm_catalogmodel_changelist"),
        _card(
            _("Projects"),
            f"{Project.objects.filter(deleting=False).count():,}",
            _("live"),
            "projects_project_changelist",
        ),
        _card(
            _("Keys"),
            f"{ApiKey.objects.filter(revoked_at=None).count():,}",
            _("live"),
            "projects_apikey_changelist",
        ),
        _card(_("Agents"), f"{Agent.objects.count():,}", _("registered"), "tracing_agent_changelist"),
        _card(
            _("Root traces today"),
            f"{_quota_used():,}",
            _("counted for quotas"),
            "projects_quotausage_changelist",
        ),
    ]
    context["chart"] = _chart(day)
    context["chart_options"] = json.dumps(_CHART_OPTIONS)
    context["audit_table"] = {
        "headers": [_("When"), _("Action"), _("Actor"), _("Target"), _("Fields")],
        "rows": [
            [
                f"{event.created_at:%Y-%m-%d %H:%M:%S}",
                event.action,
                f"{event.actor_type} {event.actor_email or event.actor_id}".strip(),
                f"{event.target_type} {event.target_id}".strip() or "–",
                event.summary or "–",
            ]
            for event in audit_events(limit=8)
        ],
    }
    context["audit_url"] = reverse("admin:projects_auditevent_changelist")
    context["facts"] = [
        (_("Version"), VERSION),
        (_("Database"), f"{connection.vendor}, {_database_size()}"),
    ]
    return context


def _card(title: str, value: str, note: str, name: str, query: str = "") -> dict[str, str]:
    return {"title": title, "value": value, "note": note, "url": reverse(f"admin:{name}") + query}


def _last_24_hours() -> dict[str, Any]:
    """Sums over all projects, and root traces by the hour."""
    settle()
    now = now_ms() // 1000
    since = (now - 24 * 3600) // 300 * 300
    first_hour = since // 3600
    hours = now // 3600 - first_hour + 1
    result: dict[str, Any] = {"roots": 0, "failed": 0, "spans": 0, "cost": 0.0, "first_hour": first_hour}
    result["by_hour"] = {Status.OK.value: [0] * hours, Status.ERROR.value: [0] * hours}
    rows = (
        Rollup.objects.filter(grain=Grain.FIVE_MINUTES, bucket__gte=since)
        .values_list("bucket", "is_root", "status")
        .annotate(Sum("spans"), Sum("cost_usd"))
        .order_by()
    )
    for bucket, is_root, status, spans, cost in rows:
        result["spans"] += spans
        result["cost"] += cost
        if is_root:
            result["roots"] += spans
            result["failed"] += spans if status == Status.ERROR else 0
            hour = bucket // 3600 - first_hour
            if 0 <= hour < hours:
                result["by_hour"][status][hour] += spans
    return result


def _chart(day: dict[str, Any]) -> str:
    """Root traces by hour as chart data."""
    counts = day["by_hour"]
    labels = [f"{from_ms((day['first_hour'] + index) * 3_600_000):%H:00}" for index in range(len(counts[0]))]
    return json.dumps(
        {
            "labels": labels,
            "datasets": [
                {
                    "label": _("Succeeded"),
                    "data": counts[Status.OK.value],
                    "backgroundColor": "var(--color-primary-400)",
                },
                {"label": _("Failed"), "data": counts[Status.ERROR.value], "backgroundColor": "var(--color-red-500)"},
            ],
        }
    )


def _quota_used() -> int:
    used = QuotaUsage.objects.filter(day=timezone.now().date(), kind="traces").aggregate(total=Sum("used"))["total"]
    return int(used or 0)


def _database_size() -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        size = float(cursor.fetchone()[0])
    return f"{size / 1_000_000:,.1f} MB"
