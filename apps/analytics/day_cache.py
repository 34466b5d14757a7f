"""Answers about whole days, kept in memory as long as nothing in the day has changed.

A dashboard polls a week of which six days stand still. One cheap query over the day rows of the aggregates gives each
day a signature; a kept answer counts while its signature holds. Signatures weigh counts by row, so a span that moves
from one row to another (adopted by its root, re-priced) changes them too. Nothing here can be wrong for long or
between processes: there is no time to live, only the comparison with what is stored now.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import connection

from apps.core.windows import DAY, Window
from apps.projects.models import Project
from apps.tracing.models import Grain

Answer = TypeVar("Answer")
# What one day adds to an answer: at most some hundred numbers, so this many are a few megabytes.
MAX_ENTRIES = 600
Signature = tuple[Any, ...] | None


# Statements of their own, because this is all that a poll costs when nothing has changed.
_SIGNATURES = f"""
    SELECT bucket, COUNT(*), SUM(spans), SUM(failing), SUM(latency_sum),
           SUM(id * spans), SUM(id * input_tokens), SUM(id * cost_usd)
    FROM tracing_rollup
    WHERE project_id = %s AND grain = {int(Grain.DAY)} AND bucket >= %s AND bucket < %s
    GROUP BY bucket
"""
_MODEL_SIGNATURES = f"""
    SELECT bucket, COUNT(*), SUM(id * roots)
    FROM tracing_modelrollup
    WHERE project_id = %s AND grain = {int(Grain.DAY)} AND bucket >= %s AND bucket < %s
    GROUP BY bucket
"""


def _signatures(sql: str, project: Project, parts: Sequence[Window]) -> dict[int, Signature]:
    midnights = {part.start: part.start - part.start % DAY for part in parts}
    with connection.cursor() as cursor:
        cursor.execute(sql, [project.pk, min(midnights.values()), max(midnights.values()) + DAY])
        found = {row[0]: tuple(row[1:]) for row in cursor.fetchall()}
    return {start: found.get(midnight) for start, midnight in midnights.items()}


def day_signatures(project: Project, parts: Sequence[Window]) -> dict[int, Signature]:
    """A signature for each part of a window that `Window.days` cut, by its start; None for a day without spans."""
    return _signatures(_SIGNATURES, project, parts)


def model_signatures(project: Project, parts: Sequence[Window]) -> dict[int, Signature]:
    """The same for the counts of traces by model: a child of another day can change those of its root's day alone."""
    return _signatures(_MODEL_SIGNATURES, project, parts)


class DayCache:
    """The latest answers by key, at most `max_entries`; safe between threads. Answers are shared: nobody changes them."""

    def __init__(self, *, max_entries: int) -> None:
        self._entries: OrderedDict[Hashable, tuple[Signature, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._max_entries = max_entries

    def get(self, key: Hashable, signature: Signature) -> Any:
        """The kept answer if its signature is still this one, else None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[0] != signature:
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: Hashable, signature: Signature, answer: Any) -> None:
        """Keep an answer; the one that was longest unused goes."""
        with self._lock:
            self._entries[key] = (signature, answer)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


CACHE = DayCache(max_entries=MAX_ENTRIES)


class Days:
    """The days of one question: asks for their signatures once, then answers any number of parts of the question.

    With `models` the signatures also cover the counts of traces by model.
    """

    def __init__(self, project: Project, *windows: Window, models: bool = False) -> None:
        self._project = project
        parts = [part for window in windows for part in window.days()]
        self._signatures = day_signatures(project, parts)
        if models:
            traces = model_signatures(project, parts)
            self._signatures = {start: (kept, traces[start]) for start, kept in self._signatures.items()}

    def each(
        self,
        window: Window,
        scope: Hashable,
        compute: Callable[[list[Window]], Mapping[int, Answer]],
        nothing: Answer,
    ) -> list[Answer]:
        """What `compute` says about each day of the window, oldest first; `scope` names the part and its filters.

        `compute` is called at most once, with the parts of the window that have changed or were never asked for. It
        answers by the midnight (in seconds since 1970) of each part's day; `nothing` stands for a day that it leaves
        out. Answers are kept and shared: change none of them.
        """
        parts = window.days()
        keys = [(self._project.pk, scope, part.step, part.start, part.end) for part in parts]
        known = [CACHE.get(key, self._signatures[part.start]) for key, part in zip(keys, parts, strict=True)]
        stale = [part for part, answer in zip(parts, known, strict=True) if answer is None]
        if not stale:
            return known
        computed = compute(stale)
        for position, (key, part) in enumerate(zip(keys, parts, strict=True)):
            if known[position] is None:
                answer = computed.get(part.start - part.start % DAY, nothing)
                CACHE.put(key, self._signatures[part.start], answer)
                known[position] = answer
        return known
