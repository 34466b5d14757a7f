"""Evaluate: the list of runs, one run with its progress and its results, and one result in full."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from apps.dashboard.current import DashboardRequest
from apps.dashboard.templatetags.evaluate import rating as rating_text
from apps.dashboard.texts import one_line
from apps.evaluations import browse, selectors, statistics, wire
from apps.evaluations.browse import RunFilters
from apps.evaluations.models import Analysis, CIRun, Result, Run
from apps.evaluations.services import analysis, report
from apps.evaluations.services.scoring import output_text
from apps.evaluations.services.snapshot import Frozen, frozen
from apps.evaluations.services.tallies import FAILED_RATING, judges_of
from apps.llm.selectors import catalog_rows

_VIOLATIONS = 50

SOURCES = {
    "": _("API"),
    "sdk": _("SDK"),
    "dashboard": _("Dashboard"),
    selectors.CI_RUN: _("CI run"),
    selectors.TRACE_EVALUATION: _("Trace evaluation"),
}
STATUSES = (
    ("", _("All")),
    (Run.Status.IN_PROGRESS.value, _("In progress")),
    (Run.Status.COMPLETED.value, _("Completed")),
    (Run.Status.FAILED.value, _("Failed")),
)
ORDERS = (
    ("worst", _("Worst first")),
    ("best", _("Best first")),
    ("case", _("By case")),
    ("slowest", _("Slowest first")),
)


def source_label(source: str) -> str:
    """The word for where a run came from; what a client sent of its own is shown as it is."""
    return str(SOURCES.get(source, source))


def page_number(text: str | None) -> int:
    """A page number from an address; 1 for anything that is none."""
    return (
        min(max(int(text), 1), browse.LAST_PAGE) if text and text.isascii() and text.isdigit() and len(text) < 8 else 1
    )


def subject_name(run: Run) -> str:
    """The display name of the agent under test; the dataset's name when the client sent none."""
    subject = run.subject if isinstance(run.subject, dict) else {}
    for key in ("displayName", "name", "id", "externalId"):
        if isinstance(value := subject.get(key), str) and value.strip():
            return value.strip()[:200]
    return run.dataset_name or run.pk


def framework(run: Run) -> str:
    """The framework the client named, or nothing."""
    subject = run.subject if isinstance(run.subject, dict) else {}
    for holder in (subject, subject.get("metadata"), run.sdk):
        if isinstance(holder, dict) and isinstance(value := holder.get("framework"), str) and value.strip():
            return value.strip()[:40]
    return ""


def scorer_names(grader: dict[str, Any]) -> list[str]:
    """What grades a run: the group by its name, else the judge and the extra judges."""
    group = grader.get("group")
    if group:
        return [str(_("%(name)s (group)") % {"name": group.get("name") or ""})]
    primary = (grader.get("primary") or {}).get("name") or ""
    return [name for name in (primary, *(name for _id, name in judges_of(grader))) if name]


def dataset_url(run: Run) -> str:
    """Address of the run's dataset, empty while datasets have no page."""
    try:
        return reverse("dashboard:dataset", args=[run.dataset_id])
    except NoReverseMatch:
        return ""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A row of the list."""

    run: Run

    @property
    def name(self) -> str:
        """The agent under test."""
        return subject_name(self.run)

    @property
    def framework(self) -> str:
        """The framework's label."""
        return framework(self.run)

    @property
    def source(self) -> str:
        """Where the run came from."""
        return source_label(self.run.run_source)

    @property
    def scorers(self) -> list[str]:
        """Who judged it."""
        return scorer_names(self.run.grader or {})

    @property
    def average(self) -> float | None:
        """The mean rating, None when nothing is rated."""
        return wire.mean(self.run)

    @property
    def mark(self) -> float:
        """The rating a result should reach."""
        return pass_mark(self.run.grader or {})


def pass_mark(grader: dict[str, Any]) -> float:
    """The rating below which a result is shown as failing: the grading's own threshold, else 5."""
    value = (grader.get("thresholds") or {}).get("rating")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else browse.PASS_MARK


@require_safe
def runs(request: DashboardRequest) -> HttpResponse:
    """Runs of every source, newest first; search, dataset, status and source stand in the address."""
    given = request.GET
    status = given.get("status", "")
    filters = RunFilters(
        search=given.get("q", "").strip()[:200].replace("\x00", ""),
        dataset_id=given.get("dataset", "")[:40],
        status=status if status in Run.Status.values else "",
        source=given.get("source", "")[:40].replace("\x00", ""),
    )
    page = browse.list_runs(request.project, filters, cursor=given.get("cursor", ""))
    context = {
        "rows": [ListedRun(run) for run in page.rows],
        "page": page,
        "filters": filters,
        "datasets": browse.datasets_with_runs(request.project),
        "sources": [(name, source_label(name)) for name in browse.sources_of(request.project) if name],
        "statuses": STATUSES,
        "first_page": not given.get("cursor"),
    }
    part = "_runs" if request.htmx and request.htmx.target == "runs" else "runs"
    return render(request, f"dashboard/evaluate/{part}.html", context)


def _run(request: DashboardRequest, run_id: str) -> Run:
    run = browse.get_run(request.project, run_id)
    if run is None:
        raise Http404
    return run


@dataclass(frozen=True, slots=True)
class Figures:
    """The head of a run: what its own figures and two aggregate queries say about all its results."""

    run: Run
    fixed: Frozen

    @property
    def average(self) -> float | None:
        """The mean of all rated results, unrounded."""
        return wire.mean(self.run)

    @property
    def share(self) -> int:
        """Percent of the expected results that are there."""
        expected = self.run.expected_results
        return min(100, round(self.run.result_count * 100 / expected)) if expected else 0


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the rating distribution in a box of 100 by 100."""

    rating: int
    count: int
    x: str
    y: str
    height: str
    verdict: str


def _bars(spread: browse.Distribution, mark: float) -> list[Bar]:
    most = spread.most or 1
    step = 100 / len(spread.counts)
    bars = []
    for value, count in enumerate(spread.counts):
        height = count / most * 100
        verdict = "fail" if value + 1 <= mark else "warn" if value < mark + 1 else "pass"
        bars.append(Bar(value, count, f"{value * step + 0.9:.2f}", f"{100 - height:.1f}", f"{height:.1f}", verdict))
    return bars


def _head(run: Run) -> dict[str, Any]:
    """What the upper part of a run's page shows; the same number of queries for ten results and ten thousand."""
    fixed = frozen(run.pk)
    mark = pass_mark(fixed.grader)
    spread = browse.distribution(run.pk)
    tallies = selectors.scorer_tallies([run.pk]).get(run.pk, {})
    running = run.status == Run.Status.IN_PROGRESS
    means = selectors.case_means(run.pk)
    variants, rated_variants = browse.variant_average(run.pk) if run.variants else (None, 0)
    average = wire.mean(run)
    return {
        "run": run,
        "name": subject_name(run),
        "framework": framework(run),
        "source": source_label(run.run_source),
        "scorers": scorer_names(fixed.grader),
        "dataset_url": dataset_url(run),
        "figures": Figures(run, fixed),
        "mark": mark,
        "interval": statistics_interval(means),
        "rated_cases": len(means),
        "bars": _bars(spread, mark),
        "spread": spread,
        "breakdown": wire.scorer_breakdown(run, fixed.grader, tallies),
        "running": running,
        "pending": browse.pending_count(run.pk) if running else 0,
        "variant_average": variants,
        "variant_change": variants - average if variants is not None and average is not None else None,
        "rated_variants": rated_variants,
        "repetitions": int(fixed.grader.get("repetitions") or 1),
    }


def statistics_interval(means: dict[int, float]) -> dict[str, Any] | None:
    """The mean of the case means with its 95 % interval as the wire has it, None when nothing is rated."""
    found = statistics.mean_interval(list(means.values()))
    return found.as_wire() if found else None


@dataclass(frozen=True, slots=True)
class ListedResult:
    """A row of the results."""

    row: Result
    question: str

    @property
    def value(self) -> float | None:
        """What the row counts as: its rating, 0 when the agent failed, None when it could not be judged."""
        return FAILED_RATING if self.row.status == Result.Status.FAILED else self.row.rating

    @property
    def tokens(self) -> int | None:
        """Input and output together."""
        known = [value for value in (self.row.input_tokens, self.row.output_tokens) if value is not None]
        return sum(known) if known else None

    @property
    def case(self) -> int | None:
        """The number of the case, from 1."""
        return None if self.row.question_index is None else self.row.question_index + 1


def question_of(row: Result, fixed: Frozen) -> str:
    """What the agent was asked: the paraphrase, what the client sent, else the dataset's question."""
    if row.is_variant and row.variant_text:
        return row.variant_text
    query = row.input.get("query") if isinstance(row.input, dict) else row.input
    if isinstance(query, str) and query.strip():
        return query
    return fixed.question_text(row.question_index) or ""


def _list(request: DashboardRequest, run: Run, fixed: Frozen) -> dict[str, Any]:
    given = request.GET
    show = given.get("show", "")
    show = show if show in browse.SHOWN else ""
    order = given.get("order", "")
    order = order if order in browse.ORDERS else "worst"
    mark = pass_mark(fixed.grader)
    case = given.get("case", "")
    question = int(case) - 1 if case.isascii() and case.isdigit() and 0 < len(case) < 8 and int(case) else None
    page = browse.list_results(
        run.pk, show=show, order=order, mark=mark, number=page_number(given.get("page")), question=question
    )
    low = browse.count_below(run.pk, mark)
    shown = [
        ("", _("All"), run.result_count - run.variants),
        ("low", _("Below the mark"), low),
        ("failed", _("Failed"), run.failed),
        ("skipped", _("Not judged"), run.skipped),
    ]
    if run.variants:
        shown.append(("variants", _("Variants"), run.variants))
    metrics = (fixed.grader.get("primary") or {}).get("metrics") or {}
    return {
        "run": run,
        "mark": mark,
        "page": page,
        "rows": [ListedResult(row, one_line(question_of(row, fixed))) for row in page.rows],
        "show": show,
        "shown": shown,
        "order": order,
        "orders": ORDERS,
        "case": question + 1 if question is not None else None,
        "metrics": metrics,
        "with_metrics": any(metrics.get(name) for name in ("vector", "jaccard", "bleu", "rouge")),
        "repeated": int(fixed.grader.get("repetitions") or 1) > 1,
        "columns": 8,
    }


@require_safe
def run(request: DashboardRequest, run_id: str) -> HttpResponse:
    """One run: head, figures, results a page at a time. htmx gets the list alone."""
    found = _run(request, run_id)
    fixed = frozen(found.pk)
    context = _list(request, found, fixed)
    if request.htmx and request.htmx.target == "results":
        return render(request, "dashboard/evaluate/_results.html", context)
    context |= _head(found)
    context["analysis"] = Analysis.objects.filter(run=found).first()
    context["models"] = [row.model.model_id for row in catalog_rows()]
    ci = browse.ci_run_of(found)
    context["ci"] = CIPanel(ci, len(fixed.questions)) if ci is not None else None
    context["comparison_models"] = fixed.grader.get("comparisonModels") or []
    context["others"] = browse.comparable_runs(found)
    context["cases"] = wire.case_statistics(selectors.case_tallies([found.pk]).get(found.pk, [])[:200])
    context["case_texts"] = {
        item["questionIndex"]: one_line(fixed.question_text(item["questionIndex"]) or "") for item in context["cases"]
    }
    return render(request, "dashboard/evaluate/run.html", context)


@dataclass(frozen=True, slots=True)
class CIPanel:
    """The hosted-style CI run around a run, with the number of its questions."""

    row: CIRun
    total: int

    @property
    def pass_rate(self) -> float | None:
        """Passed of all questions; None for a dataset without any."""
        return self.row.passed_questions / self.total if self.total else None

    @property
    def git(self) -> list[tuple[str, str]]:
        """What CI told about the commit."""
        given = self.row.git_context if isinstance(self.row.git_context, dict) else {}
        return [(str(key)[:60], str(value)[:300]) for key, value in list(given.items())[:12] if value]

    @property
    def violations(self) -> list[str]:
        """The first broken thresholds in words."""
        found = []
        for item in self.row.violations[:_VIOLATIONS]:
            if isinstance(item, dict):
                values = {
                    "case": int(item.get("question_index") or 0) + 1,
                    "metric": item.get("metric") or "",
                    "actual": rating_text(item.get("actual")),
                    "threshold": rating_text(item.get("threshold")),
                    "question": one_line(str(item.get("question_text") or "")),
                }
                found.append(gettext("Case %(case)d: %(metric)s %(actual)s below %(threshold)s. %(question)s") % values)
        return found

    @property
    def more(self) -> int:
        """How many are not listed."""
        return max(len(self.row.violations) - _VIOLATIONS, 0)


@require_safe
def run_models(request: DashboardRequest, run_id: str) -> HttpResponse:
    """The models that answered a run side by side; asked for by the page once it stands, for it reads every result."""
    found = _run(request, run_id)
    context = {"models": report.sovereignty(found), "mark": pass_mark(frozen(found.pk).grader)}
    return render(request, "dashboard/evaluate/_models.html", context)


@require_safe
def run_progress(request: DashboardRequest, run_id: str) -> HttpResponse:
    """The head of a run in progress, asked for again every two seconds; it stops asking once the run has ended."""
    return render(request, "dashboard/evaluate/_progress.html", _head(_run(request, run_id)))


@dataclass(frozen=True, slots=True)
class ScorerLine:
    """One more verdict on a result: an extra judge's or a code scorer's. `value` None when there is none."""

    name: str
    value: float | None
    text: str
    failed: bool = False


def _judge_lines(row: Result) -> list[ScorerLine]:
    lines = []
    for item in row.judge_scorer_results if isinstance(row.judge_scorer_results, list) else []:
        if isinstance(item, dict):
            skipped = item.get("status") == "skipped"
            text = str(item.get("justification") or "")
            lines.append(
                ScorerLine(str(item.get("name") or ""), None if skipped else item.get("rating"), text, skipped)
            )
    return lines


def _code_lines(row: Result) -> list[ScorerLine]:
    lines = []
    for item in row.code_scorer_results if isinstance(row.code_scorer_results, list) else []:
        if isinstance(item, dict):
            error = item.get("error")
            text = str(error or item.get("reasoning") or "")
            lines.append(ScorerLine(str(item.get("name") or ""), item.get("score"), text, bool(error)))
    return lines


def _readable(value: Any) -> str:
    """A stored value as text: words as they are, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


@require_safe
def run_result(request: DashboardRequest, run_id: str, result_id: str) -> HttpResponse:
    """One result in full, for the row that is opened: both texts, every verdict, the repetitions, the trace."""
    found = _run(request, run_id)
    row = browse.get_result(found, result_id)
    if row is None:
        raise Http404
    fixed = frozen(found.pk)
    main = fixed.main_question(row.question_index)
    expected = main.get("expectedResults")
    answer = output_text(row.output)
    repetitions = browse.repetitions(row)
    context = {
        "run": found,
        "row": row,
        "question": question_of(row, fixed),
        "original": fixed.question_text(row.question_index) if row.is_variant else "",
        "expected": expected if isinstance(expected, str) and expected.strip() else "",
        "guideline": main.get("judgeGuideline") if isinstance(main.get("judgeGuideline"), str) else "",
        "answer": answer if answer is not None else _readable(row.output),
        "error": row.error if isinstance(row.error, dict) else None,
        "retrieval": _readable(row.retrieval_context),
        "metadata": json.dumps(row.metadata, ensure_ascii=False) if row.metadata else "",
        "judges": _judge_lines(row),
        "codes": _code_lines(row),
        "primary": "" if fixed.grader.get("group") else (fixed.grader.get("primary") or {}).get("name") or "",
        "mark": pass_mark(fixed.grader),
        "value": FAILED_RATING if row.status == Result.Status.FAILED else row.rating,
        "repetitions": repetitions if len(repetitions) > 1 else [],
    }
    return render(request, "dashboard/evaluate/_result.html", context)


@require_POST
def run_analyze(request: DashboardRequest, run_id: str) -> HttpResponse:
    """Have the run analysed by up to three judges and come back to its page; it asks models and takes its time."""
    found = _run(request, run_id)
    models = [name for name in request.POST.getlist("judge") if name.strip()][:3]
    body: dict[str, Any] = {"qualityMode": request.POST.get("quality", "")}
    if models:
        body["judges"] = [{"model": name[:200]} for name in models]
    stored = analysis.analyze(project=request.project, run_id=found.pk, body=body)
    if stored.status == "failed":
        messages.error(request, stored.failure)
    else:
        messages.success(request, gettext("The analysis is written."))
    return redirect(f"{reverse('dashboard:run', args=[found.pk])}#analysis")
