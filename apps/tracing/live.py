"""What is new: the question the live stream asks once a second for each project somebody is looking at."""

from __future__ import annotations

from apps.core.ids import time_prefix
from apps.core.times import now_ms
from apps.tracing.models import Span

# A burst is told as "at least this many": the page reloads its list anyway.
MOST = 500
# Rows dated further ahead (a producer's wrong clock) are not news, else they would hide what comes after them.
AHEAD_MS = 60_000


def now_mark() -> str:
    """The mark to start from: traces stored from now on are new."""
    return time_prefix(now_ms())


def new_roots(project_id: int, after: str) -> tuple[int, str]:
    """How many traces of the project came after the mark (at most MOST), and the new mark: the newest one's id."""
    found = list(
        Span.objects.filter(
            project_id=project_id, parent_span_id=None, id__gt=after, id__lt=time_prefix(now_ms() + AHEAD_MS)
        )
        .order_by("-id")
        .values_list("id", flat=True)[:MOST]
    )
    return len(found), found[0] if found else after
