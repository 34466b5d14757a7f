"""Scorer groups: several scorers combined into one score."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.api.errors import APIError
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.scorers import GroupForm
from apps.scorers import selectors
from apps.scorers.models import ScorerGroup
from apps.scorers.services import groups as service
from apps.scorers.services.references import names_of

_LIST = "dashboard:scorers"


def _rows(request: DashboardRequest, group: ScorerGroup | None) -> list[dict[str, Any]]:
    """Everything that can be a member: members first, in their order, then the other judge scorers."""
    members = group.members if group is not None else []
    names = names_of(request.project, members)
    rows = [
        {**member, "name": names.get((member["kind"], member["refId"]), _("deleted scorer")), "chosen": True}
        for member in members
    ]
    taken = {member["refId"] for member in members}
    return rows + [
        {"kind": "judge", "refId": row.pk, "name": row.name, "weight": 1, "gate": False, "chosen": False}
        for row in selectors.list_judge_scorers(request.project)
        if row.pk not in taken
    ]


@require_http_methods(["GET", "HEAD", "POST"])
def group(request: DashboardRequest, group_id: str = "") -> HttpResponse:
    """Create a group, or change one."""
    row = selectors.get_group(request.project, group_id) if group_id else None
    if group_id and row is None:
        raise Http404
    initial = {"name": row.name, "description": row.description} if row is not None else None
    form = GroupForm(request.POST or None, rows=_rows(request, row), initial=initial)
    if request.method == "POST" and form.is_valid():
        body = {
            "name": form.cleaned_data["name"],
            "description": form.cleaned_data["description"] or None,
            "members": form.cleaned_data["members"],
        }
        try:
            if row is None:
                service.create_group(project=request.project, body=body, request=request)
            else:
                service.update_group(project=request.project, group_id=row.pk, body=body, request=request)
        except APIError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, _("Group %(name)s saved.") % {"name": body["name"]})
            answer = redirect(_LIST)
            answer["Location"] += "?view=groups"
            return answer
    context = {"form": form, "row": row}
    return render(request, "dashboard/scorers/group.html", context, status=400 if form.is_bound else 200)


@require_POST
def remove(request: DashboardRequest, group_id: str) -> HttpResponse:
    """Delete a group; its members stay."""
    try:
        service.delete_group(project=request.project, group_id=group_id, request=request)
    except APIError:
        raise Http404 from None
    messages.success(request, _("Group deleted. Its scorers stay."))
    answer = redirect(_LIST)
    answer["Location"] += "?view=groups"
    return answer
