"""Guides: how to trace with each supported framework, with snippets for this server."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.dashboard import guides
from apps.dashboard.context import Shell
from apps.dashboard.current import DashboardRequest


@require_safe
def guide(request: DashboardRequest, slug: str = "python") -> HttpResponse:
    """One guide beside the list of all; 404 for a name that has none."""
    chosen = guides.BY_SLUG.get(slug)
    if chosen is None:
        raise Http404
    base_url = Shell(request).base_url
    port = settings.OTLP_GRPC_PORT
    steps = [
        (step, guides.fill(step.code, base_url=base_url, grpc_port=port))
        for step in guides.steps_of(chosen, grpc_port=port)
    ]
    return render(
        request,
        "dashboard/guides/guide.html",
        {"guide": chosen, "groups": list(guides.grouped()), "steps": steps, "masked_key": guides.MASKED_KEY},
    )
