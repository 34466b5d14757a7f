"""Datasets: the list, and the page on which one is edited as a whole and saved as one version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Max
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.api.errors import APIError
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.datasets import DatasetForm, NewDatasetForm
from apps.datasets import selectors, wire
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.questions import splits_of
from apps.datasets.services import datasets as service
from apps.projects.models import Project

# Whoever saves on a page is named so in the history.
CREATOR = "Dashboard"
TABS = ("cases", "grading", "ci", "settings", "generate", "history")
_PAGE = 50
_HISTORY = 100


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of the list: the dataset and the number of its current version."""

    dataset: Dataset
    version: int | None


def found_or_404(project: Project, dataset_id: str) -> Dataset:
    """The dataset with its questions."""
    dataset = selectors.get_dataset(project, dataset_id)
    if dataset is None:
        raise Http404
    return dataset


@require_safe
def datasets(request: DashboardRequest) -> HttpResponse:
    """The project's datasets, newest first; search and page stand in the address."""
    search = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    every = selectors.list_datasets(request.project)
    total = every.count()
    matching = every.filter(name__icontains=search) if search else every
    count = matching.count() if search else total
    pages = max(1, -(-count // _PAGE))
    page = min(max(1, _number(request.GET.get("page"))), pages)
    rows = list(matching[(page - 1) * _PAGE : page * _PAGE])
    newest = dict(
        DatasetVersion.objects.filter(dataset__in=[row.pk for row in rows])
        .values("dataset_id")
        .annotate(n=Max("version"))
        .values_list("dataset_id", "n")
    )
    context = {
        "rows": [Listed(row, newest.get(row.pk)) for row in rows],
        "total": total,
        "count": count,
        "search": search,
        "page": page,
        "pages": pages,
        "first": (page - 1) * _PAGE + 1,
        "last": (page - 1) * _PAGE + len(rows),
    }
    part = "_list" if request.htmx and request.htmx.target == "datasets" else "list"
    return render(request, f"dashboard/datasets/{part}.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: DashboardRequest) -> HttpResponse:
    """Create a dataset from a name; its page opens for the cases."""
    form = NewDatasetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            dataset = service.create_dataset(
                project=request.project, body=form.cleaned_data, creator=CREATOR, request=request
            )
        except APIError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, _("Dataset %(name)s created.") % {"name": dataset.name})
            return redirect("dashboard:dataset", dataset_id=dataset.pk)
    return render(request, "dashboard/datasets/new.html", {"form": form}, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def dataset(request: DashboardRequest, dataset_id: str) -> HttpResponse:
    """One dataset; a POST saves the whole form as a new version. `?version=` fills the form from the history."""
    found = found_or_404(request.project, dataset_id)
    newest = selectors.current_version(found)
    wanted = request.POST.get("applied") if request.method == "POST" else request.GET.get("version")
    applied = selectors.get_version(found, wanted) if wanted else None
    content = applied.snapshot if applied is not None else wire.content(found)
    form = DatasetForm(
        request.POST or None, found=content, base=newest, applied=applied.pk if applied is not None else ""
    )
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                service.update_dataset(
                    project=request.project,
                    dataset_id=dataset_id,
                    body=form.body(),
                    base_version=form.cleaned_data["base_version"],
                    creator=CREATOR,
                    request=request,
                )
            except APIError as error:
                form.add_error(None, error.message)
                status = error.status_code
            else:
                now = selectors.current_version(found)
                said = _("Saved as version %(n)s.") % {"n": now} if now != newest else _("Nothing had changed.")
                messages.success(request, said)
                answer = redirect("dashboard:dataset", dataset_id=dataset_id)
                tab = request.POST.get("tab", "")
                if tab in TABS:
                    answer["Location"] += f"?tab={tab}"
                return answer
    return render(
        request, "dashboard/datasets/page.html", _context(request, found, newest, form, applied), status=status
    )


def _context(
    request: DashboardRequest, found: Dataset, newest: int | None, form: DatasetForm, applied: DatasetVersion | None
) -> dict[str, Any]:
    tab = request.POST.get("tab") or request.GET.get("tab") or ""
    history = list(selectors.versions(found)[: _HISTORY + 1])
    return {
        "dataset": found,
        "newest": newest,
        "next_version": 0 if newest is None else newest + 1,
        "form": form,
        "tab": tab if tab in TABS else TABS[0],
        "applied": applied,
        "changed": applied is not None or form.is_bound,
        "splits": splits_of(found.questions),
        "history": history[:_HISTORY],
        "older": len(history) > _HISTORY,
    }


@require_POST
def remove(request: DashboardRequest, dataset_id: str) -> HttpResponse:
    """Delete a dataset; one that is in use stays, and the reason is told."""
    name = found_or_404(request.project, dataset_id).name
    try:
        service.delete_dataset(project=request.project, dataset_id=dataset_id, request=request)
    except APIError as error:
        messages.error(request, error.message)
        return redirect("dashboard:dataset", dataset_id=dataset_id)
    messages.success(request, _("Dataset %(name)s deleted. Its runs stay.") % {"name": name})
    return redirect("dashboard:datasets")


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 1
