"""Datasets and their versions as the wire has them (source 1:598-600, 1:1099-1121)."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from apps.core.times import datetime_to_iso
from apps.datasets.fields import unpacked
from apps.datasets.grading import GRADING_KEYS
from apps.datasets.models import Dataset, DatasetVersion


def document(dataset: Dataset) -> dict[str, Any]:
    """The full document: what is unset is left out, never null (DATA-003).

    Rows of `selectors.documents()` carry their questions as text, which passes through undecoded.
    """
    text = getattr(dataset, "questions_text", None)
    return {
        "_id": dataset.pk,
        **content(dataset, None if text is None else Raw(text.encode())),
        "createdAt": datetime_to_iso(dataset.created_at),
    }


def content(dataset: Dataset, questions: Any = None) -> dict[str, Any]:
    """Everything of the document that an edit can change, and its status; this is also a version's snapshot."""
    found: dict[str, Any] = {"name": dataset.name}
    if dataset.description:
        found["description"] = dataset.description
    found["numberOfRequests"] = dataset.number_of_requests
    found |= {key: dataset.grading[key] for key in GRADING_KEYS if key in dataset.grading}
    if dataset.ci is not None:
        found["ci"] = dataset.ci
    found["questions"] = dataset.questions if questions is None else questions
    found["status"] = dataset.status
    return found


def version(row: DatasetVersion) -> dict[str, Any]:
    """One entry of the history (DATA-037)."""
    packed = getattr(row, "snapshot_packed", None)
    return {
        "_id": row.pk,
        "version": row.version,
        "snapshot": row.snapshot if packed is None else Raw(unpacked(packed)),
        "createdAt": datetime_to_iso(row.created_at),
        "changeSummary": row.change_summary,
        "creator": row.creator or None,
    }


def restoring_body(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The body of an edit that brings back a snapshot whole: what it does not have is null, which clears it."""
    return {
        "name": snapshot["name"],
        "description": snapshot.get("description"),
        "numberOfRequests": snapshot.get("numberOfRequests"),
        **{key: snapshot.get(key) for key in GRADING_KEYS},
        "ci": snapshot.get("ci"),
        "questions": snapshot.get("questions") or [],
    }
