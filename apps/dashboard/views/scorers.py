"""Scorers: the list with templates and groups, and the judge scorer editor."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Max
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.core.api.errors import APIError
from apps.dashboard.content_diff import diff
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.scorers import ScorerForm
from apps.dashboard.scorer_preview import assembly
from apps.dashboard.views.datasets import CREATOR
from apps.projects.models import Project
from apps.scorers import selectors, wire
from apps.scorers.models import JudgeScorer, JudgeScorerVersion
from apps.scorers.services import judge_scorers as service
from apps.scorers.services.references import names_of

VIEWS = ("scorers", "templates", "groups")
TABS = ("judge", "offline", "history")
_HISTORY = 100


def scorer_or_404(project: Project, scorer_id: str) -> JudgeScorer:
    """The judge scorer, a template or the built-in judge included."""
    row = selectors.get_judge_scorer(project, scorer_id)
    if row is None:
        raise Http404
    return row


@require_safe
def scorers(request: DashboardRequest) -> HttpResponse:
    """What was created, the shipped templates, or the groups; view and search stand in the address."""
    view = request.GET.get("view", "")
    view = view if view in VIEWS else VIEWS[0]
    search = request.GET.get("q", "").strip()[:200]
    every = list(selectors.list_judge_scorers(request.project))
    groups = list(selectors.list_groups(request.project))
    own = [row for row in every if not row.seeded and not row.builtin_key]
    templates = [row for row in every if row.seeded or row.builtin_key]
    rows = [row for row in (templates if view == "templates" else own) if search.lower() in row.name.lower()]
    members = names_of(request.project, [member for group in groups for member in group.members])
    context = {
        "view": view,
        "search": search,
        "own": len(own),
        "templates": len(templates),
        "rows": [{"row": row, "judge": wire.judge(row), "offline": wire.offline(row)} for row in rows],
        "versions": _newest(rows),
        "groups": [
            {
                "row": group,
                "members": [(members.get((m["kind"], m["refId"]), _("deleted scorer")), m) for m in group.members],
            }
            for group in groups
            if search.lower() in group.name.lower()
        ],
        "group_count": len(groups),
    }
    return render(request, "dashboard/scorers/list.html", context)


def _newest(rows: list[JudgeScorer]) -> dict[str, int]:
    found = JudgeScorerVersion.objects.filter(scorer__in=[row.pk for row in rows]).values("scorer_id")
    return dict(found.annotate(n=Max("version")).values_list("scorer_id", "n"))


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: DashboardRequest) -> HttpResponse:
    """A new judge scorer; a name is enough."""
    form = ScorerForm(request.POST or None, found={})
    if request.method == "POST" and form.is_valid():
        body = {**form.body(), "online": {"enabled": False}}
        try:
            row = service.create_judge_scorer(project=request.project, body=body, creator=CREATOR, request=request)
        except APIError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, _("Scorer %(name)s created.") % {"name": row.name})
            return redirect("dashboard:scorer", scorer_id=row.pk)
    context = _editor(request, form, None)
    return render(request, "dashboard/scorers/editor.html", context, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def scorer(request: DashboardRequest, scorer_id: str) -> HttpResponse:
    """The editor; a POST saves it all as one version. `?version=` fills the form from the history."""
    row = scorer_or_404(request.project, scorer_id)
    newest = selectors.versions(row).values_list("version", flat=True).first()
    wanted = request.POST.get("applied") if request.method == "POST" else request.GET.get("version")
    applied = row.versions.filter(pk=wanted[:21].replace("\x00", "")).first() if wanted else None
    content = {**wire.judge_scorer(row), **(applied.snapshot if applied is not None else {})}
    form = ScorerForm(
        request.POST or None,
        found=content,
        base=newest,
        applied=applied.pk if applied is not None else "",
        builtin=bool(row.builtin_key),
    )
    status = 200
    if request.method == "POST":
        status = 400
        if row.seeded and not row.builtin_key:
            form.add_error(None, _("A template is read-only. Add it as your own scorer first."))
        elif form.is_valid():
            try:
                service.update_judge_scorer(
                    project=request.project,
                    scorer_id=scorer_id,
                    body=form.body(),
                    base_version=form.cleaned_data["base_version"],
                    creator=CREATOR,
                    request=request,
                )
            except APIError as error:
                form.add_error(None, error.message)
                status = error.status_code
            else:
                messages.success(request, _("Scorer saved."))
                answer = redirect("dashboard:scorer", scorer_id=scorer_id)
                if request.POST.get("tab") in TABS:
                    answer["Location"] += f"?tab={request.POST['tab']}"
                return answer
    context = _editor(request, form, row) | {"newest": newest, "applied": applied}
    context["changed"] = applied is not None or form.is_bound
    return render(request, "dashboard/scorers/editor.html", context, status=status)


def _editor(request: DashboardRequest, form: ScorerForm, row: JudgeScorer | None) -> dict[str, Any]:
    tab = request.POST.get("tab") or request.GET.get("tab") or ""
    values = form.initial if not form.is_bound else {name: form[name].value() for name in form.fields}
    judge = {
        "acceptanceCriteria": values.get("acceptance_criteria"),
        "rejectionCriteria": values.get("rejection_criteria"),
        "evaluationCriteria": values.get("evaluation_criteria"),
        "judgePrompt": values.get("judge_prompt"),
        "toolContext": values.get("tool_context") or "simple",
        "requiresExpected": values.get("requires_expected") in (True, "on"),
    }
    return {
        "row": row,
        "form": form,
        "tab": tab if tab in TABS else TABS[0],
        "template": row is not None and row.seeded and not row.builtin_key,
        "builtin": row is not None and bool(row.builtin_key),
        "preview": assembly(judge),
        "history": list(selectors.versions(row).defer("snapshot")[:_HISTORY]) if row is not None else [],
    }


@require_POST
def preview(request: DashboardRequest) -> HttpResponse:
    """What the judge receives with what stands in the form; nothing is stored and no model is asked."""
    form = ScorerForm(request.POST, found={}, builtin=True)
    form.is_valid()
    names = ("acceptance_criteria", "rejection_criteria", "evaluation_criteria", "judge_prompt")
    keys = ("acceptanceCriteria", "rejectionCriteria", "evaluationCriteria", "judgePrompt")
    judge: dict[str, Any] = {
        key: form.cleaned_data.get(name, "").replace("\r\n", "\n") for name, key in zip(names, keys, strict=True)
    }
    judge["toolContext"] = form.cleaned_data.get("tool_context") or "simple"
    judge["requiresExpected"] = form.cleaned_data.get("requires_expected", False)
    return render(request, "dashboard/scorers/_preview.html", {"preview": assembly(judge)})


@require_POST
def clone(request: DashboardRequest, scorer_id: str) -> HttpResponse:
    """An own, editable copy of a template or scorer."""
    scorer_or_404(request.project, scorer_id)
    row = service.clone_judge_scorer(project=request.project, scorer_id=scorer_id, creator=CREATOR, request=request)
    messages.success(request, _("Scorer %(name)s added.") % {"name": row.name})
    return redirect("dashboard:scorer", scorer_id=row.pk)


@require_POST
def remove(request: DashboardRequest, scorer_id: str) -> HttpResponse:
    """Delete a scorer; one that cannot go stays, and the reason is told."""
    name = scorer_or_404(request.project, scorer_id).name
    try:
        service.delete_judge_scorer(project=request.project, scorer_id=scorer_id, request=request)
    except APIError as error:
        messages.error(request, error.message)
        return redirect("dashboard:scorer", scorer_id=scorer_id)
    messages.success(request, _("Scorer %(name)s deleted. Runs it graded stay.") % {"name": name})
    return redirect("dashboard:scorers")


@require_safe
def version(request: DashboardRequest, scorer_id: str, version_id: str) -> HttpResponse:
    """What one version changed, or with `?against=current` how the current one differs from it."""
    row = scorer_or_404(request.project, scorer_id)
    entry = row.versions.filter(pk=version_id.replace("\x00", "")).first()
    if entry is None:
        raise Http404
    newest = selectors.versions(row).first()
    against = request.GET.get("against") == "current" and newest is not None and newest.pk != entry.pk
    if against:
        other = newest
    else:
        other = row.versions.filter(version__lt=entry.version).order_by("-version").first()
    parts = []
    if other is not None:
        names = {key: label for section in service.TRACKED.values() for key, label in section.items()}
        old, new_ = (entry, other) if against else (other, entry)
        parts = diff(_flat(old.snapshot), _flat(new_.snapshot), {"name": _("Name"), **names})
    context = {
        "row": row,
        "entry": entry,
        "newest": newest.version if newest else None,
        "other": other,
        "against": against,
        "parts": parts,
    }
    return render(request, "dashboard/scorers/version.html", context)


def _flat(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {"name": snapshot.get("name"), **(snapshot.get("judge") or {}), **(snapshot.get("offline") or {})}


@require_POST
def remove_version(request: DashboardRequest, scorer_id: str, version_id: str) -> HttpResponse:
    """Remove an older version; the current one stays."""
    try:
        service.delete_version(project=request.project, scorer_id=scorer_id, version_id=version_id, request=request)
    except APIError as error:
        if error.status_code == 404:
            raise Http404 from None
        messages.error(request, error.message)
    else:
        messages.success(request, _("Version deleted."))
    answer = redirect("dashboard:scorer", scorer_id=scorer_id)
    answer["Location"] += "?tab=history"
    return answer
