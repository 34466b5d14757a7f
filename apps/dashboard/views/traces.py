"""Live Traces: the list, its expanded rows and its export."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from apps.core.ids import is_id
from apps.dashboard import trace_export, trace_list
from apps.dashboard.current import DashboardRequest
from apps.dashboard.quickstart import quickstart
from apps.dashboard.trace_detail import Payload
from apps.dashboard.trace_list import SOURCES, STATUSES, WINDOWS, TraceQuery
from apps.dashboard.volume import volume
from apps.tracing import browse, selectors
from apps.tracing.trajectory import tool_quality


@require_safe
def traces(request: DashboardRequest) -> HttpResponse:
    """The list of root traces; htmx gets only the region that changes."""
    project = request.project
    query = TraceQuery(request.GET)
    agents = trace_list.agent_names(project)
    listing = trace_list.listing(project, query, agents)
    context = {"query": query, "filters": query.filters, "listing": listing, "agents": agents}
    if listing.rows:
        context["volume"] = volume(project, query.filters)
    region_only = bool(request.htmx) and not request.htmx.history_restore_request
    labels = None
    if not listing.rows:
        labels = selectors.framework_labels(project)
        context["first_time"] = not labels
        if labels:
            context["ways"] = trace_list.ways_out(project, query, listing.applied)
        else:
            context |= quickstart(request)
    if region_only:
        response = render(request, "dashboard/traces/region.html", context)
    else:
        labels = labels if labels is not None else selectors.framework_labels(project)
        context["labels"] = [(label or trace_list.OTHER, label, n) for label, n in labels]
        context["windows"] = [(name, words) for name, (_ms, words) in WINDOWS.items()]
        context["sources"], context["statuses"] = SOURCES, STATUSES
        response = render(request, "dashboard/traces/page.html", context)
    response.headers["Vary"] = "HX-Request"
    return response


@require_safe
def new_count(request: DashboardRequest) -> JsonResponse:
    """How many traces match the list's filters and are newer than the row `after`: `{"count": 12}`, at most 500."""
    query = TraceQuery(request.GET)
    after = request.GET.get("after", "")
    if after and not is_id(after):
        return JsonResponse({"count": 0})
    return JsonResponse({"count": browse.count_newer(request.project, query.filters, after)})


@require_safe
def peek(request: DashboardRequest, trace_id: str) -> HttpResponse:
    """The expanded row: what was asked and answered, the tools, where it belongs."""
    row = selectors.get_span(request.project, trace_id)
    if row is None:
        raise Http404
    context = {
        "row": row,
        "tools": tool_quality(row),
        "input": Payload("input", _("Input"), row.input, row.kind),
        "output": Payload("output", _("Output"), row.output, row.kind),
    }
    return render(request, "dashboard/traces/peek.html", context)


@require_safe
def export(request: DashboardRequest, form: str) -> HttpResponseBase:
    """The list as it is filtered, newest first, as CSV or JSON; streamed, at most trace_export.MAX_ROWS rows."""
    query = TraceQuery(request.GET)
    agents = trace_list.agent_names(request.project)
    window = query.window or ("range" if query.has_range else "all")
    rows = trace_export.rows(request.project, query.filters, agents)
    if form == "csv":
        response = StreamingHttpResponse(trace_export.as_csv(rows), content_type="text/csv; charset=utf-8")
    elif form == "json":
        response = StreamingHttpResponse(trace_export.as_json(rows), content_type="application/json")
    else:
        raise Http404
    name = trace_export.file_name("traces", request.project.name, window, form)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
