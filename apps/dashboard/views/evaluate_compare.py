"""Compare: versions of an agent over a dataset, two runs case by case, and their head to head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.core.api.errors import APIError
from apps.core.ids import is_id
from apps.dashboard.current import DashboardRequest
from apps.dashboard.texts import one_line
from apps.dashboard.views.evaluate import dataset_url, page_number, pass_mark, subject_name
from apps.evaluations import browse, selectors, statistics, wire
from apps.evaluations.browse import ComparedCase
from apps.evaluations.models import PairwiseComparison, Result, Run
from apps.evaluations.services import comparison, pairwise
from apps.evaluations.services.scoring import output_text
from apps.evaluations.services.snapshot import Frozen, frozen
from apps.evaluations.services.tallies import FAILED_RATING

# A change below this is not called a regression: one judge differs by as much from one asking to the next.
NOTABLE = 0.5
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    run: Run

    @property
    def name(self) -> str:
        """What tells the run apart: its version, else the agent and the start of its id."""
        return self.run.version_label or f"{subject_name(self.run)} {self.run.pk[-4:]}"

    @property
    def average(self) -> float | None:
        """The mean of all rated results."""
        return wire.mean(self.run)


@dataclass(frozen=True, slots=True)
class ListedCase:
    """A row of the comparison."""

    case: ComparedCase
    question: str

    @property
    def number(self) -> int:
        """The number of the case, from 1."""
        return self.case.index + 1

    @property
    def verdict(self) -> str:
        """pass (better), fail (worse), tie, or none where one side has no rating."""
        return verdict_of(self.case.delta)


def verdict_of(delta: float | None) -> str:
    """The shape of a change; changes below half a point are ties."""
    if delta is None:
        return "none"
    delta = round(delta, 2)
    return "fail" if delta <= -NOTABLE else "pass" if delta >= NOTABLE else "tie"


def _two(request: DashboardRequest) -> tuple[Run | None, Run | None]:
    """(baseline, candidate) of the address. Two ids in `run` stand in the order of time."""
    chosen = sorted(item for item in dict.fromkeys(request.GET.getlist("run")) if is_id(item))[-2:]
    ids = chosen if len(chosen) == 2 else [request.GET.get("baseline", ""), request.GET.get("candidate", "")]
    found = [browse.get_run(request.project, item) for item in ids]
    if any(run is None and item for run, item in zip(found, ids, strict=True)):
        raise Http404
    baseline, candidate = found
    if candidate is None and len(chosen) == 1:
        candidate = browse.get_run(request.project, chosen[0])
    if candidate is not None and baseline is None:
        baseline = selectors.baseline_of(candidate)
    return baseline, candidate


@require_safe
def compare(request: DashboardRequest) -> HttpResponse:
    """Two runs of one dataset: the averages, the difference and how sure it is, then every case, losses first."""
    baseline, candidate = _two(request)
    if candidate is None:
        return redirect("dashboard:runs")
    context: dict[str, Any] = {
        "candidate": Side(candidate),
        "dataset": candidate.dataset_name,
        "dataset_id": candidate.dataset_id,
        "dataset_url": dataset_url(candidate),
        "others": [Side(run) for run in browse.comparable_runs(candidate)],
    }
    if baseline is None or baseline.pk == candidate.pk or baseline.dataset_id != candidate.dataset_id:
        context["foreign"] = baseline is not None and baseline.dataset_id != candidate.dataset_id
        return render(request, "dashboard/evaluate/compare_none.html", context)
    found = browse.compare_cases(baseline, candidate)
    fixed = frozen(candidate.pk)
    context |= {"baseline": Side(baseline), "mark": pass_mark(fixed.grader), **_listed(request, found, fixed)}
    if request.htmx and request.htmx.target == "cases":
        return render(request, "dashboard/evaluate/_cases.html", context)
    confidence = statistics.confidence(found.candidate_means, found.baseline_means)
    context |= {
        "confidence": confidence,
        "difference": confidence["difference"],
        "scale": _scale(confidence["difference"]),
        "tone": _tone(confidence["difference"]),
        "h2h": _head_to_head(request, baseline, candidate),
        "pairs": min(browse.answered_by_both(baseline, candidate), pairwise.MAX_CASES),
    }
    return render(request, "dashboard/evaluate/compare.html", context)


def _tone(difference: dict[str, Any] | None) -> str:
    """pass or fail only for a difference that noise does not explain."""
    if not difference or not difference["significant"]:
        return "warn" if difference and difference["changedCases"] else "info"
    return "pass" if difference["mean"] > 0 else "fail"


def _scale(difference: dict[str, Any] | None) -> float:
    """Half the width of the difference's axis: 2, 5 or 10."""
    if not difference:
        return 2.0
    most = max(abs(difference[key] or 0.0) for key in ("mean", "low", "high"))
    return next((step for step in (2.0, 5.0) if most <= step), 10.0)


def _listed(request: DashboardRequest, found: browse.ComparedRuns, fixed: Frozen) -> dict[str, Any]:
    counts = {"": len(found.cases), "fail": 0, "pass": 0, "tie": 0, "none": 0}
    for one in found.cases:
        counts[verdict_of(one.delta)] += 1
    show = request.GET.get("show", "")
    show = show if show in counts else ""
    cases = [one for one in found.cases if not show or verdict_of(one.delta) == show]
    if show == "pass":
        cases.reverse()
    number = min(page_number(request.GET.get("page")), max(1, -(-len(cases) // _PAGE)))
    start = (number - 1) * _PAGE
    shown = cases[start : start + _PAGE]
    return {
        "rows": [ListedCase(one, one_line(fixed.question_text(one.index) or "")) for one in shown],
        "counts": counts,
        "show": show,
        "shown": [
            ("", _("All"), counts[""]),
            ("fail", _("Regressed"), counts["fail"]),
            ("pass", _("Improved"), counts["pass"]),
            ("tie", _("Same"), counts["tie"]),
            *([("none", _("Not comparable"), counts["none"])] if counts["none"] else []),
        ],
        "most": max((abs(one.delta) for one in found.cases if one.delta is not None), default=0.0) or 1.0,
        "number": number,
        "first": start + 1 if shown else 0,
        "last": start + len(shown),
        "total": len(cases),
        "newer": number - 1 if number > 1 else None,
        "older": number + 1 if start + len(shown) < len(cases) else None,
    }


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """A stored comparison seen from the candidate, whichever side it was judged on."""

    row: PairwiseComparison
    candidate_id: str

    @property
    def _straight(self) -> bool:
        return self.row.run_a_id == self.candidate_id

    @property
    def total(self) -> int:
        """Cases judged."""
        return int(self.row.summary.get("total") or 0)

    @property
    def wins(self) -> int:
        """Cases the candidate won."""
        return int(self.row.summary.get("aWins" if self._straight else "bWins") or 0)

    @property
    def losses(self) -> int:
        """Cases the baseline won."""
        return int(self.row.summary.get("bWins" if self._straight else "aWins") or 0)

    @property
    def ties(self) -> int:
        """Cases neither won."""
        return int(self.row.summary.get("ties") or 0)

    @property
    def flip_rate(self) -> float | None:
        """The share of cases whose winner followed the order of reading; None when one order was read."""
        rate = self.row.summary.get("flipRate")
        return rate if isinstance(rate, int | float) else None

    @property
    def flipped(self) -> int:
        """Cases whose winner followed the order of reading."""
        return sum(1 for case in self.row.cases if case.get("flipped"))

    @property
    def inconclusive(self) -> bool:
        """Whether the judge contradicted itself too often to name a winner (EVAL-245)."""
        return self.flip_rate is not None and self.flip_rate > pairwise.HIGH_FLIP_RATE

    @property
    def winner(self) -> str:
        """candidate, baseline or tie."""
        return "tie" if self.wins == self.losses else "candidate" if self.wins > self.losses else "baseline"

    @property
    def bars(self) -> tuple[str, str, str, str]:
        """Widths of wins and ties and the places where ties and losses begin, in percent."""
        total = self.total or 1
        wins, ties = self.wins / total * 100, self.ties / total * 100
        return f"{wins:.1f}%", f"{ties:.1f}%", f"{wins:.1f}%", f"{wins + ties:.1f}%"

    @property
    def losses_width(self) -> str:
        """The width of losses."""
        return f"{self.losses / (self.total or 1) * 100:.1f}%"

    @property
    def cases(self) -> list[dict[str, Any]]:
        """Every judged case from the candidate's side: won, lost or tie, who was read first, and why."""
        side = "a" if self._straight else "b"
        words = {side: "candidate", "tie": "tie"}
        return [
            {
                "number": int(case["questionIndex"]) + 1,
                "query": one_line(str(case.get("query") or "")),
                "winner": words.get(case["winner"], "baseline"),
                "first": words.get(case.get("presentedFirst", ""), "baseline"),
                "flipped": case.get("flipped"),
                "justification": case.get("justification") or "",
            }
            for case in self.row.cases
        ]

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Cases that were not judged, with the reason; the sides are named from the candidate."""
        return [
            {
                "number": int(item["questionIndex"]) + 1,
                "query": one_line(str(item.get("query") or "")),
                "reason": item["reason"],
            }
            for item in self.row.skipped
        ]


def _head_to_head(request: DashboardRequest, baseline: Run, candidate: Run) -> HeadToHead | None:
    row = browse.last_pairwise(request.project, candidate.pk, baseline.pk)
    return HeadToHead(row, candidate.pk) if row is not None else None


@dataclass(frozen=True, slots=True)
class CaseSide:
    """One run's answer to a case."""

    side: Side
    rating: float | None
    results: list[Result]

    @property
    def answers(self) -> list[dict[str, Any]]:
        """Every repetition: its text or its error, its rating and the reason."""
        return [
            {
                "text": output_text(row.output) or "",
                "error": (row.error or {}).get("message") if isinstance(row.error, dict) else None,
                "value": FAILED_RATING if row.status == Result.Status.FAILED else row.rating,
                "reason": row.justification,
                "skipped": row.status == Result.Status.SKIPPED,
                "trace_id": row.trace_id,
                "number": row.run_number,
            }
            for row in self.results
        ]


@require_safe
def case(request: DashboardRequest) -> HttpResponse:
    """Both answers of one case with the judge's reasons, for the row that is opened."""
    baseline, candidate = _two(request)
    number = request.GET.get("case", "")
    if baseline is None or candidate is None or not (number.isascii() and number.isdigit() and 0 < len(number) < 8):
        raise Http404
    index = int(number) - 1
    fixed = frozen(candidate.pk)
    sides = []
    for run in (baseline, candidate):
        results = browse.first_results(run, index)
        values = [FAILED_RATING if row.status == Result.Status.FAILED else row.rating for row in results]
        known = [value for value in values if value is not None]
        sides.append(CaseSide(Side(run), sum(known) / len(known) if known else None, results))
    if not any(side.results for side in sides):
        raise Http404
    expected = fixed.main_question(index).get("expectedResults")
    context = {
        "sides": sides,
        "question": fixed.question_text(index) or "",
        "expected": expected if isinstance(expected, str) else "",
        "mark": pass_mark(fixed.grader),
    }
    return render(request, "dashboard/evaluate/_case.html", context)


@require_POST
def judge(request: DashboardRequest) -> HttpResponse:
    """Judge two runs head to head and come back to their comparison; it asks models and takes its time."""
    ids = {name: request.POST.get(name, "") for name in ("candidate", "baseline")}
    body = {
        "runAId": ids["candidate"],
        "runBId": ids["baseline"],
        "bothOrders": request.POST.get("both") == "1",
        "judgeModel": request.POST.get("model", "")[:200],
        "criteria": request.POST.get("criteria", "")[:20_000],
    }
    try:
        pairwise.compare(project=request.project, body=body)
    except APIError as error:
        if error.status_code == 404:
            raise Http404 from error
        messages.error(request, str(error))
    else:
        messages.success(request, _("The head to head is judged."))
    return redirect(f"{reverse('dashboard:compare')}?{urlencode(ids)}#h2h")


@require_safe
def versions(request: DashboardRequest, dataset_id: str) -> HttpResponse:
    """The versions that ran over a dataset, and the newest against the one before."""
    try:
        found = comparison.versions_of(project=request.project, dataset_id=dataset_id)
    except APIError as error:
        raise Http404 from error
    rows = found["versions"]
    run = browse.get_run(request.project, rows[0]["latestRunId"]) if rows else None
    context = {
        "rows": rows,
        "comparison": found["comparison"],
        "dataset_id": dataset_id,
        "dataset": run.dataset_name if run else "",
        "dataset_url": dataset_url(run) if run else "",
        "tone": _tone(found["comparison"]["confidence"]["difference"]) if found["comparison"] else "",
    }
    return render(request, "dashboard/evaluate/versions.html", context)
