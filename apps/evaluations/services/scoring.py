"""Between a stored result and the scorers: what they are given, and what comes back as columns of the row."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, InterfaceError

from apps.datasets.questions import clean
from apps.evaluations.models import Result
from apps.evaluations.services.snapshot import Frozen
from apps.projects.models import Project

logger = logging.getLogger(__name__)

INTERNAL_REASON = "Not judged: the server failed while scoring this answer. Its log says why."


@dataclass(slots=True)
class Outcome:
    """The verdicts on one answer. `rating` is None unless `status` is scored; the lists are None when there is none."""

    status: str
    rating: float | None = None
    justification: str | None = None
    raw_verdict: str = ""
    vector_similarity: float | None = None
    jaccard_similarity: float | None = None
    bleu_score: float | None = None
    rouge_score: float | None = None
    code_scorer_results: list[dict[str, Any]] | None = None
    judge_scorer_results: list[dict[str, Any]] | None = None
    judge_cost_usd: float | None = None
    # For the run, not for the row.
    warnings: list[str] = field(default_factory=list)

    def columns(self) -> dict[str, Any]:
        """The columns of the result row."""
        return {name: getattr(self, name) for name in Outcome.__slots__ if name != "warnings"}


@dataclass(slots=True)
class Verdict:
    """One extra judge's verdict, for the tallies: `rating` None when it could not score."""

    scorer_id: str
    name: str
    rating: float | None
    position: int = field(default=0)


def output_text(output: Any) -> str | None:
    """The answer's text of a stored output, None when there is none."""
    text = output.get("text") if isinstance(output, dict) else None
    return text if isinstance(text, str) else None


def failed(error: dict[str, Any] | None) -> Outcome:
    """The outcome of a result that carried an error: no judge, no metric, no scorer runs (EVAL-070, EVAL-102)."""
    message = error.get("message") if isinstance(error, dict) else None
    return Outcome(status=Result.Status.FAILED, justification=str(message) if message else None)


def score(project: Project, frozen: Frozen, row: Result) -> Outcome:
    """Judge a stored answer by the run's frozen grader. Only a database that is away raises; judges never do."""
    # Late: the scorers bring numpy and the sandbox, which a process that never judges does not need.
    from apps.scorers.scoring import Answer, score_answer

    query = row.input.get("query") if isinstance(row.input, dict) else None
    asked = row.variant_text if row.is_variant and row.variant_text else query
    answer = Answer(
        input=asked if isinstance(asked, str) else frozen.question_text(row.question_index) or "",
        output=output_text(row.output) or "",
        trace_id=row.trace_id,
        retrieval_context=row.retrieval_context,
    )
    try:
        scored = score_answer(project, frozen.grader, frozen.main_question(row.question_index), answer)
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        # A fault of ours in one scorer must not cost the run its other results, and must not become a number.
        logger.exception("a result could not be scored", extra={"run": row.run_id, "result": row.pk})
        return Outcome(status=Result.Status.SKIPPED, justification=INTERNAL_REASON)
    rating = _rating(scored.rating)
    status = scored.status
    if status == Result.Status.SCORED and rating is None:
        status = Result.Status.SKIPPED
    return Outcome(
        status=status,
        rating=rating if status == Result.Status.SCORED else None,
        justification=scored.justification,
        raw_verdict=scored.raw_verdict or "",
        vector_similarity=_finite(scored.vector_similarity),
        jaccard_similarity=_finite(scored.jaccard_similarity),
        bleu_score=_finite(scored.bleu_score),
        rouge_score=_finite(scored.rouge_score),
        code_scorer_results=clean(scored.code_scorer_results) or None,
        judge_scorer_results=clean(scored.judge_scorer_results) or None,
        judge_cost_usd=_finite(scored.judge_cost_usd),
        warnings=list(scored.warnings),
    )


def verdicts(results: Any) -> list[Verdict]:
    """The extra verdicts of a row's `judge_scorer_results`, in their order."""
    found = []
    for position, item in enumerate(results if isinstance(results, list) else []):
        if isinstance(item, dict) and isinstance(item.get("scorerId"), str):
            rating = _rating(item.get("rating")) if item.get("status", "scored") == "scored" else None
            found.append(Verdict(item["scorerId"], str(item.get("name") or ""), rating, position))
    return found


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _rating(value: Any) -> float | None:
    """A rating on the 0-10 scale; anything else is no rating, never clamped."""
    number = _finite(value)
    return number if number is not None and 0 <= number <= 10 else None
