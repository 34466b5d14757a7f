"""Which project-scoped tables of the apps below are exported or deliberately are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.core import exports
from apps.projects.models import ApiKey, MonitoringDefaults, Project, QuotaUsage


def _defaults(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    for row in MonitoringDefaults.objects.filter(project=project):
        yield {
            "id": project.uid,
            "projectId": project.uid,
            "enabledBuiltinPatterns": row.enabled_builtin_patterns,
            "topicsEnabled": row.topics_enabled,
            "topicsSampleRate": row.topics_sample_rate,
            "retentionDays": row.retention_days,
            "coverageMode": row.coverage_mode,
            "sampleRate": row.sample_rate,
            "latencyThresholdMs": row.latency_threshold_ms,
        }


def register() -> None:
    """Called once, when Django is ready."""
    exports.register(
        exports.Entity(
            "monitoring-defaults",
            lambda project: MonitoringDefaults.objects.filter(project=project).count(),
            _defaults,
            (MonitoringDefaults,),
        )
    )
    exports.leave_out(ApiKey, "holds secrets")
    exports.leave_out(QuotaUsage, "counters of the day")
