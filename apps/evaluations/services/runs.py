"""Start a run: freeze the questions and the grader, make the paraphrases it asks for (EVAL-014..044)."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.core.api.errors import APIError, NotFound
from apps.datasets.models import Dataset
from apps.datasets.questions import clean
from apps.evaluations.models import Run
from apps.evaluations.services import snapshot, variants
from apps.projects.models import Project
from apps.scorers.grading import resolve_grader

_SOURCE_LIMIT = 40
_LABEL_LIMIT = 200


def create_from_body(*, project: Project, body: dict[str, Any]) -> Run:
    """Create a run from the body of `POST /runs` (source 1:676-714).

    Raises 400 for a missing `datasetId` or unusable scorers, 404 for an unknown dataset, grading config or group. No
    run is left behind by a refusal.
    """
    dataset_id = body.get("datasetId")
    if not isinstance(dataset_id, str) or not dataset_id.strip():
        raise APIError("datasetId is required")
    dataset = snapshot.dataset_of(project, dataset_id)
    if dataset is None:
        raise NotFound("Dataset not found")
    grader = resolve_grader(
        project,
        evaluation_settings_id=body.get("evaluationSettingsId"),
        additional_scorer_ids=body.get("additionalScorerIds"),
        scorer_group_id=body.get("scorerGroupId"),
        dataset=dataset,
    )
    split = body.get("split")
    sdk = body.get("sdk")
    source = body.get("runSource")
    return create(
        project=project,
        dataset=dataset,
        grader=grader,
        subject=subject_of(body),
        split=clean(split).strip()[:_LABEL_LIMIT] if isinstance(split, str) else "",
        run_source=clean(source)[:_SOURCE_LIMIT] if isinstance(source, str) else "",
        sdk=clean(sdk) if isinstance(sdk, dict) else None,
    )


def create(
    *,
    project: Project,
    dataset: Dataset,
    grader: dict[str, Any],
    subject: dict[str, Any] | None = None,
    split: str = "",
    run_source: str = "",
    sdk: dict[str, Any] | None = None,
    with_variants: bool = True,
) -> Run:
    """Create a run over a dataset as it is now, judged by a resolved grader (apps.scorers.grading).

    `with_variants` False makes no paraphrases, for runs whose caller must be answered at once.
    """
    groups: list[dict[str, Any]] | None = None
    warnings: list[str] = []
    if with_variants:
        # Before the transaction: models are asked here.
        groups, warnings = variants.groups_for(project, dataset.questions, split or None)
    if split:
        subject = {**(subject or {}), "split": split}
    paraphrases = sum(len(group["variants"]) for group in groups or [])
    with transaction.atomic():
        return Run.objects.create(
            project=project,
            dataset_id=dataset.pk,
            dataset_name=dataset.name,
            dataset_version=snapshot.version_of(dataset),
            snapshot=snapshot.freeze(dataset),
            evaluation_settings_id=grader.get("evaluationSettingsId"),
            scorer_group_id=grader.get("scorerGroupId"),
            additional_scorer_ids=grader.get("additionalScorerIds"),
            grader=grader,
            subject=subject,
            run_source=run_source,
            sdk=sdk,
            split=split,
            version_label=version_label(subject),
            smoke_variants=groups,
            warnings=warnings,
            expected_results=snapshot.expected_results(dataset.questions, grader, split or None, paraphrases),
        )


def subject_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """The agent under test as sent; `subject` is the other client's word, its `name` the display name (SDK-055)."""
    value = body.get("evaluationSubject")
    if not isinstance(value, dict):
        value = body.get("subject")
    if not isinstance(value, dict):
        return None
    subject: dict[str, Any] = clean(value)
    if not subject.get("displayName") and isinstance(subject.get("name"), str):
        subject["displayName"] = subject["name"]
    return subject


def version_label(subject: dict[str, Any] | None) -> str:
    """`version` of the subject, else that of its metadata, as text; empty when neither is set (EVAL-026)."""
    if not subject:
        return ""
    metadata = subject.get("metadata")
    for value in (subject.get("version"), metadata.get("version") if isinstance(metadata, dict) else None):
        if isinstance(value, str) and value.strip():
            return value.strip()[:_LABEL_LIMIT]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)[:_LABEL_LIMIT]
    return ""
