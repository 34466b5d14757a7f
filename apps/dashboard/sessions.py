"""A session as a conversation: its turns in order, each with what was said, what it cost and the shape of its spans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.dashboard.texts import answered, asked
from apps.projects.models import Project
from apps.tracing import selectors as tracing
from apps.tracing.models import Status
from apps.tracing.store.reads import SpanRow
from apps.tracing.trajectory import NS_PER_MS, starts_ns, token_totals

TURNS_PER_PAGE = 50
MAX_STRIP = 120


@dataclass(frozen=True, slots=True)
class Bar:
    """One span in a strip: its kind, where it begins and how wide it is, in percent; `failed` outlines it."""

    kind: str
    x: str
    width: str
    failed: bool


@dataclass(slots=True)
class Turn:
    """One root row of the session with everything below it."""

    number: int
    root: SpanRow
    question: str = ""
    answer: str = ""
    spans: int = 0
    errors: int = 0
    tool_failures: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    began_ms: int = 0
    pause_ms: int | None = None
    strip: list[Bar] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the turn itself ended in an error."""
        return self.root.status == Status.ERROR

    @property
    def flagged(self) -> bool:
        """Whether anything in the turn deserves a look."""
        return self.failed or self.errors > 0 or self.tool_failures > 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """A page of turns, the bars of all of them on one axis, and how many rows still miss their root."""

    turns: list[Turn]
    overview: list[Bar]
    turn_total: int
    first_shown: int
    last_shown: int
    pages: int
    page: int
    waiting: int


def conversation(project: Project, session_id: str, page: int = 1) -> Conversation:
    """The session's turns, `TURNS_PER_PAGE` at a time; three queries whatever its size."""
    rows = tracing.session_spans(project, session_id, payloads=False)
    starts = starts_ns(rows)
    roots = [row for row in rows if row.parent_span_id is None]
    below: defaultdict[str, list[SpanRow]] = defaultdict(list)
    waiting = 0
    for row in rows:
        if row.parent_span_id is None:
            continue
        if row.root_id is None:
            waiting += 1
        else:
            below[row.root_id].append(row)
    pages = max(1, -(-len(roots) // TURNS_PER_PAGE))
    page = min(max(page, 1), pages)
    first = (page - 1) * TURNS_PER_PAGE
    shown = roots[first : first + TURNS_PER_PAGE]
    full = tracing.spans_by_ids(project, [row.id for row in shown])
    turns = []
    for index, light in enumerate(shown):
        number = first + index + 1
        before = roots[number - 2] if number > 1 else None
        turns.append(_turn(number, full.get(light.id, light), below[light.id], starts, before))
    return Conversation(
        turns,
        _overview(roots, starts),
        len(roots),
        first + 1 if shown else 0,
        first + len(shown),
        pages,
        page,
        waiting,
    )


def _turn(number: int, root: SpanRow, below: Sequence[SpanRow], starts: dict[str, int], before: SpanRow | None) -> Turn:
    own = [root, *below]
    costs = [row.own_cost_usd for row in own if row.own_cost_usd is not None]
    began = starts[root.id] // NS_PER_MS
    pause = None
    if before is not None:
        pause = began - starts[before.id] // NS_PER_MS - int(before.latency_ms or 0)
    return Turn(
        number=number,
        root=root,
        question=asked(root.input),
        answer=answered(root.output),
        spans=len(own),
        errors=sum(row.status == Status.ERROR for row in below),
        tool_failures=root.tool_failures,
        tokens=sum(count or 0 for count in token_totals(own)),
        cost_usd=sum(costs) if costs else None,
        began_ms=began,
        pause_ms=pause if pause is not None and pause >= 0 else None,
        strip=_strip(root, below, starts),
    )


def _strip(root: SpanRow, below: Sequence[SpanRow], starts: dict[str, int]) -> list[Bar]:
    """The leaves of the turn on its own axis; a turn without children is one bar."""
    parents = {row.parent_span_id for row in below}
    leaves = [row for row in below if row.span_id not in parents] or [root]
    begin = starts[root.id]
    end = max([begin + int((root.latency_ms or 0) * NS_PER_MS)] + [_end(row, starts) for row in leaves])
    return _bars(leaves[:MAX_STRIP], starts, begin, end)


def _overview(roots: Sequence[SpanRow], starts: dict[str, int]) -> list[Bar]:
    """All turns on the axis of the whole session."""
    if len(roots) < 2:
        return []
    begin = min(starts[row.id] for row in roots)
    end = max(_end(row, starts) for row in roots)
    return _bars(roots[:500], starts, begin, end)


def _end(row: SpanRow, starts: dict[str, int]) -> int:
    return starts[row.id] + int((row.latency_ms or 0) * NS_PER_MS)


def _bars(rows: Sequence[SpanRow], starts: dict[str, int], begin: int, end: int) -> list[Bar]:
    extent = max(end - begin, 1)
    bars = []
    for row in rows:
        x = min(max((starts[row.id] - begin) / extent * 100, 0), 99.4)
        width = max((row.latency_ms or 0) * NS_PER_MS / extent * 100, 0.6)
        failed = row.status == Status.ERROR
        bars.append(Bar(row.kind, f"{x:.2f}%", f"{min(width, 100 - x):.2f}%", failed))
    return bars
