"""API access: the project's key, shown only when asked for, and its replacement."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from apps.analytics import selectors as analytics
from apps.core.times import now_ms
from apps.dashboard import guides
from apps.dashboard.context import Shell
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.settings import ConfirmForm
from apps.projects.models import ApiKey
from apps.projects.services.keys import primary_key_of, regenerate_key

_RECENT = timedelta(hours=1)


def _key_row(request: DashboardRequest) -> ApiKey | None:
    return request.project.api_keys.filter(is_primary=True, revoked_at=None).order_by("-created_at").first()


def _context(request: DashboardRequest, form: ConfirmForm) -> dict[str, object]:
    base_url = Shell(request).base_url
    ways = []
    for slug, step in (("python", 0), ("opentelemetry", 0), ("http", 0)):
        guide = guides.BY_SLUG[slug]
        code = guides.fill(guide.steps[step].code, base_url=base_url, grpc_port=settings.OTLP_GRPC_PORT)
        ways.append({"slug": slug, "name": guide.name, "code": code})
    since = now_ms() - int(_RECENT.total_seconds() * 1000)
    return {
        "key": _key_row(request),
        "base_url": base_url,
        "ways": ways,
        "masked_key": guides.MASKED_KEY,
        "form": form,
        "dependents": analytics.active_agent_names(request.project, since),
        "show_dialog": form.is_bound,
    }


@require_safe
def access(request: DashboardRequest) -> HttpResponse:
    """The masked key, how to connect, and the way to a new key."""
    form = ConfirmForm(expected=request.project.name)
    return render(request, "dashboard/settings/access.html", _context(request, form))


@require_POST
@never_cache
def reveal_key(request: DashboardRequest) -> JsonResponse:
    """`{ "key" }` for the page's Show and Copy buttons. A POST, so that neither address bar nor cache ever holds it."""
    key = primary_key_of(request.project)
    if not key:
        return JsonResponse({"error": _("The key cannot be read any more. Regenerate it.")}, status=409)
    return JsonResponse({"key": key})


@require_POST
def regenerate(request: DashboardRequest) -> HttpResponse:
    """Replace the key once the project's name was typed; the old one is dead at once."""
    form = ConfirmForm(request.POST, expected=request.project.name)
    if not form.is_valid():
        return render(request, "dashboard/settings/access.html", _context(request, form), status=400)
    regenerate_key(project=request.project)
    messages.success(request, _("New key made. Agents that send the old one are refused from now on."))
    return redirect("dashboard:settings")
