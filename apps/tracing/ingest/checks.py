"""Which projects have their roots checked: the seam between ingest and the live checks.

The writer queues a checked root (a `CheckItem`, in the root's own transaction) when `is_checked` says so. The project's
monitoring settings decide here; an app with checks of its own (custom patterns, judges, rules) adds a reason with
`register` in its `AppConfig.ready`, and calls `settings_changed` when its settings do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.db import transaction

from apps.projects.models import MonitoringDefaults

Reason = Callable[[int], bool]

_MAX_ENTRIES = 10_000
_reasons: list[Reason] = []
# Project: (when to ask again, answer). Another process's change takes effect here within settings.CACHE_SECONDS.
_cache: dict[int, tuple[float, bool]] = {}
_generation = 0


def register(reason: Reason) -> None:
    """Add a function that says whether a project (by its primary key) has a live check switched on.

    It runs inside ingest's transaction, at most once a second for each project: one small query, no network.
    """
    if reason not in _reasons:
        _reasons.append(reason)
    forget()


def is_checked(project_id: int) -> bool:
    """Whether roots of the project are to be queued for the live checks."""
    now = time.monotonic()
    cached = _cache.get(project_id)
    if cached is not None and cached[0] > now:
        return cached[1]
    generation = _generation
    answer = any(reason(project_id) for reason in (_by_defaults, *_reasons))
    if generation == _generation:
        if len(_cache) >= _MAX_ENTRIES:
            _cache.clear()
        _cache[project_id] = (now + settings.CACHE_SECONDS, answer)
    return answer


def forget() -> None:
    """Ask anew from now on."""
    global _generation
    _generation += 1
    _cache.clear()


def settings_changed(_project_id: int) -> None:
    """Forget now and, inside a transaction, again once it has committed: another thread may have asked in between."""
    forget()
    transaction.on_commit(forget)


def _by_defaults(project_id: int) -> bool:
    """Whether the project's monitoring settings switch anything on."""
    row = (
        MonitoringDefaults.objects.filter(project_id=project_id)
        .values_list("enabled_builtin_patterns", "topics_enabled", "latency_threshold_ms")
        .first()
    )
    return row is not None and bool(row[0] or row[1] or row[2] is not None)
