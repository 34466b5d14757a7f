"""Reads of runs, results and gates. Every read by id is scoped by the project it is given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import Avg, Case, Exists, F, FloatField, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from apps.core.ids import is_id
from apps.evaluations.models import CaseTally, GateVerdict, Result, Run, ScorerTally
from apps.evaluations.services.scoring import verdicts
from apps.evaluations.services.tallies import FAILED_RATING
from apps.projects.models import Project

# The large frozen columns, which almost no reader needs.
FROZEN = ("snapshot", "grader")
LISTED_RUNS = 50
LISTED_GATES = 50
TRACE_EVALUATION = "trace-eval"
CI_RUN = "ci-run"

# What a rated row contributes to an average: a failed one counts as 0 although its rating is null (EVAL-072).
RATED_VALUE = Case(
    When(status=Result.Status.FAILED, then=Value(FAILED_RATING)),
    default=F("rating"),
    output_field=FloatField(),
)
_IS_RATED = Q(is_variant=False) & (
    Q(status=Result.Status.FAILED) | Q(status=Result.Status.SCORED, rating__isnull=False)
)


def runs_of(project: Project) -> QuerySet[Run]:
    """The project's runs, newest first, without their frozen parts."""
    return Run.objects.filter(project=project).defer(*FROZEN).order_by("-id")


def get_run(project: Project, run_id: str) -> Run | None:
    """One run of the project without its frozen part, or None."""
    return runs_of(project).filter(pk=run_id).first() if is_id(run_id) else None


def documents(project: Project) -> QuerySet[Run]:
    """Runs for `wire.run_documents`: the snapshot as JSON text in `snapshot_text`, the grader decoded."""
    return (
        Run.objects.filter(project=project)
        .defer("snapshot")
        .annotate(snapshot_text=Cast("snapshot", TextField()))
        .order_by("-id")
    )


def accepted(run_ids: Iterable[str]) -> QuerySet[Result]:
    """The results that have their verdict; pending ones are nobody's business yet."""
    return Result.objects.filter(run_id__in=run_ids).exclude(status=Result.Status.PENDING)


def rated_rows(run_ids: Iterable[str]) -> QuerySet[Result]:
    """The rows that count in averages: scored and failed ones, no variants, nothing skipped."""
    return Result.objects.filter(_IS_RATED, run_id__in=run_ids)


def submitted_keys(run_id: str) -> list[str]:
    """The idempotency keys that have their verdict, oldest first."""
    return list(accepted([run_id]).order_by("id").values_list("idempotency_key", flat=True))


def average_rating(run_id: str) -> float | None:
    """The mean over the rated rows as they are stored now; None when there is none."""
    found: float | None = rated_rows([run_id]).aggregate(value=Avg(RATED_VALUE))["value"]
    return found


def case_means(run_id: str) -> dict[int, float]:
    """The mean rating of every rated case by its question index, repetitions averaged."""
    rows = rated_rows([run_id]).filter(question_index__isnull=False).values_list("question_index")
    return {index: value for index, value in rows.annotate(value=Avg(RATED_VALUE)).order_by() if value is not None}


def scorer_ratings(run_id: str, scorer_id: str) -> tuple[list[float], dict[int, float]]:
    """(ratings, mean by question index) of one extra judge, read from the stored verdicts; failed rows are 0."""
    ratings: list[float] = []
    by_case: dict[int, list[float]] = defaultdict(list)
    rows = accepted([run_id]).filter(is_variant=False).values_list("status", "question_index", "judge_scorer_results")
    for status, index, results in rows.iterator(chunk_size=2_000):
        value: float | None = None
        if status == Result.Status.FAILED:
            value = FAILED_RATING
        else:
            value = next((item.rating for item in verdicts(results) if item.scorer_id == scorer_id), None)
        if value is None:
            continue
        ratings.append(value)
        if index is not None:
            by_case[index].append(value)
    return ratings, {index: sum(values) / len(values) for index, values in by_case.items()}


def baseline_of(run: Run, scorer_id: str | None = None) -> Run | None:
    """The run that `run` must not regress against: the dataset's newest completed run with ratings created before it.

    Trace evaluations and hosted CI runs never are (EVAL-167, EVAL-168). With a scorer the newest in which that scorer
    has ratings, as the primary or beside it (EVAL-171).
    """
    earlier = (
        Run.objects.filter(
            project_id=run.project_id, dataset_id=run.dataset_id, status=Run.Status.COMPLETED, pk__lt=run.pk
        )
        .exclude(run_source__in=(TRACE_EVALUATION, CI_RUN))
        .defer(*FROZEN)
        .order_by("-id")
    )
    rated = Exists(Result.objects.filter(_IS_RATED, run_id=OuterRef("pk")))
    if scorer_id is None:
        return earlier.filter(rated).first()
    beside = Exists(ScorerTally.objects.filter(run_id=OuterRef("pk"), scorer_id=scorer_id, rated__gt=0))
    return earlier.filter(beside | (Q(evaluation_settings_id=scorer_id) & rated)).first()


def latest_completed(project: Project, dataset_id: str) -> Run | None:
    """The dataset's newest completed run that a gate can judge, or None."""
    return (
        runs_of(project)
        .filter(dataset_id=dataset_id, status=Run.Status.COMPLETED)
        .exclude(run_source__in=(TRACE_EVALUATION, CI_RUN))
        .first()
    )


def gates_of(project: Project) -> QuerySet[GateVerdict]:
    """Recorded gate verdicts, newest first."""
    return GateVerdict.objects.filter(project=project).order_by("-id")


def case_tallies(run_ids: Iterable[str]) -> dict[str, list[CaseTally]]:
    """Tallies by run of the cases with two or more rated rows, in the order of the questions."""
    found: dict[str, list[CaseTally]] = defaultdict(list)
    for row in CaseTally.objects.filter(run_id__in=run_ids, rated__gte=2).order_by("question_index"):
        found[row.run_id].append(row)
    return found


def scorer_tallies(run_ids: Iterable[str]) -> dict[str, dict[str, ScorerTally]]:
    """Tallies of extra judges by run and scorer id."""
    found: dict[str, dict[str, ScorerTally]] = defaultdict(dict)
    for row in ScorerTally.objects.filter(run_id__in=run_ids):
        found[row.run_id][row.scorer_id] = row
    return found


def wire_rows(run_ids: Iterable[str]) -> QuerySet[Result, tuple[Any, ...]]:
    """The columns of `wire.ResultRow` after the run's id, JSON as text: newest run first, then questions and repetitions."""
    return (
        accepted(run_ids)
        .order_by("-run_id", "question_index", "run_number", "id")
        .values_list(
            "run_id",
            "question_index",
            "run_number",
            Cast("input", TextField()),
            Cast("output", TextField()),
            "rating",
            "justification",
            "trace_id",
            "latency_ms",
            "input_tokens",
            "output_tokens",
            "vector_similarity",
            "jaccard_similarity",
            "bleu_score",
            "rouge_score",
            Cast("code_scorer_results", TextField()),
            Cast("judge_scorer_results", TextField()),
            "is_variant",
            "variant_text",
            "status",
            Cast("error", TextField()),
            Cast("metadata", TextField()),
            Cast("observable_trace", TextField()),
        )
    )
