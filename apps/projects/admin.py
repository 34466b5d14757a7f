"""Operators' pages of organizations, projects, keys, quotas and the audit trail.

Writes go through the same services as the API, so that caches, the audit trail and telemetry follow.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import RangeDateTimeFilter, RelatedDropdownFilter
from unfold.decorators import action, display

from apps.core.admin import ReadOnlyAdmin
from apps.core.api.errors import APIError
from apps.projects.models import (
    ApiKey,
    AuditEvent,
    Membership,
    MonitoringDefaults,
    Organization,
    Project,
    QuotaUsage,
)
from apps.projects.services.keys import revoke_key
from apps.projects.services.projects import create_project, delete_project, rename_organization, rename_project


class _ReadOnlyInline(TabularInline):
    extra = 0
    can_delete = False
    show_change_link = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return list(self.fields or [])

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MembershipInline(_ReadOnlyInline):
    """Members of an organization."""

    model = Membership
    fields = ["user", "role", "created_at"]
    verbose_name_plural = _("Members")


class ProjectInline(_ReadOnlyInline):
    """Projects of an organization."""

    model = Project
    fields = ["name", "uid", "is_default", "created_at"]
    show_change_link = True


@admin.register(Organization)
class OrganizationAdmin(ModelAdmin):
    """Organizations; the default one owns the projects of an instance without accounts."""

    list_display = ["name", "id", "default", "member_count", "project_count", "created_at"]
    list_filter = ["is_default"]
    search_fields = ["name", "id"]
    ordering = ["-is_default", "name"]
    fields = ["name", "id", "is_default", "created_at"]
    readonly_fields = ["id", "is_default", "created_at"]
    inlines = [ProjectInline, MembershipInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        return (
            super()
            .get_queryset(request)
            .annotate(
                members=Count("memberships", distinct=True),
                project_total=Count("projects", filter=Q(projects__deleting=False), distinct=True),
            )
        )

    @display(description=_("Default"), label={"default": "primary"})
    def default(self, row: Organization) -> tuple[str, Any] | None:
        return ("default", _("Default")) if row.is_default else None

    @display(description=_("Members"), ordering="members")
    def member_count(self, row: Any) -> int:
        return int(row.members)

    @display(description=_("Projects"), ordering="project_total")
    def project_count(self, row: Any) -> int:
        return int(row.project_total)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Organization, form: ModelForm, change: bool) -> None:
        rename_organization(organization=obj, name=obj.name, request=request)


class KeyInline(_ReadOnlyInline):
    """A project's keys, masked."""

    model = ApiKey
    fields = ["name", "masked", "is_primary", "created_at", "revoked_at"]
    show_change_link = True
    verbose_name_plural = _("Keys")


class MonitoringDefaultsInline(_ReadOnlyInline):
    """A project's monitoring settings; they are changed in its own Settings."""

    model = MonitoringDefaults
    fields = ["retention_days", "topics_enabled", "topics_sample_rate", "enabled_builtin_patterns"]
    verbose_name_plural = _("Monitoring settings")


@admin.register(Project)
class ProjectAdmin(ModelAdmin):
    """Projects; deleting one removes every row it owns."""

    list_display = ["name", "uid", "organization", "state", "live_keys", "created_at"]
    list_filter = [("organization", RelatedDropdownFilter), "is_default", "deleting"]
    list_filter_submit = True
    list_select_related = ["organization"]
    search_fields = ["name", "uid"]
    search_help_text = _("Name or id")
    ordering = ["-is_default", "-created_at"]
    fields = ["name", "uid", "organization", "is_default", "deleting", "created_at"]
    readonly_fields = ["uid", "organization", "is_default", "deleting", "created_at"]
    inlines = [KeyInline, MonitoringDefaultsInline]
    # Deletion takes as long as there is telemetry: one project at a time, on its own page.
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        live = Count("api_keys", filter=Q(api_keys__revoked_at=None))
        return super().get_queryset(request).annotate(live_key_total=live)

    @display(
        description=_("State"),
        label={"default": "primary", "live": "success", "deleting": "danger"},
    )
    def state(self, row: Project) -> tuple[str, Any]:
        if row.deleting:
            return "deleting", _("Being deleted")
        return ("default", _("Default")) if row.is_default else ("live", _("Live"))

    @display(description=_("Live keys"), ordering="live_key_total")
    def live_keys(self, row: Any) -> int:
        return int(row.live_key_total)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return list(self.fields) if obj else ["name"]

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return super().get_inline_instances(request, obj) if obj else []

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and obj is not None and not obj.is_default

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        # Everything in a project belongs to it; the default walk would load it and ask for each table's permission.
        listed = [
            str(_("Project %(name)s with its keys, settings, agents and all its traces") % {"name": row})
            for row in objs
        ]
        return listed, {str(_("projects")): len(listed)}, set(), []

    def save_model(self, request: HttpRequest, obj: Project, form: ModelForm, change: bool) -> None:
        if change:
            rename_project(project=obj, name=obj.name, request=request)
            return
        made, _key = create_project(name=obj.name, request=request)
        obj.__dict__.update(made.__dict__)

    def delete_model(self, request: HttpRequest, obj: Project) -> None:
        try:
            delete_project(uid=obj.uid, request=request)
        except APIError as error:
            self.message_user(request, error.message, messages.ERROR)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Project keys: masked, revocable, never shown."""

    list_display = ["masked", "name", "project", "primary", "state", "created_at", "revoked_at"]
    list_filter = [("project", RelatedDropdownFilter), "is_primary", ("revoked_at", admin.EmptyFieldListFilter)]
    list_filter_submit = True
    list_select_related = ["project"]
    search_fields = ["name", "masked", "project__name", "id"]
    ordering = ["-created_at"]
    fields = ["masked", "name", "project", "is_primary", "id", "created_at", "revoked_at"]
    actions = ["revoke"]
    actions_detail = ["revoke_one"]

    @display(description=_("Use"))
    def primary(self, row: ApiKey) -> Any:
        return _("shown in Settings") if row.is_primary else _("additional")

    @display(description=_("State"), label={"live": "success", "revoked": "danger"})
    def state(self, row: ApiKey) -> tuple[str, Any]:
        return ("revoked", _("Revoked")) if row.revoked_at else ("live", _("Live"))

    def has_revoke_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Revoking is a change of the row, which the page itself does not offer."""
        return bool(request.user.has_perm("projects.change_apikey"))

    @admin.action(description=_("Revoke: clients with the key get 401 at once"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        live = list(queryset.filter(revoked_at=None).select_related("project"))
        for key in live:
            revoke_key(key=key, request=request)
        done = ngettext("%(count)d key revoked.", "%(count)d keys revoked.", len(live)) % {"count": len(live)}
        self.message_user(request, done, messages.SUCCESS)

    @action(description=_("Revoke this key"), permissions=["revoke"], icon="block")
    def revoke_one(self, request: HttpRequest, object_id: str) -> Any:
        key = get_object_or_404(ApiKey.objects.select_related("project"), pk=object_id)
        page = reverse("admin:projects_apikey_change", args=[key.pk])
        if key.revoked_at:
            self.message_user(request, _("This key is revoked already."), messages.INFO)
            return redirect(page)
        if request.method != "POST":
            context = {**self.admin_site.each_context(request), "title": _("Revoke key"), "key": key, "page": page}
            return render(request, "admin/projects/revoke_key.html", context)
        revoke_key(key=key, request=request)
        self.message_user(request, _("The key is revoked."), messages.SUCCESS)
        return redirect(page)


@admin.register(QuotaUsage)
class QuotaUsageAdmin(ReadOnlyAdmin):
    """How much of the daily quotas is used."""

    list_display = ["day", "project", "kind", "used"]
    list_filter = [("project", RelatedDropdownFilter), "kind", "day"]
    list_filter_submit = True
    list_select_related = ["project"]
    date_hierarchy = "day"
    ordering = ["-day", "project"]
    search_fields = ["project__name"]


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The audit trail: rows are only ever inserted and read."""

    list_display = ["created_at", "action", "actor", "project_uid", "target", "summary", "ip", "result"]
    list_filter = [
        ("created_at", RangeDateTimeFilter),
        ("action", admin.AllValuesFieldListFilter),
        ("actor_type", admin.AllValuesFieldListFilter),
        ("status", admin.AllValuesFieldListFilter),
    ]
    list_filter_submit = True
    search_fields = ["=action", "=actor_email", "=actor_id", "=project_uid", "=target_id", "=ip"]
    search_help_text = _("Exact action, actor, project, target or address")
    ordering = ["-created_at", "-id"]
    show_full_result_count = False

    @display(description=_("Actor"))
    def actor(self, row: AuditEvent) -> str:
        return f"{row.actor_type} {row.actor_email or row.actor_id}".strip()

    @display(description=_("Target"))
    def target(self, row: AuditEvent) -> str:
        return f"{row.target_type} {row.target_id}".strip()

    @display(description=_("Status"), label={"ok": "success"})
    def result(self, row: AuditEvent) -> str:
        return row.status
