"""Which project-scoped tables of the apps below are exported or deliberately are not."""

from __future__ import annotations

from apps.core.exports import leave_out, model_entity
from apps.core.exports import register as export
from apps.evaluations.models import Analysis, CIRun, PairwiseComparison
from apps.llm.models import ModelCall
from apps.projects.models import ApiKey, MonitoringDefaults, QuotaUsage


def register() -> None:
    """Called once, when Django is ready."""
    export(model_entity("monitoring-defaults", MonitoringDefaults, key="project_id", time_field="project__created_at"))
    export(model_entity("pairwise-comparisons", PairwiseComparison))
    export(
        model_entity("evaluation-analyses", Analysis, project="run__project", key="run_id", time_field="finished_at")
    )
    export(model_entity("model-calls", ModelCall))
    # Where a result is sent may carry a token of the receiver.
    export(model_entity("ci-runs", CIRun, without=("webhook_url",)))
    leave_out(ApiKey, "holds secrets")
    leave_out(QuotaUsage, "counters of the day")
