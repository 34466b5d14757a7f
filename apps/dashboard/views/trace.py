"""One trace: timeline, graph, raw JSON, and the rail of the selected step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from django.http import Http404, HttpResponse, HttpResponseBase, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from apps.dashboard import stepgraph, timeline
from apps.dashboard.current import DashboardRequest
from apps.dashboard.trace_detail import FIELDS, STEP, TraceDetail, span_detail
from apps.projects.models import Project
from apps.tracing import browse, selectors
from apps.tracing.api.wire import full_span

VIEWS = ("timeline", "graph", "raw")
# Above this many rows the raw view shows the root alone; the download has all of them.
RAW_ROWS = 200
# A selected step deeper than this is shown with a top a little above it, not with its whole chain of parents.
_DEEP = 40


def _detail(project: Project, trace_id: str) -> TraceDetail:
    row = selectors.get_span(project, trace_id)
    if row is None:
        raise Http404(_("Trace not found"))
    return TraceDetail(project, row)


@require_safe
def trace(request: DashboardRequest, trace_id: str) -> HttpResponse:
    """The trace page. The address of a child opens its trace with that step selected."""
    detail = _detail(request.project, trace_id)
    root = detail.root
    if root.parent_span_id is not None and root.root_id and root.root_id != root.id:
        address = reverse("dashboard:trace", args=[root.root_id])
        return HttpResponseRedirect(f"{address}?{urlencode({'span': root.id})}")
    view = request.GET.get("view", "timeline")
    context = _timeline_context(request, detail)
    if request.htmx and request.htmx.target == "timeline":
        return render(request, "dashboard/trace/timeline.html", context)
    newer, older = browse.neighbours(request.project, root.id)
    context |= {
        "view": view if view in VIEWS else "timeline",
        "span": span_detail(detail, context["selected"]),
        "newer": newer,
        "older": older,
        "agent": selectors.get_agent(request.project, root.agent_id) if root.agent_id else None,
    }
    if view == "graph":
        context["graph"] = stepgraph.graph_of(context["window"])
    elif view == "raw":
        context["raw"] = _raw_text(detail)
    return render(request, "dashboard/trace/page.html", context)


def _timeline_context(request: DashboardRequest, detail: TraceDetail) -> dict[str, Any]:
    nodes = detail.nodes
    selected = request.GET.get("span", "")
    node = nodes.get(selected)
    top = nodes.get(request.GET.get("top", ""))
    if top is None and node is not None and node.depth > _DEEP:
        top = timeline.ancestors(node)[9]
    if top is not None and not top.children:
        top = top.parent
    if top is not None and top.parent is None:
        top = None
    window = timeline.view_of(detail.tree, top)
    kinds = [kind for kind in dict.fromkeys(request.GET.getlist("kind")) if kind]
    counts = timeline.kind_counts(window)
    rows: list[timeline.Row | timeline.More] = []
    total = 0
    if kinds:
        matching, total = timeline.of_kinds(window, kinds, detail.first_tokens)
        rows = list(matching)
    if not rows:
        kinds = []
        rows = timeline.first_rows(window, node, detail.first_tokens)
    if node is None or not any(row.key == selected for row in rows):
        selected = selected if node is not None and not kinds else rows[0].key if rows else ""
    return {
        "trace": detail,
        "root": detail.root,
        "window": window,
        "top": top,
        "path": [(timeline.key_of(step), step) for step in reversed(timeline.ancestors(top)[:4])] if top else [],
        "kinds": kinds,
        "counts": counts,
        "rows": rows,
        "flat_rest": max(0, total - len(rows)),
        "selected": selected,
        "errors": timeline.errors_in_order(window),
        "spans": sum(n for _kind, n in counts),
    }


@require_safe
def children(request: DashboardRequest, trace_id: str) -> HttpResponse:
    """Rows of one step's direct children, asked for when it is unfolded."""
    detail = _detail(request.project, trace_id)
    parent = detail.nodes.get(request.GET.get("of", ""))
    if parent is None:
        raise Http404
    top = detail.nodes.get(request.GET.get("top", ""))
    window = timeline.view_of(detail.tree, top if top is not None and top.parent is not None else None)
    start = request.GET.get("from", "0")
    begin = int(start) if start.isdigit() and len(start) < 8 else 0
    level = parent.depth - window.base + 2
    rows = timeline.children_rows(window, parent, level, begin, detail.first_tokens)
    context = {"rows": rows, "root": detail.root, "top": top, "selected": ""}
    return render(request, "dashboard/trace/rows.html", context)


@require_safe
def span(request: DashboardRequest, trace_id: str, key: str) -> HttpResponse:
    """The rail of one step."""
    detail = _detail(request.project, trace_id)
    found = span_detail(detail, key)
    if found is None:
        raise Http404
    return render(request, "dashboard/trace/rail.html", {"trace": detail, "root": detail.root, "span": found})


@require_safe
def field(request: DashboardRequest, trace_id: str, key: str, name: str) -> HttpResponse:
    """One payload of a row, whole, as it was stored."""
    row = selectors.get_span(request.project, key)
    if row is None or name not in FIELDS or (row.root_id or row.id) != trace_id:
        raise Http404
    text = getattr(row, name)
    if text is None:
        raise Http404
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response.headers["Content-Disposition"] = f'inline; filename="{key}-{name}.{"txt" if name == "error" else "json"}"'
    return response


@require_safe
def raw(request: DashboardRequest, trace_id: str) -> HttpResponseBase:
    """The trace as the API has it: the root, then every row below it, streamed."""
    detail = _detail(request.project, trace_id)
    response = StreamingHttpResponse(_raw_parts(detail), content_type="application/json")
    if request.GET.get("save"):
        response.headers["Content-Disposition"] = f'attachment; filename="trace-{detail.root.id}.json"'
    return response


def _raw_parts(detail: TraceDetail) -> Iterator[bytes]:
    yield b'{"trace":' + msgspec.json.encode(full_span(detail.project, detail.root)) + b',"spans":['
    rows = selectors.trace_tree(detail.project, detail.root.id)
    for number, row in enumerate(rows):
        yield (b"," if number else b"") + b"\n" + msgspec.json.encode(full_span(detail.project, row))
    yield b"\n]}\n"


def _raw_text(detail: TraceDetail) -> str:
    if len(detail.nodes) > RAW_ROWS or any(key.startswith(STEP) for key in detail.nodes):
        return msgspec.json.encode(full_span(detail.project, detail.root)).decode()
    return b"".join(_raw_parts(detail)).decode()
