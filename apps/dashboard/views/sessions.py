"""Sessions: the list of conversations, one conversation as a thread, and the span tree of a turn."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from apps.core.times import now_ms
from apps.core.windows import NAMED
from apps.dashboard.current import DashboardRequest
from apps.dashboard.sessions import conversation
from apps.dashboard.texts import asked, one_line
from apps.tracing import selectors as tracing
from apps.tracing.trajectory import Node, build_tree

WINDOWS = (*NAMED, "all")
DEFAULT_WINDOW = "30d"
ORIGIN_LABELS = (("", _("All")), ("users", _("Users")), ("imported", _("Imported")), ("simulated", _("Simulated")))
_TREE_ROWS = 200


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A row of the list: the aggregate and the first question."""

    row: tracing.SessionRow
    title: str
    imported: bool

    @property
    def lasted_ms(self) -> int | None:
        """From the first activity to the last; None for a single turn."""
        return self.row.last_ms - self.row.first_ms if self.row.turn_count > 1 else None

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.row.input_tokens + self.row.output_tokens


@require_safe
def sessions(request: DashboardRequest) -> HttpResponse:
    """A page of sessions, most recently active first; window, search, origin and agent stand in the address."""
    window = request.GET.get("window", DEFAULT_WINDOW)
    window = window if window in WINDOWS else DEFAULT_WINDOW
    since_ms = None if window == "all" else now_ms() - NAMED[window] * 1000
    search = request.GET.get("q", "").strip()[:200].replace("\x00", "")
    origin = request.GET.get("origin", "")
    origin = origin if origin in tracing.ORIGINS else ""
    agent_id = request.GET.get("agent", "").strip()[:40]
    found = tracing.sessions_about(request.project, search, since_ms) if search else ()
    filters = tracing.SessionFilters(since_ms, search, origin, agent_id, found)
    try:
        page = tracing.list_sessions(
            request.project,
            since_ms,
            cursor=request.GET.get("cursor") or None,
            search=search,
            origin=origin,
            agent_id=agent_id,
            found=found,
            count=False,
        )
    except tracing.UnknownCursor:
        return redirect("dashboard:sessions")
    first = tracing.first_turns(request.project, [row.session_id for row in page.rows])
    number = _page_number(request.GET.get("page"))
    rows = [
        ListedSession(
            row,
            one_line(asked(first[row.session_id].input)) if row.session_id in first else "",
            tracing.is_imported(row.session_id),
        )
        for row in page.rows
    ]
    start = (number - 1) * tracing.PAGE_DEFAULT + 1 if page.rows else 0
    context = {
        "rows": rows,
        "page": page,
        "figures": tracing.session_figures(request.project, filters),
        "windows": WINDOWS,
        "window": window,
        "search": search,
        "origin": origin,
        "origins": ORIGIN_LABELS,
        "agent": agent_id,
        "agents": tracing.list_agents(request.project),
        "number": number,
        "next_number": number + 1,
        "start": start,
        "end": start + len(rows) - 1 if rows else 0,
        "narrowed": bool(search or origin or agent_id),
        "any_spans": bool(rows) or tracing.count_spans(request.project) > 0,
    }
    part = "_list" if request.htmx and request.htmx.target == "sessions" else "list"
    return render(request, f"dashboard/sessions/{part}.html", context)


def _page_number(text: str | None) -> int:
    return min(max(int(text), 1), 1_000_000) if text and text.isascii() and text.isdigit() and len(text) < 8 else 1


@require_safe
def session(request: DashboardRequest, session_id: str) -> HttpResponse:
    """One conversation; 404 for an id without rows."""
    row = tracing.get_session(request.project, session_id)
    if row is None:
        raise Http404
    thread = conversation(request.project, session_id, _page_number(request.GET.get("page")))
    title = one_line(thread.turns[0].question) if thread.turns and thread.page == 1 else ""
    if not title:
        first = tracing.first_turns(request.project, [session_id]).get(session_id)
        title = one_line(asked(first.input)) if first is not None else ""
    return render(
        request,
        "dashboard/sessions/detail.html",
        {
            "row": row,
            "thread": thread,
            "title": title or session_id,
            "imported": tracing.is_imported(session_id),
            "previous_page": thread.page - 1,
            "next_page": thread.page + 1,
        },
    )


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A node of a turn's span tree with its bar in percent of the whole."""

    node: Node
    indent: int
    x: str
    width: str

    @property
    def level(self) -> int:
        """The level in the tree, from 1."""
        return self.node.depth + 1


@require_safe
def turn_tree(request: DashboardRequest, trace_id: str) -> HttpResponse:
    """The span tree of one turn, for the rail below it; long trees end with a link to the whole."""
    rows = tracing.trace_tree(request.project, trace_id, payloads=False)
    if not rows:
        raise Http404
    tree = build_tree(rows)
    shown: list[TreeRow] = []
    for node in tree.walk():
        if len(shown) >= _TREE_ROWS:
            break
        x = (node.offset_ms - tree.begin_ms) / tree.extent_ms * 100
        width = max(node.duration_ms / tree.extent_ms * 100, 0.4)
        shown.append(TreeRow(node, min(node.depth, 12), f"{x:.2f}%", f"{min(width, 100 - x):.2f}%"))
    context = {"rows": shown, "trace_id": trace_id, "more": len(rows) - len(shown)}
    return render(request, "dashboard/sessions/_tree.html", context)
