"""Writes of datasets. Each is one transaction and leaves one entry in the history when something changed."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Max

from apps.core.api.errors import APIError, NotFound
from apps.datasets import grading, questions, selectors, wire
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.services import attachments
from apps.projects.models import Project
from apps.projects.services import audit
from apps.tracing.ingest.cleaning import clean_text

NAME_LIMIT = 300
# What the history is about, in the order a summary names it, and what each is called there (DATA-034, DATA-036).
TRACKED = {
    "name": "name",
    "description": "description",
    "questions": "questions",
    "status": "status",
    "numberOfRequests": "number of requests",
    "acceptanceCriteria": "acceptance criteria",
    "rejectionCriteria": "rejection criteria",
    "evaluationCriteria": "evaluation criteria",
    "judgePrompt": "judge prompt",
    "judgeModel": "judge model",
    "vectorSimilarity": "vector similarity",
    "jaccardSimilarity": "Jaccard similarity",
    "bleuScore": "BLEU score",
    "rougeScore": "ROUGE score",
    "sovereigntyIndex": "sovereignty index",
    "codeScorers": "code scorers",
    "ci": "CI settings",
}


@transaction.atomic
def create_dataset(
    *, project: Project, body: dict[str, Any], creator: str = "", request: Any = None, action: str = "dataset.create"
) -> Dataset:
    """A new dataset from the wire keys of a body, with version 0; raises 400 for a body without a usable name."""
    dataset = Dataset(project=project, name=_name(body.get("name")))
    _apply(dataset, body)
    dataset.save(force_insert=True)
    _record(dataset, 0, "Created", creator)
    audit.record(
        action=action,
        project=project,
        request=request,
        summary_fields=[key for key in ("name", *TRACKED) if body.get(key) is not None],
        target_type="dataset",
        target_id=dataset.pk,
    )
    return dataset


def import_dataset(*, project: Project, row: dict[str, Any], creator: str = "", request: Any = None) -> Dataset:
    """A copy of an exported row or of a fetched document under fresh ids (DATA-044).

    Ids, times and unknown keys of the row are ignored; an export that keeps the grading config in a member of its own
    is understood too.
    """
    nested = row.get("grading")
    body = {**(nested if isinstance(nested, dict) else {}), **row}
    return create_dataset(project=project, body=body, creator=creator, request=request, action="dataset.import")


@transaction.atomic
def update_dataset(
    *,
    project: Project,
    dataset_id: str,
    body: dict[str, Any],
    base_version: int | None = None,
    creator: str = "",
    request: Any = None,
) -> Dataset:
    """Change the keys a body has; null clears an optional one. A save that changes nothing adds no version.

    With `base_version` the save is refused with 409 when the history has moved on, so that an editor does not
    silently undo what came in since it was opened. Raises 404 for an unknown dataset.
    """
    dataset = locked(project, dataset_id)
    newest = _newest(dataset)
    if base_version is not None and newest is not None and newest != base_version:
        raise APIError(
            f"The dataset was changed since it was opened (version {base_version}, now {newest}); reload it first", 409
        )
    before = wire.content(dataset)
    if "name" in body:
        dataset.name = _name(body["name"])
    _apply(dataset, body)
    changed = save_changes(dataset, before=before, newest=newest, creator=creator)
    if changed:
        audit.record(
            action="dataset.update",
            project=project,
            request=request,
            summary_fields=changed,
            target_type="dataset",
            target_id=dataset.pk,
        )
    return dataset


@transaction.atomic
def delete_dataset(*, project: Project, dataset_id: str, request: Any = None) -> None:
    """Remove a dataset, its grading config and its history; runs stay. 404 unknown, 409 while it is in use."""
    dataset = locked(project, dataset_id, full=False)
    users = attachments.attached_to(project, dataset.grading_id)
    if users:
        names = ", ".join(f"“{name}”" for name in users[:5])
        raise APIError(f"The dataset's grading config is attached to a live scorer ({names}); detach it first", 409)
    audit.record(action="dataset.delete", project=project, request=request, target_type="dataset", target_id=dataset.pk)
    dataset.delete()


@transaction.atomic
def delete_version(*, project: Project, dataset_id: str, version_id: str, request: Any = None) -> None:
    """Remove an older entry of the history; 404 unknown, 409 for the current one (DATA-039)."""
    dataset = locked(project, dataset_id, full=False)
    row = selectors.get_version(dataset, version_id)
    if row is None:
        raise NotFound("Version not found")
    if row.version == _newest(dataset):
        raise APIError("The current version cannot be deleted", 409)
    row.delete()
    audit.record(
        action="datasetVersion.delete",
        project=project,
        request=request,
        target_type="datasetVersion",
        target_id=version_id,
    )


def locked(project: Project, dataset_id: str, *, full: bool = True) -> Dataset:
    """The dataset, held against other writers until the transaction ends (call inside one); raises 404.

    Without `full` its questions are not loaded.
    """
    dataset = None
    if selectors.is_id(dataset_id):
        rows = Dataset.objects.select_for_update().filter(project=project, pk=dataset_id)
        dataset = (rows if full else rows.defer("questions")).first()
    if dataset is None:
        raise NotFound("Dataset not found")
    return dataset


def save_changes(dataset: Dataset, *, before: dict[str, Any], newest: int | None, creator: str) -> list[str]:
    """Store a locked dataset and, when a tracked field differs, a history entry; gives the wire keys that changed."""
    after = wire.content(dataset)
    changed = [key for key in TRACKED if before.get(key) != after.get(key)]
    if changed:
        dataset.save(force_update=True)
        summary = "Updated " + ", ".join(TRACKED[key] for key in changed)
        _record(dataset, 0 if newest is None else newest + 1, summary, creator)
    return changed


def _record(dataset: Dataset, number: int, summary: str, creator: str) -> None:
    DatasetVersion.objects.create(
        dataset=dataset,
        version=number,
        snapshot=wire.content(dataset),
        change_summary=summary,
        creator=clean_text(creator)[:254],
    )


def _newest(dataset: Dataset) -> int | None:
    return dataset.versions.aggregate(n=Max("version"))["n"]


def _apply(dataset: Dataset, body: dict[str, Any]) -> None:
    if "description" in body:
        dataset.description = grading.text_or_none("description", body["description"]) or ""
    if "numberOfRequests" in body:
        dataset.number_of_requests = grading.repetitions(body["numberOfRequests"])
    # Null leaves the cases alone: an edit that says nothing about them must not remove them.
    if body.get("questions") is not None:
        dataset.questions = questions.normalized(body["questions"])
        dataset.case_count = len(dataset.questions)
    dataset.grading = grading.apply(dataset.grading, body)
    if "ci" in body:
        dataset.ci = grading.ci(body["ci"])


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise APIError("name is required")
    name = clean_text(value)
    if len(name) > NAME_LIMIT:
        raise APIError(f"name must be at most {NAME_LIMIT} characters")
    return name
