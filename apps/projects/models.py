"""Organizations, projects, their keys and settings, quota counters and the audit trail.

Every row of the product hangs on a project. `Project.pk` is a small integer used by the telemetry tables (it keeps
their indexes narrow); the wire knows only `Project.uid`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.db import models

from apps.core.ids import default_id
from apps.core.models import WireModel


class Organization(WireModel):
    """Owns projects. One default organization owns the default project."""

    name = models.CharField(max_length=200)
    is_default = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in an organization."""

    class Role(models.TextChoices):
        OWNER = "owner"
        ADMIN = "admin"
        MEMBER = "member"

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["organization", "user"], name="one_membership_per_person")]


class Project(models.Model):
    """An isolated space with its own keys, traces, agents and settings."""

    uid = models.CharField(max_length=21, unique=True, default=default_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="projects")
    name = models.CharField(max_length=200)
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    deleting = models.BooleanField(default=False, help_text="Its rows are being removed; no key opens it any more.")

    # Id of the key row by which this instance was found; set by project_for_key for the audit trail.
    key_id: str | None = None

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="one_default_project"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(WireModel):
    """A project key: looked up by its SHA-256, encrypted so that Settings can show the project's own key again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, default="Default")
    is_primary = models.BooleanField(default=True, help_text="The key that Settings, API access shows.")
    key_hash = models.CharField(max_length=64, unique=True)
    key_encrypted = models.TextField(blank=True)
    masked = models.CharField(max_length=40)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.masked})"


class MonitoringDefaults(models.Model):
    """A project's monitoring settings (source: sdk monitor/client.py:383-393)."""

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="monitoring_defaults"
    )
    enabled_builtin_patterns = models.JSONField(default=list)
    topics_enabled = models.BooleanField(default=False)
    topics_sample_rate = models.FloatField(default=1.0)
    retention_days = models.IntegerField(default=0, help_text="0 or less keeps everything.")
    coverage_mode = models.CharField(max_length=50, default="all")
    sample_rate = models.FloatField(default=1.0)
    latency_threshold_ms = models.FloatField(null=True, blank=True)


class QuotaUsage(models.Model):
    """How much of a daily quota a project has used; `day` is a UTC date."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    day = models.DateField()
    kind = models.CharField(max_length=30)
    used = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "day", "kind"], name="one_usage_row_per_day")]


class AppendOnlyQuerySet(models.QuerySet["AuditEvent"]):
    """Rows that can be read and added; bulk changes are refused like single ones."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refused: the trail is append-only."""
        raise TypeError("audit events cannot be changed")

    def delete(self) -> NoReturn:
        """Refused: the trail is append-only."""
        raise TypeError("audit events cannot be deleted")


class AuditEvent(WireModel):
    """One control-plane action. Rows are only ever inserted and read (source 1:8336-8337)."""

    action = models.CharField(max_length=60, db_index=True)
    actor_type = models.CharField(max_length=10)
    actor_id = models.CharField(max_length=40, blank=True)
    actor_email = models.CharField(max_length=254, blank=True)
    project_uid = models.CharField(max_length=21, blank=True, db_index=True)
    organization_uid = models.CharField(max_length=21, blank=True, db_index=True)
    ip = models.CharField(max_length=45, blank=True)
    target_type = models.CharField(max_length=40, blank=True)
    target_id = models.CharField(max_length=200, blank=True)
    summary = models.CharField(max_length=500, blank=True, help_text="Field names only, never values.")
    status = models.CharField(max_length=20, default="ok")

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["-created_at"])]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert the row; an existing row cannot be changed."""
        if not self._state.adding:
            raise TypeError("audit events cannot be changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: the trail is append-only."""
        raise TypeError("audit events cannot be deleted")
