"""Operators' pages of telemetry: read-only, and quick over millions of rows.

Lists page by primary key without counting. Search takes exact ids only, because those have an index; free text is what
the dashboard's own search is for.
"""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.decorators import display

from apps.core.admin import CountlessAdmin, ReadOnlyAdmin, moment
from apps.core.ids import LENGTH, time_prefix
from apps.core.times import now_ms
from apps.projects.models import Project
from apps.tracing.models import Agent, Session, Span, Status, Traffic

_HOUR_MS = 3_600_000
# More of a payload than this makes the page slow; the API serves the whole.
_SHOWN_CHARS = 20_000


class SinceFilter(admin.SimpleListFilter):
    """Since when; the id carries the time, so the primary key answers."""

    title = _("time")
    parameter_name = "since"
    hours = {"1h": 1, "24h": 24, "7d": 168, "30d": 720}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("1h", _("Last hour")),
            ("24h", _("Last 24 hours")),
            ("7d", _("Last 7 days")),
            ("30d", _("Last 30 days")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Span]) -> QuerySet[Span]:
        hours = self.hours.get(self.value() or "")
        return queryset.filter(id__gte=time_prefix(now_ms() - hours * _HOUR_MS)) if hours else queryset


class RowFilter(admin.SimpleListFilter):
    """Traces or the spans inside them."""

    title = _("row")
    parameter_name = "row"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("trace", _("Traces (roots)")), ("span", _("Child spans"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Span]) -> QuerySet[Span]:
        if self.value() in {"trace", "span"}:
            return queryset.filter(parent_span_id__isnull=self.value() == "trace")
        return queryset


class KindFilter(admin.SimpleListFilter):
    """The span's kind; the list is fixed, so that no DISTINCT scans the table."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        kinds = ("agent", "llm", "tool", "retriever", "chain", "embedding", "memory", "span")
        return [(kind, kind) for kind in kinds]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Span]) -> QuerySet[Span]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Span)
class SpanAdmin(CountlessAdmin):
    """Every stored span."""

    list_display = ["created", "name", "kind", "state", "project", "model", "tokens", "cost", "latency", "id"]
    list_filter = [SinceFilter, ("project", RelatedDropdownFilter), RowFilter, "status", "traffic", KindFilter]
    list_filter_submit = True
    list_select_related = ["project"]
    ordering = ["-id"]
    search_fields = ["id"]
    search_help_text = _("Exact trace, span row or session id")
    fieldsets = [
        (
            None,
            {
                "fields": [
                    "id",
                    "name",
                    "kind",
                    "status_name",
                    "traffic_name",
                    "project",
                    "agent_id",
                    "session_id",
                    "created",
                    "error",
                ]
            },
        ),
        (_("Tree"), {"fields": ["span_id", "parent_span_id", "root_id"]}),
        (
            _("Model and cost"),
            {"fields": ["framework", "model", "tokens", "cache_read_tokens", "cache_write_tokens", "cost", "latency"]},
        ),
        (_("Payload"), {"fields": ["input_text", "output_text", "tool_calls_text", "metadata_text"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Span]:
        rows = super().get_queryset(request)
        if request.resolver_match and request.resolver_match.url_name == "tracing_span_changelist":
            return rows.defer("input", "output", "tool_calls", "metadata", "performance_summary", "error")
        return rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Span], search_term: str
    ) -> tuple[QuerySet[Span], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        if len(term) == LENGTH and Span.objects.filter(pk=term).exists():
            return queryset.filter(Q(pk=term) | Q(root_id=term, parent_span_id__isnull=False)), False
        # Named project by project, because the index begins with the project.
        projects = list(Project.objects.values_list("pk", flat=True))
        return queryset.filter(project_id__in=projects, session_id=term), False

    @display(description=_("Time (UTC)"))
    def created(self, row: Span) -> str:
        return moment(row.created_ms)

    @display(description=_("Status"), label={Status.OK: "success", Status.ERROR: "danger"})
    def state(self, row: Span) -> tuple[int, str]:
        return row.status, Status(row.status).label

    @display(description=_("Status"))
    def status_name(self, row: Span) -> str:
        return str(Status(row.status).label)

    @display(description=_("Traffic"))
    def traffic_name(self, row: Span) -> str:
        return Traffic(row.traffic).label

    @display(description=_("Tokens in / out"))
    def tokens(self, row: Span) -> str:
        return " / ".join("–" if count is None else f"{count:,}" for count in (row.input_tokens, row.output_tokens))

    @display(description=_("Cost $"))
    def cost(self, row: Span) -> str:
        return "–" if row.cost_usd is None else f"{row.cost_usd:.6f}"

    @display(description=_("Latency ms"))
    def latency(self, row: Span) -> str:
        return "–" if row.latency_ms is None else f"{row.latency_ms:,.0f}"

    @display(description=_("Input"))
    def input_text(self, row: Span) -> SafeString | str:
        return _payload(row.input)

    @display(description=_("Output"))
    def output_text(self, row: Span) -> SafeString | str:
        return _payload(row.output)

    @display(description=_("Tool calls"))
    def tool_calls_text(self, row: Span) -> SafeString | str:
        return _payload(row.tool_calls)

    @display(description=_("Metadata"))
    def metadata_text(self, row: Span) -> SafeString | str:
        return _payload(row.metadata)


def _payload(text: str | None) -> SafeString | str:
    """A payload for reading: indented when it is JSON, cut when it is long."""
    if text is None:
        return "–"
    shown = text
    if len(text) <= _SHOWN_CHARS:
        try:
            shown = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            shown = text
    cut = len(shown) > _SHOWN_CHARS
    note = str(_("… shortened; the API serves the whole.")) if cut else ""
    return format_html(
        '<pre class="text-xs" style="max-height:32rem;overflow:auto;white-space:pre-wrap">{}{}</pre>',
        shown[:_SHOWN_CHARS],
        note,
    )


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """Registered agents."""

    list_display = ["name", "project", "id", "created_at"]
    list_filter = [("project", RelatedDropdownFilter)]
    list_filter_submit = True
    list_select_related = ["project"]
    search_fields = ["name", "=id"]
    ordering = ["-created_at"]


@admin.register(Session)
class SessionAdmin(CountlessAdmin):
    """Sessions with their aggregates."""

    list_display = ["session_id", "project", "turn_count", "span_count", "error_count", "cost", "last_activity"]
    list_filter = [("project", RelatedDropdownFilter)]
    list_filter_submit = True
    list_select_related = ["project"]
    ordering = ["-id"]
    search_fields = ["session_id"]
    search_help_text = _("Exact session id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Session], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        projects = list(Project.objects.values_list("pk", flat=True))
        return queryset.filter(project_id__in=projects, session_id=term), False

    @display(description=_("Cost $"))
    def cost(self, row: Session) -> str:
        return "–" if row.cost_usd is None else f"{row.cost_usd:.4f}"

    @display(description=_("Last activity (UTC)"))
    def last_activity(self, row: Session) -> str:
        return moment(row.last_ms)
