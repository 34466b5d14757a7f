"""“Add to dataset”: a case from a recorded trace, or from a whole session, edited by a person before it is added."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from apps.core.api.errors import APIError
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.grading import unix_lines
from apps.dashboard.views.datasets import CREATOR
from apps.datasets import selectors
from apps.datasets.services import cases, datasets, drafting

_CHOICES = 500


def _material(request: DashboardRequest) -> dict[str, Any]:
    return cases.case_preview(
        project=request.project,
        trace_id=request.GET.get("trace") or None,
        session_id=request.GET.get("session") or None,
    )


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: DashboardRequest) -> HttpResponse:
    """The dialog's content for `?trace=` or `?session=`; a POST adds the case, or tells why not."""
    try:
        found = _material(request)
    except APIError as error:
        return render(request, "dashboard/datasets/_add.html", {"refused": error.message})
    turns = [dict(turn, text=turn["query"], expected="") for turn in found["turns"]]
    context: dict[str, Any] = {
        "turns": turns,
        "datasets": list(selectors.list_datasets(request.project)[:_CHOICES]),
        "address": request.get_full_path(),
        "query": request.GET.urlencode(),
        "chosen": request.POST.get("dataset", ""),
        "guideline": "",
    }
    if request.method == "POST":
        _take(request, turns)
        context["guideline"] = unix_lines(request.POST.get("guideline", ""))
        context["new_name"] = request.POST.get("new_name", "").strip()
        try:
            context["added"] = _add(request, turns, found["case"]["source"], context)
        except cases.DuplicateCase as error:
            context["duplicate"] = error
        except APIError as error:
            context["error"] = error.message
    return render(request, "dashboard/datasets/_add.html", context)


def _take(request: DashboardRequest, turns: list[dict[str, Any]]) -> None:
    queries, expected = request.POST.getlist("query"), request.POST.getlist("expected")
    for number, turn in enumerate(turns):
        turn["text"] = unix_lines(queries[number]) if number < len(queries) else ""
        turn["expected"] = unix_lines(expected[number]) if number < len(expected) else ""


def _add(request: DashboardRequest, turns: list[dict[str, Any]], source: Any, context: dict[str, Any]) -> Any:
    asked = [turn for turn in turns if turn["text"].strip()]
    if not asked:
        raise APIError(_("Write at least one question."))
    first, *later = [
        {"query": turn["text"], **({"expectedResults": turn["expected"]} if turn["expected"].strip() else {})}
        for turn in asked
    ]
    if context["guideline"].strip():
        first["judgeGuideline"] = context["guideline"]
    dataset_id = context["chosen"]
    if not dataset_id:
        if not context["new_name"]:
            raise APIError(_("Pick a dataset, or name a new one."))
        made = datasets.create_dataset(
            project=request.project, body={"name": context["new_name"]}, creator=CREATOR, request=request
        )
        dataset_id = made.pk
    count = cases.add_case(
        project=request.project,
        dataset_id=dataset_id,
        case={"main_question": first, "follow_up_questions": later, "source": source},
        dedupe="anyway" not in request.POST,
        creator=CREATOR,
        request=request,
    )
    return {"dataset": selectors.get_dataset(request.project, dataset_id), "count": count}


@require_POST
def suggest(request: DashboardRequest) -> HttpResponse:
    """A drafted expected answer for one turn of `?trace=` or `?session=`, as the field that holds it."""
    number = request.GET.get("turn", "")
    try:
        turns = _material(request)["turns"]
    except APIError:
        raise Http404 from None
    if not (number.isascii() and number.isdigit() and int(number[:6]) < len(turns)):
        raise Http404
    index = int(number)
    turn = {**turns[index], "expected": unix_lines(request.POST.get("expected", ""))}
    context: dict[str, Any] = {"turn": turn, "n": index, "query": _without_turn(request)}
    try:
        found = drafting.suggest_expected(
            project=request.project,
            query=request.POST.get("query", "") or turn["query"],
            actual_output=turn["actualOutput"],
            error=turn["error"],
        )
    except APIError as error:
        context["error"] = error.message
    else:
        turn["expected"] = found["expected"]
        context["rationale"] = found["rationale"]
    return render(request, "dashboard/datasets/_expected.html", context)


def _without_turn(request: DashboardRequest) -> str:
    values = request.GET.copy()
    values.pop("turn", None)
    return values.urlencode()
