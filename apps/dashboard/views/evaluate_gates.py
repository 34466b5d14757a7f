"""CI Gates: the recorded verdicts, a preview that records nothing, and the texts that set a gate up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from apps.core.api.errors import APIError
from apps.dashboard import ci_snippets
from apps.dashboard.context import Shell
from apps.dashboard.current import DashboardRequest
from apps.dashboard.highlight import highlight
from apps.evaluations import browse
from apps.evaluations.models import GateVerdict
from apps.evaluations.services import gates as service

VERDICTS = (("", _("All")), ("failed", _("Failed")), ("passed", _("Passed")))
CHECKS = {"fail-under": _("average"), "no-regression": _("no regression")}


@dataclass(frozen=True, slots=True)
class ListedGate:
    """A row of the history."""

    row: GateVerdict

    @property
    def checks(self) -> list[str]:
        """The checks that ran, in words."""
        names = [str(item.get("check") or "") for item in self.row.checks if isinstance(item, dict)]
        return [str(CHECKS.get(name, name)) for name in names]

    @property
    def details(self) -> list[dict[str, Any]]:
        """The checks with what they found."""
        return [item for item in self.row.checks if isinstance(item, dict)]

    @property
    def scorer(self) -> str:
        """The scorer that was gated when it was not the run's own rating."""
        gated = self.row.gated_scorer
        return str(gated.get("name") or "") if isinstance(gated, dict) else ""


@require_safe
def gates(request: DashboardRequest) -> HttpResponse:
    """Recorded gates, newest first, with the preview and the set-up texts beside them."""
    given = request.GET
    verdict = given.get("verdict", "")
    verdict = verdict if verdict in ("failed", "passed") else ""
    rows, next_cursor = browse.list_gates(
        request.project, passed=None if not verdict else verdict == "passed", cursor=given.get("cursor", "")
    )
    datasets = browse.datasets_with_runs(request.project)
    known = dict(datasets)
    dataset = given.get("dataset", "")
    dataset = dataset if dataset in known else (datasets[0][0] if datasets else "")
    slug = given.get("snippet", "")
    snippet = next((item for item in ci_snippets.SNIPPETS if item.slug == slug), ci_snippets.SNIPPETS[0])
    context = {
        "rows": [ListedGate(row) for row in rows],
        "next_cursor": next_cursor,
        "first_page": not given.get("cursor"),
        "verdict": verdict,
        "verdicts": VERDICTS,
        "datasets": datasets,
        "dataset": dataset,
        "snippet": snippet,
        "snippets": ci_snippets.SNIPPETS,
        "coloured": highlight(
            ci_snippets.fill(snippet.code, base_url=Shell(request).base_url, dataset_id=dataset), snippet.language
        ),
        "fail_under": "7",
    }
    if request.htmx and request.htmx.target == "gates":
        return render(request, "dashboard/evaluate/_gates.html", context)
    return render(request, "dashboard/evaluate/gates.html", context)


@require_safe
def preview(request: DashboardRequest) -> HttpResponse:
    """What a gate would say about the dataset's newest completed run; nothing is recorded."""
    given = request.GET
    query = {
        name: value for name in ("failUnder", "noRegression", "tolerance") if (value := given.get(name, "").strip())
    }
    context: dict[str, Any] = {}
    try:
        asked = service.GateQuery.from_query(query)
        reply = service.preview(project=request.project, dataset_id=given.get("dataset", ""), query=asked)
    except APIError as error:
        context["refused"] = str(error)
    else:
        context["reply"] = reply
    return render(request, "dashboard/evaluate/_gate_preview.html", context)
