"""Datasets as files, and cases that a model writes from a text. Nothing is stored before a person agreed."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.api.errors import APIError
from apps.dashboard.current import DashboardRequest
from apps.dashboard.views.datasets import CREATOR, found_or_404
from apps.datasets import selectors
from apps.datasets.services import csv_files, datasets, drafting, json_files
from apps.llm.services.platform_model import platform_model

_SHOWN = 10
_WARNINGS = 100


@require_safe
def export(request: DashboardRequest, dataset_id: str, form: str) -> HttpResponseBase:
    """The dataset as JSON, or its cases as CSV."""
    dataset = found_or_404(request.project, dataset_id)
    name = f"{slugify(dataset.name) or 'dataset'}.{form}"
    answer: HttpResponseBase
    if form == "csv":
        answer = StreamingHttpResponse(csv_files.lines(dataset.questions), content_type="text/csv; charset=utf-8")
    elif form == "json":
        answer = HttpResponse(json_files.dump(dataset), content_type="application/json")
    else:
        raise Http404
    answer["Content-Disposition"] = f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
def bring(request: DashboardRequest) -> HttpResponse:
    """Import a file: the first POST shows what it holds, the second one, with `payload`, stores that."""
    into = request.POST.get("into") or request.GET.get("into") or ""
    target = found_or_404(request.project, into) if into else None
    context: dict[str, Any] = {"target": target, "name": request.POST.get("name", "").strip()[:300]}
    status = 200
    if request.method == "POST":
        try:
            if "payload" in request.POST:
                return _store(request, request.POST["payload"], context)
            context |= _preview(request, context)
        except APIError as error:
            context["error"] = error.message
            status = 400
    return render(request, "dashboard/datasets/import.html", context, status=status)


def _preview(request: DashboardRequest, context: dict[str, Any]) -> dict[str, Any]:
    file = request.FILES.get("file")
    if file is None:
        raise APIError(_("Choose a file first."))
    if (file.size or 0) > csv_files.MAX_BYTES:
        raise APIError(_("The file has more than %(n)d MB.") % {"n": csv_files.MAX_BYTES // 1024 // 1024}, 413)
    data = file.read()
    file_name = PurePath(file.name or "").name
    if file_name.lower().endswith((".json", ".jsonl", ".ndjson")) or data.lstrip()[:1] in (b"{", b"["):
        if context["target"] is not None:
            raise APIError(_("A JSON file holds whole datasets. Import it from the list of datasets."))
        rows = json_files.read(data)
        found = [(row["name"], len(row["questions"]) if isinstance(row.get("questions"), list) else 0) for row in rows]
        return {"ready": True, "kind": "json", "found": found, "payload": json.dumps({"datasets": rows})}
    parsed = csv_files.parse(data)
    return {
        "ready": bool(parsed.cases),
        "kind": "csv",
        "name": context["name"] or PurePath(file_name).stem[:300] or _("Imported cases"),
        "cases": parsed.cases[:_SHOWN],
        "count": len(parsed.cases),
        "warnings": parsed.warnings[:_WARNINGS],
        "more": max(0, len(parsed.warnings) - _WARNINGS),
        "bad": len(parsed.bad_rows),
        "payload": json.dumps({"cases": parsed.cases}) if parsed.cases else "",
    }


def _store(request: DashboardRequest, payload: str, context: dict[str, Any]) -> HttpResponse:
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise APIError(_("The preview could not be read. Choose the file again."))
    if isinstance(found.get("datasets"), list):
        rows = [row for row in found["datasets"] if isinstance(row, dict)]
        made = [
            datasets.import_dataset(project=request.project, row=row, creator=CREATOR, request=request) for row in rows
        ]
        text = ngettext("%(n)d dataset imported.", "%(n)d datasets imported.", len(made)) % {"n": len(made)}
        messages.success(request, text)
        return redirect("dashboard:dataset", made[0].pk) if len(made) == 1 else redirect("dashboard:datasets")
    kept = found.get("cases")
    cases: list[Any] = kept if isinstance(kept, list) else []
    target = context["target"]
    if target is None:
        body = {"name": context["name"] or _("Imported cases"), "questions": cases}
        target = datasets.create_dataset(
            project=request.project, body=body, creator=CREATOR, request=request, action="dataset.import"
        )
    else:
        datasets.update_dataset(
            project=request.project,
            dataset_id=target.pk,
            body={"questions": [*target.questions, *cases]},
            base_version=selectors.current_version(target),
            creator=CREATOR,
            request=request,
        )
    messages.success(request, ngettext("%(n)d case imported.", "%(n)d cases imported.", len(cases)) % {"n": len(cases)})
    return redirect("dashboard:dataset", target.pk)


@require_POST
def generate(request: DashboardRequest, dataset_id: str) -> HttpResponse:
    """Cases from a text as a checklist; the page appends what is kept, and the person saves."""
    found_or_404(request.project, dataset_id)
    count = request.POST.get("count", "")
    context: dict[str, Any] = {"model": platform_model()}
    try:
        context |= drafting.synthesize_cases(
            project=request.project,
            source_text=request.POST.get("source_text", ""),
            count=int(count) if count.isascii() and count.isdigit() else None,
            guidance=request.POST.get("guidance", ""),
            dataset_id=dataset_id,
        )
    except APIError as error:
        context["error"] = error.message
    return render(request, "dashboard/datasets/_generated.html", context)
