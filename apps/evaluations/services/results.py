"""Take in a batch of results: claim the new ones, judge them side by side, answer with what is stored.

Every accepted key becomes a row before anything is judged. A racing twin of the request finds that row and waits for its
verdict; a row whose judge died is taken over once its claim has run out. Rows are committed as their verdicts come in, so
whatever happens to a request, re-sending it judges only what has no verdict yet (EVAL-065..068).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from apps.core.api.errors import APIError, NotFound
from apps.core.ids import is_id, new_id
from apps.evaluations import selectors, wire
from apps.evaluations.models import Result, Run
from apps.evaluations.services import scoring, submissions, tallies
from apps.evaluations.services.snapshot import Frozen, frozen
from apps.evaluations.services.submissions import Submission
from apps.evaluations.services.workers import judging
from apps.projects.models import Project

logger = logging.getLogger(__name__)

MAX_BATCH = 10
BATCH_ID_LIMIT = 200
# How long a claim holds without being renewed: a row whose judge was killed is free again after this.
CLAIM_SECONDS = 12.0
RENEW_SECONDS = 3.0
# The published client waits 900 seconds for a batch; we answer before it gives up.
DEADLINE_SECONDS = 840.0
_POLL_SECONDS = 0.05
_SLOWEST_POLL_SECONDS = 0.5
_LIGHT = ("id", "status", "project_id")


def check_body(body: dict[str, Any]) -> tuple[str, list[Any]]:
    """(batchId, results) of a body; raises 400 in the order the documents give (source 1:1482-1484)."""
    batch_id = body.get("batchId")
    if not isinstance(batch_id, str) or not batch_id.strip():
        raise APIError("batchId is required")
    results = body.get("results")
    if not isinstance(results, list) or not results:
        raise APIError("results must be a non-empty array")
    if len(results) > MAX_BATCH:
        raise APIError(f"Batch size must not exceed {MAX_BATCH}")
    return batch_id, results


def submit(*, project: Project, run_id: str, batch_id: str, results: list[Any]) -> dict[str, Any]:
    """Store and judge up to ten results; returns the reply of `POST /runs/:id/results` (source 1:1463-1478).

    Raises 404 for a run the project does not have and 409 for one that takes no more results. A judge that fails is a
    `skipped` row with its reason, never an error of this call.
    """
    run = Run.objects.only(*_LIGHT).filter(project=project, pk=run_id).first() if is_id(run_id) else None
    if run is None:
        raise NotFound("Run not found")
    _refuse_terminal(run.status)
    given = [parsed for parsed in map(submissions.parse, results) if parsed is not None]
    mine = judge_all(project, run_id, batch_id, given) if given else set()
    stored = {row.idempotency_key: row for row in _rows(run_id, given)}
    fixed = frozen(run_id)
    seen: set[str] = set()
    entries = []
    for item in given:
        row = stored.get(item.idempotency_key)
        if row is None:
            # Deleted with its run while it was judged.
            raise NotFound("Run not found")
        duplicate = row.pk not in mine or item.idempotency_key in seen
        seen.add(item.idempotency_key)
        entries.append(wire.scored_result(row, extra_judges=fixed.extra_judges, duplicate=duplicate))
    after = selectors.get_run(project, run_id)
    if after is None:
        raise NotFound("Run not found")
    return {
        "runId": run_id,
        "batchId": batch_id,
        "accepted": len(mine),
        "duplicates": len(given) - len(mine),
        "failedValidation": len(results) - len(given),
        "status": after.status,
        "scoredResults": entries,
        "liveStatistics": wire.live_statistics(after),
    }


def _refuse_terminal(status: str) -> None:
    if status != Run.Status.IN_PROGRESS:
        raise APIError("Run is already in a terminal state", 409)


def _rows(run_id: str, given: list[Submission]) -> list[Result]:
    return list(Result.objects.filter(run_id=run_id, idempotency_key__in={item.idempotency_key for item in given}))


def judge_all(project: Project, run_id: str, batch_id: str, given: list[Submission]) -> set[str]:
    """Have every key of the batch judged, here or by whoever claimed it first; the ids of the rows judged here."""
    try:
        batch = _Batch(project, run_id, frozen(run_id))
    except Run.DoesNotExist:
        raise NotFound("Run not found") from None
    try:
        batch.claim(given, batch_id)
        batch.work()
    except BaseException:
        batch.release()
        raise
    return batch.judged


def _claim_until() -> Any:
    return timezone.now() + timedelta(seconds=CLAIM_SECONDS)


class _Batch:
    """The rows of one request: those judged here, and those a twin is judging."""

    def __init__(self, project: Project, run_id: str, fixed: Frozen) -> None:
        self._project = project
        self._run_id = run_id
        self._frozen = fixed
        self._running: dict[Future[scoring.Outcome], Result] = {}
        self._awaited: dict[str, Result] = {}
        self.judged: set[str] = set()

    def claim(self, given: list[Submission], batch_id: str) -> None:
        """Insert what is new as pending rows and start judging it; note what somebody else is judging."""
        until = _claim_until()
        fresh: dict[str, Result] = {}
        # Sorted, so that rows of one millisecond keep the order in which they were sent.
        ids = iter(sorted(new_id() for _ in given))
        for item in given:
            if item.idempotency_key not in fresh:
                fresh[item.idempotency_key] = Result(
                    id=next(ids),
                    run_id=self._run_id,
                    batch_id=batch_id[:BATCH_ID_LIMIT],
                    claimed_until=until,
                    **item.columns(),
                )
        with transaction.atomic():
            # Locked, so that a run cannot be finalized between the check and the insert.
            locked = Run.objects.select_for_update().filter(pk=self._run_id)
            status = locked.values_list("status", flat=True).first()
            if status is None:
                raise NotFound("Run not found")
            _refuse_terminal(status)
            Result.objects.bulk_create(fresh.values(), ignore_conflicts=True)
            stored = _rows(self._run_id, given)
        own = {row.pk for row in fresh.values()}
        for row in stored:
            if row.status != Result.Status.PENDING:
                continue
            if row.pk in own:
                self._start(row)
            else:
                self._awaited[row.pk] = row

    def work(self) -> None:
        """Return once every row has its verdict; renews the claims meanwhile."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        renewed = time.monotonic()
        pause = _POLL_SECONDS
        while self._running or self._awaited:
            if self._awaited:
                self._look_after_awaited()
            if self._running:
                timeout = pause if self._awaited else RENEW_SECONDS
                done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
                # What came in together is stored together; nothing waits for what is still being judged.
                verdicts = [(self._running[future], future.result()) for future in done]
                self.judged |= record(verdicts, self._frozen)
                for future in done:
                    del self._running[future]
            elif self._awaited:
                time.sleep(pause)
            pause = min(pause * 1.3, _SLOWEST_POLL_SECONDS)
            if time.monotonic() > deadline:
                raise APIError("Some results are still being judged, send the batch again", 503, {"Retry-After": "5"})
            if self._running and time.monotonic() - renewed >= RENEW_SECONDS:
                renewed = time.monotonic()
                self._claims().update(claimed_until=_claim_until())

    def release(self) -> None:
        """Free the rows that nobody works on any more; those being judged still get their verdict stored."""
        free = []
        for future, row in self._running.items():
            if future.cancel() or _broke(future):
                free.append(row.pk)
            else:
                future.add_done_callback(partial(_store_late, row, self._frozen))
        try:
            rows = Result.objects.filter(pk__in=free, status=Result.Status.PENDING)
            rows.update(claimed_until=timezone.now())
        except DatabaseError:
            # The database is why we are here; the claims run out by themselves.
            logger.warning("claims on results were not released", extra={"run": self._run_id})

    def _start(self, row: Result) -> None:
        self._running[judging.submit(verdict_on, self._project, self._frozen, row)] = row

    def _claims(self) -> Any:
        return Result.objects.filter(pk__in=[row.pk for row in self._running.values()], status=Result.Status.PENDING)

    def _look_after_awaited(self) -> None:
        """Drop the rows that have their verdict by now, and take over those whose claim has run out."""
        for row in Result.objects.filter(pk__in=list(self._awaited)):
            if row.status != Result.Status.PENDING:
                del self._awaited[row.pk]
            elif row.claimed_until is None or row.claimed_until <= timezone.now():
                expired = Result.objects.filter(
                    pk=row.pk, status=Result.Status.PENDING, claimed_until=row.claimed_until
                )
                if expired.update(claimed_until=_claim_until()):
                    del self._awaited[row.pk]
                    self._start(row)


def _broke(future: Future[scoring.Outcome]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is not None


def _store_late(row: Result, fixed: Frozen, future: Future[scoring.Outcome]) -> None:
    """Keep a verdict whose request is gone; without it the answer would be paid for twice."""
    if not _broke(future):
        record([(row, future.result())], fixed)


def judge_row(project: Project, fixed: Frozen, row: Result) -> bool:
    """Judge one pending row here and store the verdict; whether it was this one that was stored."""
    return bool(record([(row, verdict_on(project, fixed, row))], fixed))


def verdict_on(project: Project, fixed: Frozen, row: Result) -> scoring.Outcome:
    """The verdict on one pending row; stores nothing."""
    return scoring.failed(row.error) if row.error is not None else scoring.score(project, fixed, row)


def record(verdicts: Iterable[tuple[Result, scoring.Outcome]], fixed: Frozen) -> set[str]:
    """Store verdicts and count them, each once; the ids of the rows that had none before."""
    stored: set[str] = set()
    with transaction.atomic():
        for row, outcome in verdicts:
            pending = Result.objects.filter(pk=row.pk, status=Result.Status.PENDING)
            if pending.update(claimed_until=None, **outcome.columns()):
                tallies.add(row, outcome, fixed.grader)
                stored.add(row.pk)
    return stored
