"""Monitoring defaults of the project: topics and retention."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.settings import MonitoringForm
from apps.projects.services.settings import monitoring_defaults_of, update_monitoring_defaults


@require_http_methods(["GET", "HEAD", "POST"])
def monitoring(request: DashboardRequest) -> HttpResponse:
    """Show and save the defaults."""
    row = monitoring_defaults_of(request.project)
    form = MonitoringForm(
        request.POST or None,
        initial={
            "topics_enabled": row.topics_enabled,
            "topics_percent": f"{row.topics_sample_rate * 100:.6g}",
            "retention_days": max(0, row.retention_days),
        },
    )
    if request.method == "POST" and form.is_valid():
        update_monitoring_defaults(project=request.project, changes=form.changes(), request=request)
        messages.success(request, _("Monitoring defaults saved."))
        return redirect("dashboard:settings_monitoring")
    return render(request, "dashboard/settings/monitoring.html", {"form": form}, status=400 if form.is_bound else 200)
