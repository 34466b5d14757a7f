"""Agents: every agent seen or registered, and the monitoring settings of one."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from apps.analytics import selectors as analytics
from apps.analytics.agents import AgentFigures
from apps.core.windows import DEFAULT_NAME, NAMED, parse_free
from apps.dashboard.current import DashboardRequest
from apps.dashboard.forms.agents import ProfileForm
from apps.dashboard.texts import asked, one_line
from apps.projects.services import audit
from apps.tracing import selectors as tracing
from apps.tracing.models import Agent, AgentProfile
from apps.tracing.selectors import TraceFilters
from apps.tracing.services.agents import save_profile
from apps.tracing.store.reads import SpanRow

_RECENT = 10
_PREVIEW = 2000


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """A row of the list."""

    agent: Agent
    profile: AgentProfile | None
    figures: AgentFigures

    @property
    def monitored(self) -> bool:
        """Whether its traces are checked."""
        return self.profile is None or self.profile.enabled


@dataclass(frozen=True, slots=True)
class RecentTrace:
    """A recent root with the question it was asked."""

    row: SpanRow
    question: str


def _profile_of(agent: Agent) -> AgentProfile | None:
    return getattr(agent, "profile", None)


def _window(request: DashboardRequest) -> str:
    name = request.GET.get("window", "")
    return name if name in NAMED else DEFAULT_NAME


@require_safe
def agents(request: DashboardRequest) -> HttpResponse:
    """The agents, busiest first; search and window stand in the address."""
    window = _window(request)
    search = request.GET.get("q", "").strip()[:200]
    figures = analytics.agent_figures(request.project, parse_free(window))
    every = tracing.list_agents(request.project)
    rows = [
        ListedAgent(agent, _profile_of(agent), figures.get(agent.pk, AgentFigures(series=[])))
        for agent in every
        if search.lower() in agent.name.lower()
    ]
    rows.sort(key=lambda row: (-row.figures.traces, row.agent.name))
    context = {"rows": rows, "total": len(every), "search": search, "window": window, "windows": list(NAMED)}
    part = "_list" if request.htmx and request.htmx.target == "agents" else "list"
    return render(request, f"dashboard/agents/{part}.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def agent(request: DashboardRequest, agent_id: str) -> HttpResponse:
    """One agent: figures, recent traces and its monitoring settings, which a POST saves."""
    found = tracing.get_agent(request.project, agent_id)
    if found is None:
        raise Http404
    profile = _profile_of(found)
    form = ProfileForm.of(profile, request.POST or None)
    if request.method == "POST" and form.is_valid():
        save_profile(agent=found, changes=form.cleaned_data)
        audit.record(
            action="profile.update",
            project=request.project,
            request=request,
            summary_fields=form.changed_data,
            target_type="agent",
            target_id=found.pk,
        )
        messages.success(request, _("Monitoring settings of %(name)s saved.") % {"name": found.name})
        return redirect("dashboard:agent", agent_id=found.pk)
    window = _window(request)
    figures = analytics.agent_figures(request.project, parse_free(window)).get(found.pk, AgentFigures(series=[]))
    page = tracing.list_traces(request.project, TraceFilters(agent_id=found.pk), limit=_RECENT, preview=_PREVIEW)
    context = {
        "agent": found,
        "profile": profile,
        "figures": figures,
        "form": form,
        "window": window,
        "windows": list(NAMED),
        "recent": [RecentTrace(row, one_line(asked(row.input))) for row in page.rows],
        "recent_total": page.total,
    }
    return render(request, "dashboard/agents/detail.html", context, status=400 if form.is_bound else 200)
