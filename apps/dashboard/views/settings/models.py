"""Models and prices: the catalog behind trace cost, with dated prices, models without one, and re-pricing on demand."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.api.errors import APIError
from apps.core.jobs import enqueue
from apps.core.outbound import OutboundRefused, check_url
from apps.core.times import now_ms
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.settings import ModelForm
from apps.llm.selectors import CatalogRow, catalog_rows
from apps.llm.services.catalog import ModelFields, Rates, create_model, delete_model, update_model
from apps.llm.services.connection import ConnectionState, try_connection
from apps.llm.services.usage import unpriced_models

_DAY_MS = 24 * 3_600_000


def _row(model_id: str) -> CatalogRow:
    rows = catalog_rows(model_id=model_id)
    if not rows:
        raise Http404
    return rows[0]


def _reprice(request: DashboardRequest, days: int | None) -> None:
    """Start pricing this project's last days anew in the background, when somebody asked for it."""
    if not days:
        return
    now = now_ms()
    enqueue(
        "apps.tracing.tasks.reprice_spans",
        project_pk=request.project.pk,
        since_ms=now - days * _DAY_MS,
        until_ms=now + _DAY_MS,
    )
    messages.info(request, _("The last %(n)d days are priced anew in the background.") % {"n": days})


def _plain(value: float | None) -> str | None:
    """A price without trailing zeros, as a person would type it."""
    return None if value is None else f"{value:.10g}"


@require_safe
def models(request: DashboardRequest) -> HttpResponse:
    """The catalog, and the models of recent traffic that have no price."""
    return render(
        request,
        "dashboard/settings/models.html",
        {"rows": catalog_rows(), "unpriced": unpriced_models(project=request.project)},
    )


@require_http_methods(["GET", "HEAD", "POST"])
def new_model(request: DashboardRequest) -> HttpResponse:
    """Add a model; `?id=` fills the id of one that traffic already names."""
    named = request.GET.get("id", "").strip()[:200]
    form = ModelForm(
        request.POST or None, initial={"model_id": named, "label": named, "provider": guess_provider(named)}
    )
    if request.method == "POST" and form.is_valid():
        try:
            model = create_model(
                model_id=form.cleaned_data["model_id"],
                fields=form.model_fields(),
                rates=form.rates(),
                effective_from=form.valid_from(),
                project=request.project,
                request=request,
            )
        except APIError as error:
            form.add_error("model_id", str(error))
        else:
            messages.success(request, _("Model %(model)s added.") % {"model": model.model_id})
            _reprice(request, form.cleaned_data["reprice_days"])
            return redirect("dashboard:settings_models")
    return render(request, "dashboard/settings/model_form.html", {"form": form}, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def edit_model(request: DashboardRequest, model_id: str) -> HttpResponse:
    """Change a model; prices that differ become a new dated price."""
    row = _row(model_id)
    price = row.price
    initial: dict[str, Any] = {
        "model_id": row.model.model_id,
        "label": row.model.label,
        "provider": row.model.provider,
        "base_url": row.model.base_url,
        "is_default": row.model.is_default,
        "input_price": _plain(price.input_per_m) if price else None,
        "output_price": _plain(price.output_per_m) if price else None,
        "cache_read_price": _plain(price.cache_read_per_m) if price else None,
        "cache_write_price": _plain(price.cache_write_per_m) if price else None,
    }
    form = ModelForm(request.POST or None, initial=initial, existing=row.model)
    if request.method == "POST" and form.is_valid():
        try:
            update_model(
                model_id=row.model.model_id,
                fields=form.model_fields(),
                rates=form.rates(),
                effective_from=form.valid_from(),
                project=request.project,
                request=request,
            )
        except APIError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("Model %(model)s saved.") % {"model": row.model.model_id})
            _reprice(request, form.cleaned_data["reprice_days"])
            return redirect("dashboard:settings_models")
    return render(
        request,
        "dashboard/settings/model_form.html",
        {"form": form, "row": row, "history": row.history[::-1]},
        status=400 if form.is_bound else 200,
    )


@require_POST
def check_endpoint(request: DashboardRequest) -> HttpResponse:
    """Try a custom endpoint with what stands in the form, before it is saved; answers a banner."""
    url = request.POST.get("base_url", "").strip()
    model = (request.POST.get("model_id") or request.POST.get("existing_id") or "").strip()[:200]
    state: ConnectionState = {"live": False}
    if not url or not model:
        state["error"] = _("Fill in the model id and the base URL first.")
    else:
        try:
            check_url(url)
        except OutboundRefused as error:
            state["error"] = str(error)
        else:
            key = request.POST.get("api_key", "").strip()
            state = try_connection(base_url=url, model_id=model, api_key=key or None)
    return render(request, "dashboard/settings/_connection.html", {"state": state})


@require_POST
def remove_model(request: DashboardRequest, model_id: str) -> HttpResponse:
    """Take a model out of the catalog; stored costs stay."""
    try:
        delete_model(model_id=model_id, project=request.project, request=request)
    except APIError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Model %(model)s removed. Stored costs stay.") % {"model": model_id})
    return redirect("dashboard:settings_models")


@require_POST
def make_default(request: DashboardRequest, model_id: str) -> HttpResponse:
    """Make a model the one of judges that name none."""
    row = _row(model_id)
    update_model(
        model_id=row.model.model_id,
        fields=dataclasses.replace(ModelFields(), is_default=True),
        rates=Rates(),
        project=request.project,
        request=request,
    )
    messages.success(request, _("%(model)s is the default now.") % {"model": row.model.model_id})
    return redirect("dashboard:settings_models")


def guess_provider(model_id: str) -> str:
    """The provider whose models are called like this; custom when none is."""
    name = model_id.lower()
    for prefixes, provider in (
        (("gpt", "o1", "o3", "o4", "text-embedding", "chatgpt"), "openai"),
        (("claude",), "anthropic"),
        (("gemini", "gemma"), "gemini"),
    ):
        if name.startswith(prefixes):
            return provider
    return "custom" if name else "openai"
