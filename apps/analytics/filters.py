"""The filters of the metrics grid, which scope every number of the answer (source 1:7318-7330)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Q

from apps.core.api.errors import APIError
from apps.projects.models import Project
from apps.tracing.models import Agent, Status

OTHER = "other"
STATUS_NAMES = {"ok": Status.OK, "error": Status.ERROR}
FILTER_NAMES = ("agent", "model", "tool", "framework", "status")


@dataclass(frozen=True, slots=True)
class MetricFilters:
    """What a caller asked for; None means not filtered. `framework` "other" selects unlabelled traffic."""

    agent: str | None = None
    model: str | None = None
    tool: str | None = None
    framework: str | None = None
    status: str | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> MetricFilters:
        """From query parameters; blank ones count as absent. Raises 400 for a status that does not exist."""
        values = {name: (query.get(name) or "").strip() or None for name in FILTER_NAMES}
        if values["framework"]:
            values["framework"] = values["framework"].lower()
        if values["status"]:
            values["status"] = values["status"].lower()
            if values["status"] not in STATUS_NAMES:
                raise APIError('status must be "ok" or "error"')
        return cls(**values)

    def agent_ids(self, project: Project) -> list[str] | None:
        """Ids of the agents meant: `agent` is an id or a name, and several agents may share a name. One query."""
        if self.agent is None:
            return None
        matching = Agent.objects.filter(Q(id=self.agent) | Q(name=self.agent), project=project)
        return list(matching.values_list("id", flat=True))

    @property
    def framework_value(self) -> str | None:
        """The label as stored: '' stands for none."""
        return "" if self.framework == OTHER else self.framework

    @property
    def status_value(self) -> Status | None:
        """The status as stored."""
        return STATUS_NAMES[self.status] if self.status else None

    def conditions(self, agent_ids: list[str] | None) -> Q:
        """The filters on columns that Rollup and ToolRollup share (all but the tool)."""
        wanted = Q()
        if agent_ids is not None:
            wanted &= Q(agent_id__in=agent_ids)
        if self.model is not None:
            wanted &= Q(model=self.model)
        if self.framework_value is not None:
            wanted &= Q(framework=self.framework_value)
        if self.status_value is not None:
            wanted &= Q(status=self.status_value)
        return wanted
