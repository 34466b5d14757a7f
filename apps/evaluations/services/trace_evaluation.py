"""Grade a recorded trace without calling the agent: a run of one result (EVAL-224..230; source 1:1543-1603)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.core.api.errors import APIError, NotFound
from apps.core.ids import is_id
from apps.datasets import selectors as datasets
from apps.datasets.models import Dataset
from apps.datasets.services.turns import answer_of, question_of
from apps.evaluations.models import Result, Run
from apps.evaluations.selectors import TRACE_EVALUATION
from apps.evaluations.services import finalize, snapshot
from apps.evaluations.services.results import judge_row
from apps.projects.models import Project
from apps.scorers import selectors as scorers
from apps.scorers.grading import resolve_grader
from apps.tracing import selectors as traces
from apps.tracing.store.reads import SpanRow


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """What the grader said; `rating` is None when nothing could be rated, and `justification` then says why."""

    run_id: str
    trace_id: str
    rating: float | None
    justification: str | None


def evaluate_trace(*, project: Project, trace_id: str, body: dict[str, Any]) -> TraceVerdict:
    """Judge a trace's recorded input and output by a dataset's own grading or by a judge scorer.

    `body` needs `datasetId`, the id of a dataset, of its grading config, or of a judge scorer; `question_index` is
    accepted and ignored, so no question's expected result takes part. Raises 400 and 404 with the documented texts.
    """
    wanted = body.get("datasetId")
    if not isinstance(wanted, str) or not wanted.strip() or not trace_id.strip():
        raise APIError("traceId and datasetId are required")
    trace = traces.get_span(project, trace_id) if is_id(trace_id) else None
    if trace is None:
        raise NotFound("Trace not found")
    dataset, grader = _grader(project, wanted)
    run = _create(project, trace, wanted, dataset, grader)
    row = run.results.get()
    judge_row(project, snapshot.frozen(run.pk), row)
    finalize.finalize(project=project, run_id=run.pk)
    row.refresh_from_db(fields=["rating", "justification", "error"])
    justification = row.justification or (str(row.error.get("message")) if row.error else None)
    return TraceVerdict(run.pk, trace.id, row.rating, justification)


def _grader(project: Project, wanted: str) -> tuple[Dataset, dict[str, Any]]:
    """The dataset and frozen grader an id stands for; a judge scorer is given an unsaved dataset without cases."""
    dataset = datasets.get_dataset(project, wanted) or datasets.dataset_of_grading(project, wanted)
    settings_id: str | None = None
    if dataset is None:
        scorer = scorers.get_judge_scorer(project, wanted)
        if scorer is None:
            raise NotFound("Dataset or evaluator config not found")
        dataset = Dataset(project=project, name=scorer.name)
        settings_id = scorer.pk
    grader = resolve_grader(
        project,
        evaluation_settings_id=settings_id,
        additional_scorer_ids=None,
        scorer_group_id=None,
        dataset=dataset,
    )
    return dataset, grader


@transaction.atomic
def _create(project: Project, trace: SpanRow, wanted: str, dataset: Dataset, grader: dict[str, Any]) -> Run:
    query, answer = question_of(trace), answer_of(trace)
    settings_id = grader.get("evaluationSettingsId")
    saved = settings_id is None
    run = Run.objects.create(
        project=project,
        dataset_id=dataset.pk if saved else wanted,
        dataset_name=dataset.name,
        dataset_version=snapshot.version_of(dataset) if saved else None,
        # One question, the recorded one: the cases of the dataset and what they expect take no part.
        snapshot=snapshot.freeze(dataset) | {"questions": [{"main_question": {"query": query}}]},
        evaluation_settings_id=settings_id,
        grader=grader,
        subject={"kind": "trace_evaluation", "displayName": trace.name, "framework": trace.framework or "other"},
        run_source=TRACE_EVALUATION,
        expected_results=1,
    )
    failed = answer is None and trace.error
    Result.objects.create(
        run=run,
        idempotency_key=f"{run.pk}:trace:{trace.id}",
        batch_id="trace-evaluation",
        case_id="case-0",
        question_index=0,
        input={"query": query},
        output={"text": answer or ""},
        error={"type": "TraceError", "message": trace.error} if failed else None,
        latency_ms=trace.latency_ms,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        trace_id=trace.id,
    )
    return run
