"""Writes of judge scorers through their own surface and the flat settings one. Each is one transaction.

A save that changes rubric or offline profile leaves one entry in the history; the same save again leaves none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Max

from apps.core.api.errors import APIError, NotFound
from apps.core.ids import is_id, new_id
from apps.projects.models import Project
from apps.projects.services import audit
from apps.scorers import sections, wire
from apps.scorers.models import JudgeScorer, JudgeScorerVersion
from apps.tracing.ingest.cleaning import clean_text

# What the history is about, in the order a summary names it, and what each is called there (DATA-035, DATA-036).
TRACKED = {
    "judge": {
        "acceptanceCriteria": "acceptance criteria",
        "rejectionCriteria": "rejection criteria",
        "evaluationCriteria": "evaluation criteria",
        "judgePrompt": "judge prompt",
        "judgeModel": "judge model",
        "toolContext": "tool context",
        "requiresExpected": "needs a reference answer",
    },
    "offline": {
        "numberOfRequests": "number of requests",
        "isDefault": "default for runs",
        "status": "status",
        "vectorSimilarity": "vector similarity",
        "jaccardSimilarity": "Jaccard similarity",
        "bleuScore": "BLEU score",
        "rougeScore": "ROUGE score",
        "sovereigntyIndex": "sovereignty index",
        "thresholds": "thresholds",
        "codeScorers": "code scorers",
    },
}
BASELINE_READ_ONLY = (
    "The built-in Session Baseline Judge is read-only except its rubric, its prompt and its live switch"
)
NEEDS_REFERENCE = "This scorer needs a reference answer, which live traffic never has, so it cannot score live traffic"
_MAX_NAMED_FIELDS = 30


@transaction.atomic
def create_judge_scorer(
    *, project: Project, body: dict[str, Any], creator: str = "", request: Any = None
) -> JudgeScorer:
    """A new scorer from `{ name, description?, judge?, offline?, online? }`; raises 400 and 409."""
    row = JudgeScorer(
        project=project,
        name=sections.name_of(body.get("name")),
        description=sections.text_or_none(body.get("description"), "description") or "",
        judge=sections.judge({}, body.get("judge")),
        offline=sections.offline({}, body.get("offline")),
    )
    if body.get("online") is not None:
        row.online = sections.online(project, None, _object(body["online"], "online"))
    return _insert(row, creator=creator, request=request, action="judge.create", fields=body)


@transaction.atomic
def create_from_settings(
    *, project: Project, body: dict[str, Any], creator: str = "", request: Any = None
) -> JudgeScorer:
    """A new scorer without live profile from the flat keys of a grading config (EVAL-006); raises 400."""
    row = JudgeScorer(
        project=project,
        name=sections.name_of(body.get("name")),
        description=sections.text_or_none(body.get("description"), "description") or "",
        judge=sections.judge({}, body),
        offline=sections.offline({}, {key: value for key, value in body.items() if key != "status"}),
    )
    return _insert(row, creator=creator, request=request, action="judge.create", fields=body)


@transaction.atomic
def update_judge_scorer(
    *,
    project: Project,
    scorer_id: str,
    body: dict[str, Any],
    base_version: int | None = None,
    creator: str = "",
    request: Any = None,
) -> JudgeScorer:
    """Change what was sent; keys inside a section merge over the stored ones, `online: null` detaches (SCORE-101).

    `base_version` is the version an editor began from; a newer one in the meantime is a 409. Raises 404, 400, and 409
    for what the built-in judge does not allow or a scorer that needs a reference answer cannot do.
    """
    row = locked(project, scorer_id)
    newest = _newest(row)
    if base_version is not None and newest is not None and newest != base_version:
        raise APIError("The scorer was changed in the meantime", 409)
    before = state(row)
    if "name" in body:
        row.name = sections.name_of(body["name"])
    if "description" in body:
        row.description = sections.text_or_none(body["description"], "description") or ""
    row.judge = sections.judge(row.judge, body.get("judge"))
    row.offline = sections.offline(row.offline, body.get("offline"))
    if "online" in body:
        if body["online"] is None:
            set_online(row, None)
        else:
            set_online(row, sections.online(project, row.online, _object(body["online"], "online")))
    refuse_what_is_built_in(row, before)
    return save(row, before=before, newest=newest, creator=creator, request=request, action="judge.update", fields=body)


@transaction.atomic
def delete_judge_scorer(*, project: Project, scorer_id: str, request: Any = None) -> None:
    """Remove rubric, history and live profile together; raises 404, and 409 for the built-in judge."""
    row = locked(project, scorer_id)
    if row.builtin_key:
        raise APIError("The built-in Session Baseline Judge cannot be deleted", 409)
    row.delete()
    _audit("judge.delete", project, scorer_id, request)


@transaction.atomic
def clone_judge_scorer(
    *, project: Project, scorer_id: str, name: Any = None, creator: str = "", request: Any = None
) -> JudgeScorer:
    """An own, editable copy without live profile; the source stays (SCORE-143). Raises 404."""
    source = locked(project, scorer_id)
    if name is None:
        # A template gives its name, as nothing of that name is the user's own yet.
        name = source.name if source.seeded else f"{source.name[:293]} (copy)"
    row = copy_of(source, name=sections.name_of(name))
    return _insert(row, creator=creator, request=request, action="judge.clone", fields=())


@transaction.atomic
def delete_version(*, project: Project, scorer_id: str, version_id: str, request: Any = None) -> None:
    """Remove an older entry of the history; raises 404, and 409 for the current one."""
    row = locked(project, scorer_id)
    entry = row.versions.filter(pk=version_id).first() if is_id(version_id) else None
    if entry is None:
        raise NotFound("Version not found")
    if entry.version == _newest(row):
        raise APIError("The current version cannot be deleted", 409)
    entry.delete()
    audit.record(
        action="judgeVersion.delete",
        project=project,
        request=request,
        target_type="judgeScorerVersion",
        target_id=version_id,
    )


def locked(project: Project, scorer_id: object, *, missing: str = "Judge scorer not found") -> JudgeScorer:
    """The scorer, held against other writers until the transaction ends (call inside one); raises 404."""
    row = None
    if isinstance(scorer_id, str) and is_id(scorer_id):
        row = JudgeScorer.objects.select_for_update().filter(project=project, pk=scorer_id).first()
    if row is None:
        raise NotFound(missing)
    return row


def copy_of(source: JudgeScorer, *, name: str) -> JudgeScorer:
    """An unsaved copy of rubric and offline profile; never the default for runs, never live."""
    return JudgeScorer(
        project_id=source.project_id,
        name=name,
        description=source.description,
        judge=wire.judge(source),
        offline={**wire.offline(source), "isDefault": False},
        template_key=source.template_key,
    )


def insert(row: JudgeScorer, *, creator: str) -> JudgeScorer:
    """Store a new row with its first history entry (call inside a transaction)."""
    row.save(force_insert=True)
    _record(row, 0, "Created", creator)
    return row


def set_online(row: JudgeScorer, online: dict[str, Any] | None) -> None:
    """Give the row this live profile, or take it away; a profile made anew gets an id of its own.

    What was rated under a profile that is gone never mixes with what a later one rates.
    """
    if online is None and row.online is not None:
        row.profile_id = new_id()
        row.profile_name = ""
    row.online = online


def refuse_what_is_built_in(row: JudgeScorer, before: dict[str, Any]) -> None:
    """409 when the built-in judge was changed in anything but rubric, prompt and live switch (SCORE-153, SCORE-154)."""
    if not row.builtin_key:
        return
    after = state(row)
    if after["online"] is None:
        raise APIError("The live profile of the built-in Session Baseline Judge cannot be removed", 409)
    fixed = ("name", "description", "offline", "profile_name")
    if any(before[key] != after[key] for key in fixed):
        raise APIError(BASELINE_READ_ONLY, 409)
    if any(before["online"].get(key) != value for key, value in after["online"].items() if key != "enabled"):
        raise APIError(BASELINE_READ_ONLY, 409)
    if any(before["judge"][key] != after["judge"][key] for key in ("toolContext", "requiresExpected")):
        raise APIError(BASELINE_READ_ONLY, 409)


def save(
    row: JudgeScorer,
    *,
    before: dict[str, Any],
    newest: int | None,
    creator: str,
    request: Any,
    action: str,
    fields: Iterable[str],
) -> JudgeScorer:
    """Store a locked row when something differs, with a history entry when rubric or offline profile does."""
    _refuse_live_without_reference(row)
    after = state(row)
    if after == before:
        return row
    if after["offline"]["isDefault"] and not before["offline"]["isDefault"]:
        _only_default(row)
    row.save(force_update=True)
    changed = [
        label
        for section, labels in TRACKED.items()
        for key, label in labels.items()
        if before[section][key] != after[section][key]
    ]
    if changed:
        _record(row, 0 if newest is None else newest + 1, "Updated " + ", ".join(changed), creator)
    _audit(action, row.project, row.pk, request, fields)
    return row


def _insert(row: JudgeScorer, *, creator: str, request: Any, action: str, fields: Iterable[str]) -> JudgeScorer:
    _refuse_live_without_reference(row)
    if row.offline["isDefault"]:
        _only_default(row)
    insert(row, creator=creator)
    _audit(action, row.project, row.pk, request, fields)
    return row


def _refuse_live_without_reference(row: JudgeScorer) -> None:
    if wire.judge(row)["requiresExpected"] and row.online is not None and row.online["enabled"]:
        raise APIError(NEEDS_REFERENCE, 409)


def _only_default(row: JudgeScorer) -> None:
    """Take the mark from every other scorer; the project's row serialises two that want it at once (SCORE-095)."""
    Project.objects.select_for_update().filter(pk=row.project_id).first()
    marked = JudgeScorer.objects.select_for_update().filter(project_id=row.project_id, offline__isDefault=True)
    for other in marked.exclude(pk=row.pk):
        other.offline = {**other.offline, "isDefault": False}
        other.save(update_fields=["offline", "updated_at"])


def state(row: JudgeScorer) -> dict[str, Any]:
    """Everything a save may change, for comparing before with after."""
    return {
        "name": row.name,
        "description": row.description,
        "judge": wire.judge(row),
        "offline": wire.offline(row),
        "online": None if row.online is None else wire.online(row.online),
        "profile_name": row.profile_name,
    }


def _record(row: JudgeScorer, number: int, summary: str, creator: str) -> None:
    JudgeScorerVersion.objects.create(
        scorer=row,
        version=number,
        snapshot=wire.snapshot(row),
        change_summary=summary[:500],
        creator=clean_text(creator)[:254],
    )


def _newest(row: JudgeScorer) -> int | None:
    number: int | None = row.versions.aggregate(n=Max("version"))["n"]
    return number


def _audit(action: str, project: Project, target_id: str, request: Any, fields: Iterable[str] = ()) -> None:
    audit.record(
        action=action,
        project=project,
        request=request,
        summary_fields=sorted(fields)[:_MAX_NAMED_FIELDS],
        target_type="judgeScorer",
        target_id=target_id,
    )


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise APIError(f"{name} must be an object or null")
    return value
