"""The history of a dataset: what a version changed, and removing an older one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.core.api.errors import APIError
from apps.dashboard.content_diff import diff
from apps.dashboard.current import DashboardRequest
from apps.dashboard.views.datasets import found_or_404
from apps.datasets import selectors
from apps.datasets.services import datasets as service


@require_safe
def version(request: DashboardRequest, dataset_id: str, version_id: str) -> HttpResponse:
    """One version against the one before it, or with `?against=current` against the current one."""
    dataset = found_or_404(request.project, dataset_id)
    row = selectors.get_version(dataset, version_id)
    if row is None:
        raise Http404
    newest = selectors.current_version(dataset)
    against = request.GET.get("against") == "current" and row.version != newest
    if against:
        other = dataset.versions.filter(version=newest).first() if newest is not None else None
    else:
        other = dataset.versions.filter(version__lt=row.version).order_by("-version").first()
    if other is None:
        parts = []
    elif against:
        parts = diff(row.snapshot, other.snapshot, service.TRACKED)
    else:
        parts = diff(other.snapshot, row.snapshot, service.TRACKED)
    context = {"dataset": dataset, "row": row, "newest": newest, "other": other, "against": against, "parts": parts}
    return render(request, "dashboard/datasets/version.html", context)


@require_POST
def remove_version(request: DashboardRequest, dataset_id: str, version_id: str) -> HttpResponse:
    """Remove an older version; the current one stays."""
    try:
        service.delete_version(project=request.project, dataset_id=dataset_id, version_id=version_id, request=request)
    except APIError as error:
        if error.status_code == 404:
            raise Http404 from None
        messages.error(request, error.message)
    else:
        messages.success(request, _("Version deleted."))
    answer = redirect("dashboard:dataset", dataset_id=dataset_id)
    answer["Location"] += "?tab=history"
    return answer
