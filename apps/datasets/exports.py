"""Export rows of datasets and their history (source 1:8092-8134, 1:8178-8186).

A dataset's row is flat, under the wire's own keys, so that the import route and the published client's
`import_dataset` take it unchanged. The webhook address is left out: it may carry a token of the receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.core import exports
from apps.core.times import datetime_to_iso
from apps.datasets import wire
from apps.datasets.models import CaseEmbedding, Dataset, DatasetVersion
from apps.projects.models import Project

# A dataset may have thousands of cases, its history a copy of them in each entry.
_BATCH = 20


def exported(project: Project, dataset: Dataset) -> dict[str, Any]:
    """The export row of a dataset."""
    return {
        "id": dataset.pk,
        "projectId": project.uid,
        "gradingId": dataset.grading_id,
        **_without_webhook(wire.content(dataset)),
        "caseCount": dataset.case_count,
        "createdAt": datetime_to_iso(dataset.created_at),
        "updatedAt": datetime_to_iso(dataset.updated_at),
    }


def _without_webhook(content: dict[str, Any]) -> dict[str, Any]:
    ci = content.get("ci")
    if not isinstance(ci, dict) or "webhookUrl" not in ci:
        return content
    return {**content, "ci": {key: value for key, value in ci.items() if key != "webhookUrl"}}


def _datasets(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = Dataset.objects.filter(project=project)
    for row in exports.by_keyset(rows, since_ms, time_field="updated_at", batch=_BATCH):
        yield exported(project, row)


def _versions(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = DatasetVersion.objects.filter(dataset__project=project)
    for row in exports.by_keyset(rows, since_ms, time_field="created_at", batch=_BATCH):
        yield {
            "id": row.pk,
            "projectId": project.uid,
            "datasetId": row.dataset_id,
            "version": row.version,
            "snapshot": _without_webhook(row.snapshot),
            "changeSummary": row.change_summary,
            "creator": row.creator or None,
            "createdAt": datetime_to_iso(row.created_at),
        }


def register() -> None:
    """Called once, when Django is ready."""
    exports.register(
        exports.Entity(
            "datasets", lambda project: Dataset.objects.filter(project=project).count(), _datasets, (Dataset,)
        )
    )
    exports.register(
        exports.Entity(
            "dataset-versions",
            lambda project: DatasetVersion.objects.filter(dataset__project=project).count(),
            _versions,
            (DatasetVersion,),
        )
    )
    exports.leave_out(CaseEmbedding, "computed from the texts again")
