"""Overview: key figures, charts and what failed most; before the first trace, the way to it."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.analytics.filters import FILTER_NAMES, STATUS_NAMES, MetricFilters
from apps.core.windows import DEFAULT_NAME, NAMED, parse_free
from apps.dashboard import guides
from apps.dashboard.current import DashboardRequest, remember
from apps.dashboard.overview import Overview
from apps.dashboard.quickstart import quickstart
from apps.operations.demo import demo_progress, start_demo
from apps.tracing import selectors as tracing


def chosen_window(request: DashboardRequest) -> str:
    """The window in the address; anything unknown reads as 7 days."""
    name = request.GET.get("window", "")
    return name if name in NAMED else DEFAULT_NAME


def chosen_filters(request: DashboardRequest) -> MetricFilters:
    """The traffic filters of the address; an unknown status is left out rather than refused."""
    given = {name: request.GET.get(name, "")[:500] for name in FILTER_NAMES}
    if given["status"].strip().lower() not in STATUS_NAMES:
        given["status"] = ""
    return MetricFilters.from_query(given)


@require_safe
def overview(request: DashboardRequest) -> HttpResponse:
    """The Overview; htmx gets only the region that changes with window and filters."""
    progress = demo_progress()
    loading = progress.running and progress.project_id == request.project.uid
    if not loading and not tracing.count_spans(request.project):
        return _first_use(request)
    page = Overview(request.project, parse_free(chosen_window(request)), chosen_filters(request))
    part = "_figures" if request.htmx and request.htmx.target == "overview" else "page"
    return render(
        request,
        f"dashboard/overview/{part}.html",
        {
            "page": page,
            "windows": list(NAMED),
            "demo": progress if loading else None,
            "is_demo": progress.project_id == request.project.uid and not request.project.is_default,
        },
    )


@require_safe
def waiting(request: DashboardRequest) -> HttpResponse:
    """Asked every two seconds by the first-use page; reloads it once a trace is stored."""
    arrived = tracing.count_spans(request.project) > 0
    return HttpResponse(status=204, headers={"HX-Refresh": "true"} if arrived else None)


@require_POST
def demo(request: DashboardRequest) -> HttpResponse:
    """Load the demo in the background and move this browser to its project."""
    progress = start_demo()
    response = redirect("dashboard:overview")
    if progress.project_id:
        remember(response, progress.project_id, secure=bool(settings.SESSION_COOKIE_SECURE))
    return response


@require_safe
def demo_state(request: DashboardRequest) -> HttpResponse:
    """The progress banner; asks again while the load runs and reloads the page when it is done."""
    progress = demo_progress()
    if progress.state == "done":
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return render(request, "dashboard/overview/_demo.html", {"demo": progress})


def _first_use(request: DashboardRequest) -> HttpResponse:
    return render(request, "dashboard/overview/empty.html", quickstart(request) | {"guides": guides.GUIDES})
