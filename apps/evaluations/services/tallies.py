"""The running figures of a run, kept in the transaction that scores a result, so that no reader counts rows.

A failed result (the agent's own error) counts as 0 everywhere, one that could not be judged counts nowhere, and so does
a paraphrase variant (EVAL-043, EVAL-044, EVAL-072, EVAL-080).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import F, FloatField, Value
from django.db.models.functions import Coalesce, Greatest, Least

from apps.evaluations.models import CaseTally, Result, Run, ScorerTally
from apps.evaluations.services.scoring import Outcome, Verdict, verdicts

FAILED_RATING = 0.0
MAX_WARNINGS = 20


def rated_value(status: str, rating: float | None) -> float | None:
    """What a result contributes to averages; None when it does not count."""
    if status == Result.Status.FAILED:
        return FAILED_RATING
    return rating if status == Result.Status.SCORED else None


def add(row: Result, outcome: Outcome, grader: dict[str, Any]) -> None:
    """Count a result that was just scored; inside the caller's transaction.

    The run's row is touched first and stays locked to the end of the transaction, so the rows below it have one writer.
    """
    value = None if row.is_variant else rated_value(outcome.status, outcome.rating)
    changes: dict[str, Any] = {"result_count": F("result_count") + 1}
    if row.is_variant:
        changes["variants"] = F("variants") + 1
    elif outcome.status == Result.Status.SKIPPED:
        changes["skipped"] = F("skipped") + 1
    elif outcome.status == Result.Status.FAILED:
        changes["failed"] = F("failed") + 1
    Run.objects.filter(pk=row.run_id).update(**changes, **(_plus(value) if value is not None else {}))
    if outcome.warnings:
        _warn(row.run_id, outcome.warnings)
    if row.is_variant:
        return
    if value is not None and row.question_index is not None:
        _add_to_case(row.run_id, row.question_index, value)
    for verdict in _extra_verdicts(outcome, grader):
        if verdict.rating is not None:
            _add_to_scorer(row.run_id, verdict)


def _warn(run_id: str, texts: list[str]) -> None:
    """Keep what a person should know about the run, each text once."""
    known: list[str] = Run.objects.values_list("warnings", flat=True).get(pk=run_id)
    fresh = [text for text in dict.fromkeys(texts) if text not in known]
    if fresh and len(known) < MAX_WARNINGS:
        Run.objects.filter(pk=run_id).update(warnings=[*known, *fresh][:MAX_WARNINGS])


def judges_of(grader: dict[str, Any]) -> list[tuple[str, str]]:
    """(id, name) of every judge beside the primary: extra judges, or the judge members of a group, in order."""
    group = grader.get("group")
    if group:
        return [(item["refId"], item.get("name") or "") for item in group["members"] if item["kind"] == "judge"]
    return [(item["id"], item["name"]) for item in grader.get("extras") or []]


def _extra_verdicts(outcome: Outcome, grader: dict[str, Any]) -> Iterable[Verdict]:
    if outcome.status != Result.Status.FAILED:
        return verdicts(outcome.judge_scorer_results)
    # An answer that was never given is a 0 under every judge, or a gate on one of them would pass on errors alone.
    return [
        Verdict(scorer_id, name, FAILED_RATING, position)
        for position, (scorer_id, name) in enumerate(judges_of(grader))
    ]


def _plus(value: float) -> dict[str, Any]:
    number = Value(value, output_field=FloatField())
    return {
        "rated": F("rated") + 1,
        "rating_sum": F("rating_sum") + value,
        "rating_squares": F("rating_squares") + value * value,
        "rating_min": Least(Coalesce(F("rating_min"), number), number),
        "rating_max": Greatest(Coalesce(F("rating_max"), number), number),
    }


def _add_to_case(run_id: str, question_index: int, value: float) -> None:
    rows = CaseTally.objects.filter(run_id=run_id, question_index=question_index)
    if not rows.update(**_plus(value)):
        CaseTally.objects.create(
            run_id=run_id,
            question_index=question_index,
            rated=1,
            rating_sum=value,
            rating_squares=value * value,
            rating_min=value,
            rating_max=value,
        )


def _add_to_scorer(run_id: str, verdict: Verdict) -> None:
    assert verdict.rating is not None
    value = verdict.rating
    rows = ScorerTally.objects.filter(run_id=run_id, scorer_id=verdict.scorer_id)
    if not rows.update(**_plus(value)):
        ScorerTally.objects.create(
            run_id=run_id,
            scorer_id=verdict.scorer_id[:40],
            name=verdict.name[:320],
            position=verdict.position,
            rated=1,
            rating_sum=value,
            rating_squares=value * value,
            rating_min=value,
            rating_max=value,
        )
