"""About: versions, where data lies, and the doors that are open; and the audit log."""

from __future__ import annotations

import platform
from typing import Any

import django
from django.conf import settings
from django.core.paginator import Paginator
from django.db import connection
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.dashboard.context import Shell
from apps.dashboard.current import DashboardRequest
from apps.projects.models import AuditEvent

_PER_PAGE = 50


@require_safe
def about(request: DashboardRequest) -> HttpResponse:
    """What runs here. No secret and no path beyond the data directory is shown."""
    context: dict[str, Any] = {
        "database": "PostgreSQL" if connection.vendor == "postgresql" else "SQLite",
        "broker": "Redis / AMQP" if settings.CELERY_BROKER_URL.startswith(("redis", "amqp")) else "",
        "python": platform.python_version(),
        "django": django.get_version(),
        "base_url": Shell(request).base_url,
        "grpc_port": settings.OTLP_GRPC_PORT,
        "rate_limit": settings.RATE_LIMIT,
    }
    return render(request, "dashboard/settings/about.html", context)


@require_safe
def audit_log(request: DashboardRequest) -> HttpResponse:
    """Who changed what in this project, newest first."""
    rows = AuditEvent.objects.filter(project_uid=request.project.uid).order_by("-created_at", "-id")
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "dashboard/settings/audit.html", {"page": page})
