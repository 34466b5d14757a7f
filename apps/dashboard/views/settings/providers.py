"""LLM Providers: keys of the whole instance, shown masked, and the platform model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.settings import PROVIDER_NAMES, PlatformModelForm, ProviderKeyForm
from apps.llm.selectors import catalog_rows
from apps.llm.services import openrouter
from apps.llm.services.platform_model import platform_model, set_platform_model
from apps.llm.services.provider_keys import PROVIDERS, key_source, masked_keys, save_provider_keys


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider as the page shows it; the key only masked."""

    slug: str
    name: str
    masked: str | None
    source: str | None
    variable: str
    form: ProviderKeyForm
    is_open: bool


def _page(
    request: DashboardRequest,
    *,
    key_form: ProviderKeyForm | None = None,
    model_form: PlatformModelForm | None = None,
    status: int = 200,
) -> HttpResponse:
    states = masked_keys()
    rows = []
    for slug, provider in PROVIDERS.items():
        bound = key_form is not None and key_form.data.get("provider") == slug
        form = (
            key_form
            if bound and key_form is not None
            else ProviderKeyForm(initial={"provider": slug}, auto_id=f"id_{slug}_%s")
        )
        rows.append(
            ProviderRow(
                slug, PROVIDER_NAMES[slug], states[slug]["masked"], key_source(slug), provider.variable, form, bound
            )
        )
    context: dict[str, Any] = {
        "providers": rows,
        "models": catalog_rows(),
        "with_openrouter": states["openrouter"]["configured"],
        "model_form": model_form or PlatformModelForm(initial={"model": platform_model()}),
    }
    return render(request, "dashboard/settings/providers.html", context, status=status)


@require_safe
def providers(request: DashboardRequest) -> HttpResponse:
    """The providers with the state of their keys."""
    return _page(request)


@require_POST
def save_key(request: DashboardRequest) -> HttpResponse:
    """Save one provider's key; it acts at once."""
    slug = request.POST.get("provider", "")
    form = ProviderKeyForm(request.POST, auto_id=f"id_{slug}_%s" if slug in PROVIDERS else "id_%s")
    if not form.is_valid():
        return _page(request, key_form=form, status=400)
    save_provider_keys(keys={slug: form.cleaned_data["key"]}, project=request.project, request=request)
    openrouter.forget()
    messages.success(request, _("Key of %(provider)s saved.") % {"provider": PROVIDER_NAMES[slug]})
    return redirect("dashboard:settings_providers")


@require_POST
def clear_key(request: DashboardRequest) -> HttpResponse:
    """Remove a saved key; one from the environment, if any, serves again."""
    slug = request.POST.get("provider", "")
    if slug in PROVIDERS:
        save_provider_keys(keys={slug: None}, project=request.project, request=request)
        messages.success(request, _("Saved key of %(provider)s removed.") % {"provider": PROVIDER_NAMES[slug]})
    return redirect("dashboard:settings_providers")


@require_safe
def openrouter_options(request: DashboardRequest) -> HttpResponse:
    """OpenRouter's models as options of the picker; asked for after the page has loaded, so that it never waits."""
    return render(request, "dashboard/settings/_openrouter.html", {"models": openrouter.openrouter_models()})


@require_http_methods(["POST"])
def save_platform_model(request: DashboardRequest) -> HttpResponse:
    """Change the platform model of the whole instance."""
    form = PlatformModelForm(request.POST)
    if not form.is_valid():
        return _page(request, model_form=form, status=400)
    model = set_platform_model(model_id=form.cleaned_data["model"].strip(), project=request.project, request=request)
    messages.success(request, _("Platform model is now %(model)s.") % {"model": model})
    return redirect("dashboard:settings_providers")
