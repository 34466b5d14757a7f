"""The queue of roots that wait for live checks: claimed in batches, handed to every checker, removed when done.

Ingest queues a root when its project checks anything (`apps.tracing.ingest.checks`). An app with live checks registers
a checker in its `AppConfig.ready()`:

    check_queue.register("patterns", check_patterns)

A claim is a lease: a batch whose worker died is claimed again when its time is over, so checkers must bear a repeat.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import F

from apps.core.times import now_ms
from apps.tracing.models import CheckItem

logger = logging.getLogger(__name__)

BATCH = 100
# Longer than a batch may take; after it another worker tries.
CLAIM_MS = 300_000
# Pause before a failed batch is tried again, times the number of tries so far.
RETRY_MS = 30_000
MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class QueuedRoot:
    """A root to check. `pattern_ids`: look for these patterns only (None: for all that are switched on)."""

    project_id: int
    trace_id: str
    pattern_ids: tuple[str, ...] | None


# Checks a batch of roots, of several projects perhaps. Roots may be gone by now; an exception means: again, later.
Checker = Callable[[Sequence[QueuedRoot]], None]
_checkers: dict[str, Checker] = {}


def register(name: str, checker: Checker) -> None:
    """Add a checker; checkers run in the order of registration, a name again replaces its checker."""
    _checkers[name] = checker


def unregister(name: str) -> None:
    """Take a checker out again (tests)."""
    _checkers.pop(name, None)


def drain(*, seconds: float = 30.0) -> int:
    """Check what is queued until nothing is left to claim or the time is over; returns how many roots were done."""
    deadline = time.monotonic() + seconds
    done = 0
    while items := _claim():
        done += _check(items)
        if time.monotonic() >= deadline:
            break
    return done


def _claim() -> list[CheckItem]:
    """Take the oldest items that nobody has; on Postgres those another worker is just claiming are skipped."""
    now = now_ms()
    with transaction.atomic():
        waiting = CheckItem.objects.filter(claimed_until_ms__lt=now).order_by("pk")
        if connection.features.has_select_for_update_skip_locked:
            waiting = waiting.select_for_update(skip_locked=True)
        items = list(waiting[:BATCH])
        if items:
            CheckItem.objects.filter(pk__in=[item.pk for item in items]).update(
                claimed_until_ms=now + CLAIM_MS, attempts=F("attempts") + 1
            )
    for item in items:
        item.claimed_until_ms = now + CLAIM_MS
        item.attempts += 1
    return items


def _check(items: list[CheckItem]) -> int:
    """Run every checker on a claimed batch; done items go, failed ones wait for another try, a few times."""
    roots = [
        QueuedRoot(item.project_id, item.trace_id, None if item.pattern_ids is None else tuple(item.pattern_ids))
        for item in items
    ]
    failed = False
    for name, checker in list(_checkers.items()):
        try:
            checker(roots)
        except Exception:
            # One checker's trouble, whatever it is, must not keep the others from their work.
            logger.exception("a live check failed", extra={"checker": name, "roots": len(roots)})
            failed = True
    # Claims that ran out meanwhile belong to somebody else.
    mine = CheckItem.objects.filter(pk__in=[item.pk for item in items], claimed_until_ms=items[0].claimed_until_ms)
    if not failed:
        mine.delete()
        return len(items)
    given_up = [item.pk for item in items if item.attempts >= MAX_ATTEMPTS]
    if given_up:
        logger.error("roots were given up after failed checks", extra={"roots": len(given_up)})
        mine.filter(pk__in=given_up).delete()
    mine.update(claimed_until_ms=now_ms() + RETRY_MS * items[0].attempts)
    return 0
