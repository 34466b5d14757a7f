"""What belongs to no single page: connecting, the project switcher, preferences, the palette, error pages."""

from __future__ import annotations

import sys
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.api.errors import DATABASE_UNAVAILABLE
from apps.core.ids import is_id
from apps.dashboard.current import DISCONNECTED, DashboardRequest, project_of_browser, remember
from apps.dashboard.middleware import back_to, without_project
from apps.dashboard.search import find
from apps.projects.models import Project
from apps.projects.services.keys import project_for_key
from apps.projects.services.projects import ensure_default_project

_PREFERENCES = {
    "theme": ("light", "dark", ""),
    "density": ("compact", "roomy", ""),
    "sidebar": ("rail", ""),
    "keys": ("off", ""),
}
_YEAR = 365 * 24 * 3600


def _home() -> str:
    return reverse("dashboard:home")


@without_project
@require_http_methods(["GET", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """The manual connect screen: the default project with one click, or any project by its key (source 1:2012-2017)."""
    error = ""
    if request.method == "POST":
        key = request.POST.get("key", "").strip()
        if not key:
            project: Project | None = ensure_default_project()[0]
        else:
            project = project_for_key(key)
        if project is not None:
            response = back_to(request, _home())
            remember(response, project.uid, secure=bool(settings.SESSION_COOKIE_SECURE))
            return response
        error = _("No project has this key. The key of the default project stands in the server's start-up log.")
    return render(
        request,
        "dashboard/shell/connect.html",
        {"error": error, "next": request.GET.get("next") or request.POST.get("next") or ""},
        status=400 if error else 200,
    )


@without_project
@require_POST
def disconnect(request: HttpRequest) -> HttpResponse:
    """Forget the project in this browser and show the connect screen (source 1:2015)."""
    response = redirect("dashboard:connect")
    remember(response, DISCONNECTED, secure=bool(settings.SESSION_COOKIE_SECURE))
    return response


@require_POST
def switch_project(request: HttpRequest) -> HttpResponse:
    """Move this browser to another project and open its first page: the old one's ids mean nothing there."""
    uid = request.POST.get("project", "")
    project = Project.objects.filter(uid=uid, deleting=False).first() if is_id(uid) else None
    response = redirect(_home())
    if project is None:
        messages.error(request, _("This project is gone. Choose another one."))
    else:
        remember(response, project.uid, secure=bool(settings.SESSION_COOKIE_SECURE))
    return response


@without_project
@require_POST
def preferences(request: HttpRequest) -> HttpResponse:
    """Keep theme, density, folded sidebar or the single-key switch in cookies of this browser."""
    response: HttpResponse
    if request.headers.get("Accept", "").startswith("application/json"):
        response = JsonResponse({"ok": True})
    else:
        response = back_to(request, _home())
    for name, allowed in _PREFERENCES.items():
        value = request.POST.get(name)
        if value is not None and value in allowed:
            response.set_cookie(f"agentx_{name}", value, max_age=_YEAR if value else 0, samesite="Lax")
    return response


@require_safe
def palette(request: HttpRequest) -> HttpResponse:
    """Results of the command palette that need the database, as HTML options for its list."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    project = cast(DashboardRequest, request).project
    return render(request, "dashboard/shell/palette_results.html", {"results": find(project, text) if text else []})


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: JSON under /api/, a page elsewhere."""
    if request.path.startswith("/api/"):
        return JsonResponse({"error": "Not found"}, status=404)
    _give_project(request)
    return render(request, "404.html", {"reason": str(exception) if exception.args else ""}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 503 while the database is away: the page depends on nothing that may just have failed."""
    away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    status, text = (503, DATABASE_UNAVAILABLE) if away else (500, "Internal server error")
    response: HttpResponse
    if request.path.startswith("/api/"):
        response = JsonResponse({"error": text}, status=status)
    else:
        response = render(request, "500.html", status=status)
    if away:
        response.headers["Retry-After"] = "2"
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 of a form whose token does not match, most often a page left open over a restart."""
    return render(request, "403.html", {"reason": reason}, status=403)


def _give_project(request: HttpRequest) -> None:
    if getattr(request, "project", None) is None:
        project = project_of_browser(request)
        if project is not None:
            cast(DashboardRequest, request).project = project
