"""Operators' pages of scorers: read-only, since every write has rules that the API and the dashboard hold to."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import RelatedDropdownFilter
from unfold.decorators import display

from apps.core.admin import ReadOnlyAdmin
from apps.scorers.models import JudgeScorer, JudgeScorerVersion, ScorerGroup


@admin.register(JudgeScorer)
class JudgeScorerAdmin(ReadOnlyAdmin):
    """Judge scorers of every project."""

    list_display = ["name", "project", "live", "seeded", "builtin_key", "updated_at"]
    list_filter = [("project", RelatedDropdownFilter), "seeded"]
    list_select_related = ["project"]
    search_fields = ["=id", "=profile_id", "name"]
    ordering = ["-pk"]

    @display(description=_("Scores live traffic"), boolean=True)
    def live(self, row: JudgeScorer) -> bool:
        """Whether the live profile is on."""
        return bool(row.online and row.online.get("enabled"))


@admin.register(JudgeScorerVersion)
class JudgeScorerVersionAdmin(ReadOnlyAdmin):
    """The history of rubrics."""

    list_display = ["scorer", "version", "change_summary", "creator", "created_at"]
    list_select_related = ["scorer"]
    search_fields = ["=scorer__id", "=id"]
    ordering = ["-pk"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Lists do without the snapshots."""
        rows = super().get_queryset(request)
        match = request.resolver_match
        return rows if match and match.kwargs.get("object_id") else rows.defer("snapshot")


@admin.register(ScorerGroup)
class ScorerGroupAdmin(ReadOnlyAdmin):
    """Scorer groups of every project."""

    list_display = ["name", "project", "size", "updated_at"]
    list_filter = [("project", RelatedDropdownFilter)]
    list_select_related = ["project"]
    search_fields = ["=id", "name"]
    ordering = ["-pk"]

    @display(description=_("Members"))
    def size(self, row: ScorerGroup) -> int:
        """How many scorers it combines."""
        return len(row.members)
