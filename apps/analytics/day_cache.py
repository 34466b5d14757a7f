"""Answers about whole days, kept in memory as long as nothing in the day has changed.

A dashboard polls a week of which six days stand still. One cheap query over the day rows of the aggregates gives each
day a signature; a kept answer counts while its signature holds. Signatures weigh counts by row, so a span that moves
from one row to another (adopted by its root, re-priced) changes them too. Nothing here can be wrong for long or
between processes: there is no time to live, only the comparison with what is stored now.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any, Generic, TypeVar

from django.db.models import Count, F, FloatField, Sum

from apps.core.windows import DAY, Window
from apps.projects.models import Project
from apps.tracing.models import Grain, Rollup

Answer = TypeVar("Answer")
Signature = tuple[Any, ...] | None


def day_signatures(project: Project, parts: Iterable[Window]) -> dict[int, Signature]:
    """A signature for each part of a window that `Window.days` cut, by its start; None for a day without spans."""
    midnights = {part.start: part.start - part.start % DAY for part in parts}
    rows = (
        Rollup.objects.filter(project=project, grain=Grain.DAY, bucket__in=list(midnights.values()))
        .values_list("bucket")
        .annotate(
            rows=Count("id"),
            spans_in_all=Sum("spans"),
            failed=Sum("failing"),
            latency_in_all=Sum("latency_sum"),
            spans_by_row=Sum(F("id") * F("spans")),
            tokens_by_row=Sum(F("id") * F("input_tokens")),
            cost_by_row=Sum(F("id") * F("cost_usd"), output_field=FloatField()),
        )
        .order_by()
    )
    found = {row[0]: row[1:] for row in rows}
    return {start: found.get(midnight) for start, midnight in midnights.items()}


class DayCache(Generic[Answer]):
    """The latest answers by key, at most `max_entries`; safe between threads. Answers are shared: nobody changes them."""

    def __init__(self, *, max_entries: int) -> None:
        self._entries: OrderedDict[Hashable, tuple[Signature, Answer]] = OrderedDict()
        self._lock = threading.Lock()
        self._max_entries = max_entries

    def get(self, key: Hashable, signature: Signature) -> Answer | None:
        """The kept answer if its signature is still this one."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[0] != signature:
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def put(self, key: Hashable, signature: Signature, answer: Answer) -> None:
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
