"""Hosted-style CI runs: every question passes or fails by rules, and the share that passed is the gate (EVAL-257..291).

A CI run is an ordinary run of the dataset with a CIRun row beside it. Whether a question passed is a pure function of
its stored result and the rules, so nothing about it is kept twice. Error texts of status 400 never hold the letters
"ci" unless CI is what they are about: the published client tells the two apart by them (EVAL-267).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.api.bodies import is_number
from apps.core.api.errors import APIError, NotFound
from apps.core.ids import is_id
from apps.core.jobs import enqueue
from apps.datasets import selectors as datasets
from apps.datasets.grading import ci_settings
from apps.datasets.models import Dataset
from apps.datasets.questions import clean, query_of
from apps.evaluations.models import CIRun, Result, Run
from apps.evaluations.selectors import CI_RUN
from apps.evaluations.services import finalize as closing
from apps.evaluations.services import results, runs
from apps.evaluations.services.snapshot import frozen
from apps.evaluations.services.submissions import Submission
from apps.projects.models import Project
from apps.scorers.grading import resolve_grader

LIFETIME = timedelta(hours=2)
GIT_KEYS = ("branch", "commitSha", "prNumber", "repoUrl", "triggeredBy")
# Rule name -> column of the result and metric of the grader that fills it.
METRICS = {
    "vectorSimilarity": ("vector_similarity", "vector"),
    "jaccardSimilarity": ("jaccard_similarity", "jaccard"),
    "bleuScore": ("bleu_score", "bleu"),
    "rougeScore": ("rouge_score", "rouge"),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """One question by the rules; `violations` is empty when it passed."""

    row: Result
    passed: bool
    violations: list[dict[str, Any]]


def dataset_for(project: Project, dataset_id: Any) -> Dataset:
    """The dataset an id of the family names: its own id or that of its grading config.

    Raises 400 without an id, 404 for an unknown one, and 400 when CI is off or there is nothing to ask.
    """
    if not isinstance(dataset_id, str) or not dataset_id.strip():
        raise APIError("dataset_id is required")
    dataset = datasets.get_dataset(project, dataset_id) or datasets.dataset_of_grading(project, dataset_id)
    if dataset is None:
        raise NotFound("Dataset not found")
    if not ci_settings(dataset.ci).enabled:
        raise APIError("CI is not enabled for this dataset: set ci.enabled to true")
    if not dataset.questions:
        raise APIError("Dataset has no questions")
    return dataset


def test_cases(dataset: Dataset) -> list[dict[str, Any]]:
    """`[{ index, query }]` of the main questions in order; the text is null when inputs are hidden."""
    shown = ci_settings(dataset.ci).expose_test_inputs
    return [{"index": at, "query": query_of(case) if shown else None} for at, case in enumerate(dataset.questions)]


def create(*, project: Project, body: Mapping[str, Any]) -> tuple[CIRun, Dataset]:
    """Open a CI run (source 1:3016-3047, 1:4467-4512). No judge is asked here; it expires in two hours."""
    dataset = dataset_for(project, body.get("dataset_id"))
    threshold = body.get("pass_rate_threshold")
    if threshold is not None and not (is_number(threshold) and 0 <= threshold <= 1):
        raise APIError("pass_rate_threshold must be a number from 0.0 to 1.0")
    settings = ci_settings(dataset.ci)
    grader = resolve_grader(
        project, evaluation_settings_id=None, additional_scorer_ids=None, scorer_group_id=None, dataset=dataset
    )
    stated = (dataset.ci or {}).get("thresholds") or grader.get("thresholds") or {}
    rules = {key: float(value) for key, value in stated.items() if key == "rating" or key in METRICS}
    for key in rules:
        if key in METRICS:
            # A rule needs its figure, whether or not the dataset shows that metric in ordinary runs.
            grader["primary"]["metrics"][METRICS[key][1]] = True
    name = body.get("agent_name")
    agent = clean(name)[:300] if isinstance(name, str) else ""
    with transaction.atomic():
        run = runs.create(
            project=project,
            dataset=dataset,
            grader=grader,
            subject={"kind": "custom_agent", "displayName": agent} if agent else None,
            run_source=CI_RUN,
            with_variants=False,
        )
        row = CIRun.objects.create(
            id=run.pk,
            project=project,
            run=run,
            agent_name=agent,
            pass_rate_threshold=float(threshold) if threshold is not None else settings.pass_rate_threshold,
            rules=rules or {"rating": 7.0},
            fail_fast=settings.fail_fast,
            expose_inputs=settings.expose_test_inputs,
            webhook_url=settings.webhook_url or "",
            git_context=_git_context(body.get("git_context")),
            expires_at=timezone.now() + LIFETIME,
        )
    return row, dataset


def _git_context(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    return {key: clean(value[key]) for key in GIT_KEYS if value.get(key) is not None} or None


def get(*, project: Project, run_id: str) -> CIRun:
    """A CI run of the project, marked as failed when its time has run out. Raises 404."""
    rows = CIRun.objects.filter(project=project).select_related("run").defer("run__snapshot", "run__grader")
    row = rows.filter(pk=run_id).first() if is_id(run_id) else None
    if row is None:
        raise NotFound("Run not found")
    if row.finalized_at is None and timezone.now() >= row.expires_at:
        with transaction.atomic():
            CIRun.objects.filter(pk=row.pk, finalized_at=None).update(gate="fail", finalized_at=row.expires_at)
            Run.objects.filter(pk=row.pk, status=Run.Status.IN_PROGRESS).update(
                status=Run.Status.FAILED, finalized_at=row.expires_at
            )
        row = rows.get(pk=run_id)
    return row


def expired(row: CIRun) -> bool:
    """Whether the run ended because its two hours were over."""
    return row.finalized_at is not None and row.finalized_at == row.expires_at


def submit(*, project: Project, run_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Judge one answer: `{ question_index, rating, justification, passed, gate_fired }` (source 1:4507-4556).

    An error text or an empty answer is an answer like any other. A question sent again keeps its first verdict. Raises
    404, 410 after expiry, 409 after finalize and 400 for an index out of range.
    """
    row = get(project=project, run_id=run_id)
    index = body.get("question_index")
    if expired(row):
        raise APIError("The run has expired", 410)
    if row.finalized_at is not None:
        if row.gate_fired:
            return _reply(index if isinstance(index, int) else 0, 0, "The gate had already failed.", False, True)
        raise APIError("The run is already finalized", 409)
    questions = frozen(row.pk).questions
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(questions):
        raise APIError("question_index is out of range")
    if "output" not in body:
        raise APIError("output is required")
    key = f"{row.pk}:case-{index}:run-1"
    results.judge_all(project, row.pk, "hosted", [_submission(key, index, questions[index], body)])
    judged = _by_rules(row, Result.objects.get(run_id=row.pk, idempotency_key=key), questions)
    fired = False
    if not judged.passed and row.fail_fast:
        _close(row.pk, fired=True)
        fired = True
    stored = judged.row
    return _reply(index, stored.rating, stored.justification, judged.passed, fired)


def _reply(index: int, rating: float | None, why: str | None, passed: bool, fired: bool) -> dict[str, Any]:
    return {
        "question_index": index,
        "rating": shown_rating(rating),
        "justification": why or "",
        "passed": passed,
        "gate_fired": fired,
    }


def shown_rating(rating: float | None) -> int:
    """The family's ratings are whole numbers from 0 to 10; an answer that could not be judged shows 0 (EVAL-276)."""
    return int((rating or 0.0) + 0.5)


def _submission(key: str, index: int, case: dict[str, Any], body: Mapping[str, Any]) -> Submission:
    output = body.get("output")
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    latency: Any = body.get("latency_ms")
    return Submission(
        idempotency_key=key,
        case_id=f"case-{index}",
        question_index=index,
        run_number=1,
        # The stored question, not the submitted one: with hidden inputs the client sends an empty text.
        input={"query": query_of(case)},
        output={"text": clean(text)},
        error=None,
        latency_ms=float(latency) if is_number(latency) and latency >= 0 else None,
        input_tokens=None,
        output_tokens=None,
        trace_id=None,
        retrieval_context=None,
        metadata=None,
        observable_trace=None,
        is_variant=False,
        variant_text=None,
    )


def _by_rules(row: CIRun, result: Result, questions: list[dict[str, Any]]) -> Judged:
    index = result.question_index or 0
    case = questions[index] if index < len(questions) else {}
    expects = bool((case.get("main_question") or {}).get("expectedResults"))
    violations = []
    for metric, threshold in row.rules.items():
        if metric == "rating":
            actual = result.rating
        elif not expects:
            continue
        else:
            actual = getattr(result, METRICS[metric][0])
        if actual is None or actual < threshold:
            violations.append(
                {
                    "question_index": index,
                    "metric": metric,
                    "threshold": threshold,
                    "actual": actual if actual is not None else 0.0,
                    "question_text": query_of(case) if case else "",
                }
            )
    return Judged(result, not violations, violations)


def finalize(*, project: Project, run_id: str) -> dict[str, Any]:
    """Close the run and answer with its gate; repeating it answers the same (source 1:4478-4518). Raises 404 and 410."""
    row = get(project=project, run_id=run_id)
    if expired(row):
        raise APIError("The run has expired", 410)
    if row.finalized_at is None:
        _close(row.pk, fired=False)
        row = get(project=project, run_id=run_id)
    return document(row)


def _close(run_id: str, *, fired: bool) -> None:
    """Fix the gate once, whoever comes first, and have the webhook sent."""
    questions = frozen(run_id).questions
    with transaction.atomic():
        row = CIRun.objects.select_for_update().get(pk=run_id)
        if row.finalized_at is not None:
            return
        judged = [_by_rules(row, result, questions) for result in _answered(run_id)]
        row.passed_questions = sum(1 for item in judged if item.passed)
        row.violations = [violation for item in judged for violation in item.violations]
        passed = not fired and row.passed_questions / max(len(questions), 1) >= row.pass_rate_threshold
        row.gate = "pass" if passed else "fail"
        row.gate_fired = fired
        row.finalized_at = timezone.now()
        row.save(update_fields=["passed_questions", "violations", "gate", "gate_fired", "finalized_at"])
        if fired:
            Run.objects.filter(pk=run_id).update(status=Run.Status.FAILED, finalized_at=row.finalized_at)
        closing.finalize(project=row.project, run_id=run_id)
        if row.webhook_url:
            enqueue("apps.evaluations.tasks.send_ci_webhook", run_id=run_id)


def _answered(run_id: str) -> list[Result]:
    rows = Result.objects.filter(run_id=run_id).exclude(status=Result.Status.PENDING)
    return list(rows.order_by("question_index", "id"))


def document(row: CIRun) -> dict[str, Any]:
    """A finalized run: gate, pass rate, scores and violations."""
    questions = frozen(row.pk).questions
    return {
        "run_id": row.pk,
        "gate": row.gate,
        "pass_rate": row.passed_questions / max(len(questions), 1),
        "total_questions": len(questions),
        "passed_questions": row.passed_questions,
        "scores": scores(row),
        "violations": row.violations,
        "finalized_at": row.finalized_at,
    }


def scores(row: CIRun) -> list[dict[str, Any]]:
    """One row an answered question; its text is null when inputs are hidden."""
    questions = frozen(row.pk).questions
    found = []
    for result in _answered(row.pk):
        judged = _by_rules(row, result, questions)
        asked = result.input.get("query") if isinstance(result.input, dict) else None
        found.append(
            {
                "question_index": result.question_index,
                "rating": shown_rating(result.rating),
                "justification": result.justification or "",
                "passed": judged.passed,
                "input": asked if row.expose_inputs else None,
                "output": result.output.get("text") if isinstance(result.output, dict) else None,
            }
        )
    return found


def state(row: CIRun) -> dict[str, Any]:
    """Where a run stands (source 1:4558-4569); `gate` is null while it is open."""
    status = "in_progress"
    if row.finalized_at is not None:
        status = "failed" if row.gate_fired or expired(row) else "completed"
    return {
        "run_id": row.pk,
        "status": status,
        "gate": row.gate or None,
        "results_submitted": len(_answered(row.pk)),
        "total_questions": len(frozen(row.pk).questions),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "finalized_at": row.finalized_at,
        "git_context": row.git_context,
    }
