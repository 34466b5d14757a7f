"""Close a run: its figures are counted again from the stored results, then it takes no more (EVAL-141..145)."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.core.api.errors import NotFound
from apps.core.ids import is_id
from apps.evaluations import selectors
from apps.evaluations.models import CaseTally, Result, Run, ScorerTally, Tally
from apps.evaluations.services.scoring import Verdict, verdicts
from apps.evaluations.services.tallies import FAILED_RATING, judges_of, rated_value
from apps.projects.models import Project

# The published client waits 30 seconds for the answer.
WAIT_SECONDS = 20.0
_POLL_SECONDS = 0.1
_COUNTED = (
    "status",
    "finalized_at",
    "result_count",
    "skipped",
    "failed",
    "variants",
    "rated",
    "rating_sum",
    "rating_squares",
    "rating_min",
    "rating_max",
)


def finalize(*, project: Project, run_id: str) -> Run:
    """Mark a run completed and return it; a completed or failed one keeps its status. Raises 404 for an unknown run.

    Results that another request is judging at this moment are waited for, so that the figures are final. Repeating it
    changes nothing but what the stored results say.
    """
    if not is_id(run_id):
        raise NotFound("Run not found")
    _wait_for_judges(project, run_id)
    with transaction.atomic():
        run = Run.objects.select_for_update().defer("snapshot").filter(project=project, pk=run_id).first()
        if run is None:
            raise NotFound("Run not found")
        recount(run)
        if run.status == Run.Status.IN_PROGRESS:
            run.status = Run.Status.COMPLETED
            run.finalized_at = timezone.now()
        run.save(update_fields=_COUNTED)
    return run


def _wait_for_judges(project: Project, run_id: str) -> None:
    """Return when nobody judges a result of the run any more, or after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (
        Result.objects.filter(
            run_id=run_id, run__project=project, status=Result.Status.PENDING, claimed_until__gt=timezone.now()
        ).exists()
        and time.monotonic() < deadline
    ):
        time.sleep(_POLL_SECONDS)


def recount(run: Run) -> None:
    """Set a run's figures, and those of its cases and extra judges, to what its stored results say.

    Inside the caller's transaction, with the run's row locked; the run itself is left for the caller to save.
    """
    overall: list[float] = []
    cases: dict[int, list[float]] = defaultdict(list)
    judges: dict[str, list[float]] = defaultdict(list)
    named: dict[str, Verdict] = {}
    members = judges_of(run.grader)
    counts: Counter[str] = Counter()
    columns = ["status", "rating", "question_index", "is_variant", *(["judge_scorer_results"] if members else [])]
    for status, rating, index, variant, *results in (
        selectors.accepted([run.pk]).values_list(*columns).iterator(chunk_size=2_000)
    ):
        counts["variant" if variant else status] += 1
        if variant:
            continue
        value = rated_value(status, rating)
        if value is not None:
            overall.append(value)
            if index is not None:
                cases[index].append(value)
        for verdict in _extra(status, results, members):
            named.setdefault(verdict.scorer_id, verdict)
            if verdict.rating is not None:
                judges[verdict.scorer_id].append(verdict.rating)
    _set(run, overall)
    run.result_count = counts.total()
    run.variants = counts["variant"]
    run.skipped = counts[Result.Status.SKIPPED]
    run.failed = counts[Result.Status.FAILED]
    CaseTally.objects.filter(run=run).delete()
    CaseTally.objects.bulk_create(
        (_set(CaseTally(run=run, question_index=index), values) for index, values in sorted(cases.items())),
        batch_size=500,
    )
    ScorerTally.objects.filter(run=run).delete()
    ScorerTally.objects.bulk_create(
        _set(
            ScorerTally(
                run=run, scorer_id=scorer_id[:40], name=named[scorer_id].name[:320], position=named[scorer_id].position
            ),
            values,
        )
        for scorer_id, values in judges.items()
    )


def _extra(status: str, results: list[Any], members: list[tuple[str, str]]) -> Iterable[Verdict]:
    if not members:
        return ()
    if status == Result.Status.FAILED:
        return [Verdict(scorer_id, name, FAILED_RATING, at) for at, (scorer_id, name) in enumerate(members)]
    return verdicts(results[0])


def _set(tally: Any, values: list[float]) -> Any:
    """Fill a tally from its ratings."""
    assert isinstance(tally, Tally)
    tally.rated = len(values)
    tally.rating_sum = sum(values)
    tally.rating_squares = sum(value * value for value in values)
    tally.rating_min = min(values, default=None)
    tally.rating_max = max(values, default=None)
    return tally
