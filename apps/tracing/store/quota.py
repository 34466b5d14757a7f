"""The daily trace quota: roots stored per project and UTC day of arrival (AGENTX_QUOTA_TRACES_PER_DAY)."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings

from apps.projects.models import QuotaUsage

KIND = "traces"


class Allowance:
    """What a project may still store today; used inside one transaction under the project's write lock."""

    def __init__(self, project_id: int) -> None:
        self.limit: int = settings.QUOTA_TRACES_PER_DAY or 0
        self._taken = 0
        self._usage, _ = QuotaUsage.objects.get_or_create(
            project_id=project_id, day=datetime.now(UTC).date(), kind=KIND, defaults={"used": 0}
        )

    def take(self) -> bool:
        """Count one root; False when the quota is used up."""
        if self._usage.used + self._taken >= self.limit:
            return False
        self._taken += 1
        return True

    def save(self) -> None:
        """Write the new count."""
        if self._taken:
            self._usage.used += self._taken
            self._usage.save(update_fields=["used"])
