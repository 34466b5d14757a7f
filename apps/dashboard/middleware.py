"""What every page needs: its project, and the Content-Security-Policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from apps.dashboard.current import DashboardRequest, project_of_browser

# No inline script or style, no eval, nothing from other hosts. Geometry lives in SVG attributes and CSSOM.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# The admin and the API's docs bring scripts of their own packages, which this policy would stop.
_OTHER_PAGES = ("/admin/", "/api/")


class ContentSecurityPolicyMiddleware:
    """Sends the policy with every page of the dashboard, error pages included."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Add the header unless the view set its own."""
        response = self.get_response(request)
        if not request.path.startswith(_OTHER_PAGES):
            response.headers.setdefault("Content-Security-Policy", POLICY)
            response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class ProjectMiddleware:
    """Puts `request.project` before every dashboard view; a disconnected browser is led to the connect page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pages are personal to the project cookie, so no shared cache may keep them."""
        response = self.get_response(request)
        if getattr(request, "project", None) is not None:
            response.headers.setdefault("Cache-Control", "no-store, private")
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Resolve the project for views of this app's namespace; views marked `without_project` do without."""
        match = request.resolver_match
        if match is None or match.namespace != "dashboard" or getattr(view, "without_project", False):
            return None
        project = project_of_browser(request)
        if project is None:
            connect = reverse("dashboard:connect")
            if request.headers.get("HX-Request") == "true":
                return HttpResponse(status=204, headers={"HX-Redirect": connect})
            query = urlencode({"next": request.get_full_path()}) if request.method == "GET" else ""
            return redirect(f"{connect}?{query}" if query else connect)
        cast(DashboardRequest, request).project = project
        return None


def without_project(view: Any) -> Any:
    """Mark a view that works before a project is chosen (the connect page)."""
    view.without_project = True
    return view


def back_to(request: HttpRequest, fallback: str) -> HttpResponseRedirect:
    """Redirect to the page named in `next`, only if it is one of ours."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    if not url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}, require_https=False):
        target = fallback
    return HttpResponseRedirect(target)
