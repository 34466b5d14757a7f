"""The project a page acts on: the one whose uid the browser's cookie holds, else the default project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse

from apps.core.ids import is_id
from apps.projects.models import Project
from apps.projects.services.projects import ensure_default_project

if TYPE_CHECKING:
    from django_htmx.middleware import HtmxDetails

COOKIE = "agentx_project"
DISCONNECTED = "-"
_YEAR = 365 * 24 * 3600


class DashboardRequest(HttpRequest):
    """What a page's view gets: the project is there, the htmx details too."""

    project: Project
    htmx: HtmxDetails


def project_of_browser(request: HttpRequest) -> Project | None:
    """The project of this browser; None once it has disconnected.

    A cookie that names no live project any more (deleted, another installation) falls back to the default project.
    """
    uid = request.COOKIES.get(COOKIE, "")
    if uid == DISCONNECTED:
        return None
    projects = Project.objects.filter(deleting=False).select_related("organization")
    if uid:
        project = projects.filter(uid=uid).first() if is_id(uid) else None
        if project is not None:
            return project
    return projects.filter(is_default=True).first() or ensure_default_project()[0]


def remember(response: HttpResponse, uid: str, *, secure: bool) -> None:
    """Keep the project in the browser. The cookie holds the public uid, never a key, and no script can read it."""
    response.set_cookie(COOKIE, uid, max_age=_YEAR, httponly=True, samesite="Lax", secure=secure)
