"""Writes of scorer groups (source 1:3940-4090; sdk monitor/scorer_groups.py). Each is one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from apps.core.api.bodies import is_number
from apps.core.api.errors import APIError, NotFound
from apps.core.ids import is_id
from apps.projects.models import Project
from apps.projects.services import audit
from apps.scorers import sections
from apps.scorers.models import ScorerGroup
from apps.scorers.services import references

MAX_MEMBERS = 50
MAX_WEIGHT = 1_000_000
# Without these a live profile would score at a rate, or alarm at a threshold, that nobody chose (SCORE-159).
FULL_PROFILE = ("enabled", "sampleRate", "alertThreshold", "severity")


@transaction.atomic
def create_group(*, project: Project, body: dict[str, Any], request: Any = None) -> ScorerGroup:
    """A new group from `{ name, members, description?, online? }`; what `online` leaves out gets its default.

    Raises 400 for a blank name, no members, or a member that names nothing.
    """
    row = ScorerGroup(
        project=project,
        name=sections.name_of(body.get("name")),
        description=sections.text_or_none(body.get("description"), "description") or "",
        members=_members(project, body.get("members"), already=[]),
    )
    if body.get("online") is not None:
        row.online = sections.online(project, None, _object(body["online"]))
    row.save(force_insert=True)
    _audit("group.create", project, row.pk, request, body)
    return row


@transaction.atomic
def update_group(*, project: Project, group_id: str, body: dict[str, Any], request: Any = None) -> ScorerGroup:
    """Change what was sent: `online` merges over the stored profile and null takes it away (SCORE-159).

    Raises 404, and 400 also for a partial `online` on a group without a live profile.
    """
    row = _locked(project, group_id)
    before = _state(row)
    if "name" in body:
        row.name = sections.name_of(body["name"])
    if "description" in body:
        row.description = sections.text_or_none(body["description"], "description") or ""
    if "members" in body:
        row.members = _members(project, body["members"], already=row.members)
    if "online" in body:
        row.online = _online(project, row, body["online"])
    if _state(row) != before:
        row.save(force_update=True)
        _audit("group.update", project, row.pk, request, body)
    return row


@transaction.atomic
def delete_group(*, project: Project, group_id: str, request: Any = None) -> None:
    """Remove a group; its members and the runs it graded stay. Raises 404."""
    _locked(project, group_id).delete()
    _audit("group.delete", project, group_id, request)


def _online(project: Project, row: ScorerGroup, sent: Any) -> dict[str, Any] | None:
    if sent is None:
        return None
    sent = _object(sent)
    missing = [key for key in FULL_PROFILE if key not in sent]
    if row.online is None and missing:
        raise APIError(f"online must be a full profile on a group that has none; missing: {', '.join(missing)}")
    return sections.online(project, row.online, sent)


def _members(project: Project, value: Any, *, already: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Members as stored; a reference that names nothing is only accepted when the group has it already (SCORE-158)."""
    if not isinstance(value, list) or not value:
        raise APIError("members must be a non-empty list")
    if len(value) > MAX_MEMBERS:
        raise APIError(f"members must be at most {MAX_MEMBERS}")
    members = [_member(item) for item in value]
    keys = [(member["kind"], member["refId"]) for member in members]
    if len(set(keys)) != len(keys):
        raise APIError("A scorer can be in a group only once")
    known = set(references.names_of(project, members)) | {(item["kind"], item["refId"]) for item in already}
    for kind, reference in keys:
        if (kind, reference) not in known:
            raise APIError(f"Unknown {kind} scorer: {reference[:100]}")
    return members


def _member(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise APIError("members must be objects: { kind, refId, weight, gate }")
    kind, reference = value.get("kind"), value.get("refId")
    if kind not in references.KINDS:
        raise APIError(f"kind must be one of: {', '.join(references.KINDS)}")
    if not isinstance(reference, str) or not reference.strip() or len(reference) > 100 or "\x00" in reference:
        raise APIError("refId is required")
    weight = 1 if value.get("weight") is None else value["weight"]
    if not is_number(weight) or not 0 <= weight <= MAX_WEIGHT:
        raise APIError("weight must be a number of at least 0")
    gate = False if value.get("gate") is None else value["gate"]
    if not isinstance(gate, bool):
        raise APIError("gate must be true or false")
    return {"kind": kind, "refId": reference, "weight": weight, "gate": gate}


def _locked(project: Project, group_id: str) -> ScorerGroup:
    row = None
    if is_id(group_id):
        row = ScorerGroup.objects.select_for_update().filter(project=project, pk=group_id).first()
    if row is None:
        raise NotFound("Scorer group not found")
    return row


def _state(row: ScorerGroup) -> tuple[Any, ...]:
    return row.name, row.description, row.members, row.online


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise APIError("online must be an object or null")
    return value


def _audit(action: str, project: Project, target_id: str, request: Any, fields: Iterable[str] = ()) -> None:
    audit.record(
        action=action,
        project=project,
        request=request,
        summary_fields=sorted(fields),
        target_type="scorerGroup",
        target_id=target_id,
    )
