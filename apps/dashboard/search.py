"""What the command palette finds: a pasted id, agents and sessions by name, a search of the traces."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from apps.core.ids import LENGTH
from apps.dashboard import texts
from apps.dashboard.previews import first_line
from apps.projects.models import Project
from apps.tracing import selectors
from apps.tracing.models import Agent

_EACH = 5


@dataclass(frozen=True)
class Found:
    """One result: where it leads, its icon, its text and what it is."""

    url: str
    icon: str
    label: str
    note: str


def _page(name: str, *args: str) -> str:
    try:
        return reverse(f"dashboard:{name}", args=args)
    except NoReverseMatch:
        return ""


def find(project: Project, text: str) -> list[Found]:
    """Results for the text, the surest first; a fixed number of queries."""
    results: list[Found] = []
    if len(text) == LENGTH:
        row = selectors.get_span(project, text)
        if row is not None:
            title = first_line(texts.asked(row.input), 80) or row.name
            note = _("trace") if row.is_root else _("span")
            results.append(Found(_page("trace", row.id), "list-tree", title, note))
    for agent in Agent.objects.filter(project=project, name__icontains=text).order_by("name", "id")[:_EACH]:
        url = _page("agent", agent.pk) or f"{_page('traces')}?{urlencode({'agent': agent.pk})}"
        results.append(Found(url, "bot", agent.name, _("agent")))
    for session in selectors.list_sessions(project, limit=_EACH, search=text).rows:
        url = _page("session", session.session_id)
        if url:
            results.append(Found(url, "message-square", session.session_id, _("session")))
    search = f"{_page('traces')}?{urlencode({'q': text, 'source': 'all'})}"
    results.append(Found(search, "search", _("Search traces for “%(text)s”") % {"text": first_line(text, 60)}, ""))
    return results
