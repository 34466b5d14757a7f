"""Removing a project's datasets in batches: an entry of a history may hold megabytes."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.datasets.models import CaseEmbedding, Dataset, DatasetVersion

_BATCH = 200


def purge_project(project_id: int) -> None:
    """Delete datasets, their histories and kept vectors of a project; may be called again at any time."""
    _in_batches(DatasetVersion.objects.filter(dataset__project_id=project_id))
    _in_batches(Dataset.objects.filter(project_id=project_id))
    _in_batches(CaseEmbedding.objects.filter(project_id=project_id))


def _in_batches(rows: QuerySet) -> None:
    while ids := list(rows.values_list("pk", flat=True)[:_BATCH]):
        rows.model._default_manager.filter(pk__in=ids).delete()
