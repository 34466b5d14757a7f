"""Reads of an analysis: status, and the report with the statistics and low-scoring cases (EVAL-203..221)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from apps.core.api.errors import NotFound
from apps.evaluations import selectors
from apps.evaluations.models import Analysis, Result, Run
from apps.evaluations.services.scoring import output_text
from apps.evaluations.services.snapshot import frozen
from apps.evaluations.services.tallies import rated_value
from apps.projects.models import Project

LOW_RATING = 5
MISSING = "No analysis found for this run. POST /runs/:runId/analyze first."


def analysis_of(project: Project, run_id: str) -> tuple[Run, Analysis | None]:
    """A run and its analysis; raises 404 `Run not found`."""
    run = selectors.get_run(project, run_id)
    if run is None:
        raise NotFound("Run not found")
    return run, Analysis.objects.filter(run_id=run.pk).first()


def status_document(run: Run, analysis: Analysis | None) -> dict[str, Any]:
    """Where the analysis stands (source 1:503-510); what a queue would report is static here."""
    failed = analysis is not None and analysis.status == "failed"
    return {
        "evaluationId": run.pk,
        "jobId": run.pk,
        "status": analysis.status if analysis else "not_started",
        "progress": {"overallPercentage": 100 if analysis else 0, "currentLevel": None, "levels": {}},
        "failureReason": (
            {"code": "ANALYSIS_FAILED", "message": analysis.failure, "retryable": True} if analysis and failed else None
        ),
        "warnings": analysis.warnings if analysis else [],
        "cost": None,
        "etaUpdatedAt": None,
        "overflowStats": None,
    }


def report_document(project: Project, run_id: str, dashboard_url: str) -> dict[str, Any]:
    """The whole report, narrative keys at the top; raises 404 for a run that is unknown or was never analysed."""
    run, analysis = analysis_of(project, run_id)
    if analysis is None:
        raise NotFound(MISSING)
    document: dict[str, Any] = {
        **(analysis.report or {}),
        "runId": run.pk,
        "datasetId": run.dataset_id,
        "status": analysis.status,
        "statistics": analysis.statistics,
        "lowScoringCases": low_scoring(run),
        "dashboardUrl": dashboard_url,
    }
    if matrix := sovereignty(run):
        document["sovereigntyIndex"] = {"enabled": True, "models": matrix}
    return document


def low_scoring(run: Run) -> list[dict[str, Any]]:
    """`[{ query, response, rating, justification }]` of ratings of 5 or below, failed results among them, worst first."""
    fixed = frozen(run.pk)
    rows = selectors.rated_rows([run.pk]).only(
        "question_index", "input", "output", "rating", "status", "justification", "error"
    )
    found = []
    for row in rows.order_by("question_index", "run_number", "id"):
        rating = rated_value(row.status, row.rating)
        if rating is None or rating > LOW_RATING:
            continue
        error = row.error or {}
        query = row.input.get("query") if isinstance(row.input, dict) else None
        found.append(
            {
                "query": fixed.question_text(row.question_index) or query or "",
                "response": output_text(row.output) or "",
                "rating": rating,
                "justification": (
                    f"{error.get('type', 'Error')}: {error.get('message', '')}"
                    if row.status == Result.Status.FAILED
                    else row.justification or ""
                ),
            }
        )
    found.sort(key=lambda item: float(item["rating"]))
    return found


def sovereignty(run: Run) -> list[dict[str, Any]]:
    """One row a model that results are tagged with, the first one seen as the baseline (EVAL-219)."""
    rows = (
        selectors.accepted([run.pk])
        .filter(is_variant=False, metadata__isnull=False)
        .order_by("id")
        .only(
            "metadata",
            "status",
            "rating",
            "latency_ms",
            "input_tokens",
            "output_tokens",
            "vector_similarity",
            "jaccard_similarity",
            "bleu_score",
            "rouge_score",
        )
    )
    by_model: dict[str, list[Result]] = defaultdict(list)
    for row in rows:
        model = row.metadata.get("model") if isinstance(row.metadata, dict) else None
        if isinstance(model, str) and model:
            by_model[model].append(row)
    return [_model_row(model, results, at == 0) for at, (model, results) in enumerate(by_model.items())]


def _model_row(model: str, results: list[Result], baseline: bool) -> dict[str, Any]:
    ratings = [value for row in results if (value := rated_value(row.status, row.rating)) is not None]
    average = _mean(ratings)
    return {
        "model": model,
        "provider": None,
        "isBaseline": baseline,
        "runCount": len(results),
        "averageRating": average,
        "minRating": min(ratings, default=None),
        "maxRating": max(ratings, default=None),
        "ratingVariance": (
            round(sum((value - average) ** 2 for value in ratings) / len(ratings), 2) if average is not None else None
        ),
        "averageVectorSimilarity": _mean([row.vector_similarity for row in results]),
        "averageJaccardSimilarity": _mean([row.jaccard_similarity for row in results]),
        "averageBleuScore": _mean([row.bleu_score for row in results]),
        "averageRougeScore": _mean([row.rouge_score for row in results]),
        "averageLatencyMs": _mean([row.latency_ms for row in results]),
        "totalInputTokens": sum(row.input_tokens or 0 for row in results),
        "totalOutputTokens": sum(row.output_tokens or 0 for row in results),
    }


def _mean(values: list[float | None] | list[float]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def record_document(project: Project, run_id: str) -> dict[str, Any]:
    """The dashboard's spelling of the same: the analysis nested in the evaluation (sdk evaluations/client.py:609-640)."""
    run, analysis = analysis_of(project, run_id)
    return {
        "_id": run.pk,
        "runId": run.pk,
        "datasetId": run.dataset_id,
        "status": run.status,
        "analysis": (
            {
                "status": analysis.status,
                "statistics": analysis.statistics,
                "analysis": {**(analysis.report or {}), "lowScoringCases": low_scoring(run)},
            }
            if analysis
            else None
        ),
    }
