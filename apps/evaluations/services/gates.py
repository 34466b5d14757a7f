"""The CI gate: pass or fail a run against a floor and against the run before it (source 1:126-256, 1:338-353).

The verdict is worked out anew on every call from the ratings as they are stored. What says how sure it is comes beside
it in `confidence` and never changes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import transaction

from apps.core.api.errors import APIError, NotFound
from apps.datasets.questions import clean
from apps.evaluations import selectors, statistics
from apps.evaluations.hooks import gate_failed
from apps.evaluations.models import GateVerdict, Run
from apps.evaluations.services.tallies import judges_of
from apps.projects.models import Project

DEFAULT_TOLERANCE = Decimal("0.5")
CALLER_LIMIT = 60
NO_CHECK = "At least one check is required: failUnder=<0-10> and/or noRegression=true"
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class GateQuery:
    """What a gate is asked: the checks, whether to record the verdict, under which label, and for which scorer."""

    fail_under: Decimal | None = None
    no_regression: bool = False
    tolerance: Decimal = DEFAULT_TOLERANCE
    record: bool = False
    caller: str | None = None
    scorer: str | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> GateQuery:
        """Read query parameters; raises 400 for numbers that are none and when no check is asked for."""
        fail_under = _number(query.get("failUnder"), "failUnder")
        tolerance = _number(query.get("tolerance"), "tolerance")
        no_regression = _yes(query.get("noRegression"))
        if fail_under is None and not no_regression:
            raise APIError(NO_CHECK)
        caller = clean(query.get("caller") or "").strip()[:CALLER_LIMIT]
        return cls(
            fail_under=fail_under,
            no_regression=no_regression,
            tolerance=DEFAULT_TOLERANCE if tolerance is None else tolerance,
            record=_yes(query.get("record")),
            caller=caller or None,
            scorer=query.get("scorer") or None,
        )


@dataclass(frozen=True, slots=True)
class _Score:
    """The gated average of a run, rounded to 2 decimals, and the means of its cases."""

    average: Decimal | None
    cases: dict[int, float]


def gate(*, project: Project, run_id: str, query: GateQuery) -> dict[str, Any]:
    """The verdict on a run as the wire has it; recorded when the query asks for it. Raises 404 for an unknown run."""
    run = selectors.get_run(project, run_id)
    if run is None:
        raise NotFound("Run not found")
    reply = verdict(run, query)
    if query.record:
        record(run, reply, query.caller)
    return reply


def preview(*, project: Project, dataset_id: str, query: GateQuery) -> dict[str, Any]:
    """The verdict on a dataset's newest completed run, never recorded; raises 422 when there is none (EVAL-187)."""
    if not dataset_id:
        raise APIError("datasetId is required")
    run = selectors.latest_completed(project, dataset_id)
    if run is None:
        raise APIError("This dataset has no completed run to gate", 422)
    return verdict(run, query)


def verdict(run: Run, query: GateQuery) -> dict[str, Any]:
    """Judge a run by the checks of a query (EVAL-157..180); raises 400 for a scorer that the run does not have."""
    scorer = _scorer(run, query.scorer) if query.scorer else None
    scorer_id = scorer["id"] if scorer else None
    score = _score(run, scorer_id)
    baseline = selectors.baseline_of(run, scorer_id) if query.no_regression else None
    before = _baseline_score(baseline, scorer_id) if baseline else None
    checks = []
    if query.fail_under is not None:
        checks.append(_fail_under(score.average, query.fail_under))
    if query.no_regression:
        checks.append(_no_regression(score.average, before.average if before else None, query.tolerance))
    confidence = statistics.confidence(score.cases, before.cases if before else None)
    return {
        "runId": run.pk,
        "datasetId": run.dataset_id,
        "averageRating": _plain(score.average),
        "resultCount": run.result_count,
        "baselineRunId": baseline.pk if baseline else None,
        "baselineAverage": _plain(before.average) if before else None,
        "gatedScorer": scorer,
        "checks": checks,
        "passed": all(check["passed"] for check in checks),
        "confidence": {
            **confidence,
            "ratedCount": run.rated,
            "skippedCount": run.skipped,
            "failedCount": run.failed,
        },
    }


def record(run: Run, reply: dict[str, Any], caller: str | None) -> GateVerdict:
    """Keep a verdict in the project's gate history; a failed one is told to whoever registered (EVAL-181, EVAL-185)."""
    with transaction.atomic():
        row = GateVerdict.objects.create(
            project_id=run.project_id,
            run=run,
            dataset_id=run.dataset_id,
            dataset_name=run.dataset_name,
            passed=reply["passed"],
            average_rating=reply["averageRating"],
            baseline_run_id=reply["baselineRunId"],
            baseline_average=reply["baselineAverage"],
            gated_scorer=reply["gatedScorer"],
            caller=caller,
            checks=reply["checks"],
        )
    if not row.passed:
        gate_failed.call(row)
    return row


def _score(run: Run, scorer_id: str | None) -> _Score:
    if scorer_id is None:
        return _Score(_rounded(selectors.average_rating(run.pk)), selectors.case_means(run.pk))
    ratings, cases = selectors.scorer_ratings(run.pk, scorer_id)
    return _Score(_rounded(math.fsum(ratings) / len(ratings) if ratings else None), cases)


def _baseline_score(run: Run, scorer_id: str | None) -> _Score:
    """A scorer that stands beside the primary now may have been the primary then."""
    return _score(run, None if scorer_id is not None and run.evaluation_settings_id == scorer_id else scorer_id)


def _scorer(run: Run, wanted: str) -> dict[str, str] | None:
    """The extra judge an id or name stands for; None when it names the primary. Never guesses (EVAL-170, EVAL-175)."""
    grader: dict[str, Any] = Run.objects.values_list("grader", flat=True).get(pk=run.pk)
    judges = judges_of(grader)
    primary = grader["primary"]
    by_id = [{"id": key, "name": name} for key, name in judges if key == wanted]
    if by_id:
        return by_id[0]
    if wanted == primary["id"]:
        return None
    named = [{"id": key, "name": name} for key, name in judges if name == wanted]
    if len(named) + (primary["name"] == wanted) > 1:
        raise APIError(f"Ambiguous scorer: {wanted[:100]} names more than one scorer of this run, use its id")
    if named:
        return named[0]
    if primary["name"] == wanted:
        return None
    raise APIError(f"Unknown scorer: {wanted[:100]}")


def _fail_under(average: Decimal | None, floor: Decimal) -> dict[str, Any]:
    passed = average is not None and average >= floor
    if average is None:
        detail = f"This run has no rated results, so it cannot reach floor {_text(floor)}"
    else:
        detail = f"Average rating {_text(average)} {'>=' if passed else '<'} floor {_text(floor)}"
    return {
        "check": "fail-under",
        "passed": passed,
        "threshold": _plain(floor),
        "actual": _plain(average),
        "detail": detail,
    }


def _no_regression(average: Decimal | None, before: Decimal | None, tolerance: Decimal) -> dict[str, Any]:
    if before is None:
        passed = True
        detail = "No previous completed run with ratings: nothing to regress against"
    elif average is None:
        passed = False
        detail = f"This run has no rated results to compare with the previous run's {_text(before)}"
    else:
        passed = average >= before - tolerance
        detail = f"Average rating {_text(average)} vs previous run's {_text(before)} (tolerance {_text(tolerance)})"
    return {
        "check": "no-regression",
        "passed": passed,
        "threshold": _plain(before),
        "actual": _plain(average),
        "detail": detail,
    }


def _rounded(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(repr(value)).quantize(_CENT, ROUND_HALF_UP)


def _plain(value: Decimal | None) -> float | int | None:
    if value is None:
        return None
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _text(value: Decimal) -> str:
    """Without trailing zeros and never in scientific form: 7.50 is 7.5, 7.00 is 7."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(text: str | None, name: str) -> Decimal | None:
    if text is None:
        return None
    if not _NUMBER.fullmatch(text.strip()) or not math.isfinite(float(text)):
        raise APIError(f"{name} must be a number")
    return Decimal(text.strip())


def _yes(text: str | None) -> bool:
    return (text or "").strip().lower() in ("true", "1")
