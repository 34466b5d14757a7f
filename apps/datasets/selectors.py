"""Reads of datasets and their history. Every read is scoped by the project it is given."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import BinaryField, Count, QuerySet, TextField
from django.db.models.functions import Cast

from apps.core.ids import LENGTH
from apps.datasets.models import Dataset, DatasetVersion
from apps.projects.models import Project


def is_id(value: object) -> bool:
    """Whether a value could be an id; others are looked up nowhere."""
    return isinstance(value, str) and len(value) == LENGTH and "\x00" not in value


def get_dataset(project: Project, dataset_id: str) -> Dataset | None:
    """One dataset of the project with its questions, or None."""
    return _one(Dataset.objects.filter(project=project), dataset_id)


def get_document(project: Project, dataset_id: str) -> Dataset | None:
    """Like `get_dataset`, with the questions as text for `wire.document` (`questions` is not loaded)."""
    return _one(documents(project), dataset_id)


def _one(rows: QuerySet[Dataset], dataset_id: str) -> Dataset | None:
    return rows.filter(pk=dataset_id).first() if is_id(dataset_id) else None


def list_datasets(project: Project) -> QuerySet[Dataset]:
    """The project's datasets, newest first, without their questions; `case_count` is a column."""
    return Dataset.objects.filter(project=project).defer("questions").order_by("-id")


def documents(project: Project) -> QuerySet[Dataset]:
    """The project's datasets, newest first, each with its questions as JSON text in `questions_text`."""
    return list_datasets(project).annotate(questions_text=Cast("questions", TextField()))


def dataset_of_grading(project: Project, grading_id: str) -> Dataset | None:
    """The dataset whose grading config has this id, or None."""
    if not is_id(grading_id):
        return None
    return Dataset.objects.filter(project=project, grading_id=grading_id).first()


def versions(dataset: Dataset, *, snapshots: bool = False) -> QuerySet[DatasetVersion]:
    """The history, newest first; with `snapshots` each row has its stored snapshot in `snapshot_packed`."""
    rows = dataset.versions.defer("snapshot").order_by("-version")
    return rows.annotate(snapshot_packed=Cast("snapshot", BinaryField())) if snapshots else rows


def get_version(dataset: Dataset, version_id: str) -> DatasetVersion | None:
    """One entry of the dataset's history with its snapshot, or None."""
    return dataset.versions.filter(pk=version_id).first() if is_id(version_id) else None


def current_version(dataset: Dataset) -> int | None:
    """The number of the newest entry; None for a dataset whose history is gone."""
    return dataset.versions.order_by("-version").values_list("version", flat=True).first()


def version_counts(project: Project, ids: Iterable[str]) -> dict[str, int]:
    """How many entries the history of each dataset has; ids the project does not have are left out."""
    known = [item for item in dict.fromkeys(ids) if is_id(item)]
    if not known:
        return {}
    rows = Dataset.objects.filter(project=project, pk__in=known).annotate(n=Count("versions"))
    return dict(rows.values_list("pk", "n"))
