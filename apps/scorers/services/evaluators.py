"""Live profiles through the older surface, where each is an object of its own that refers to a grading config.

There is one profile for each scorer, so binding a config that already backs another profile binds a fresh copy of it
(SCORE-112). The grading config a dataset keeps for itself can be bound too: it is copied into a scorer, and the dataset
cannot be deleted while that scorer has its profile (DATA-023, DATA-043).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from apps.core.api.errors import APIError, NotFound
from apps.core.ids import is_id, new_id
from apps.datasets.models import Dataset
from apps.projects.models import Project
from apps.scorers import sections
from apps.scorers.models import JudgeScorer
from apps.scorers.services import judge_scorers as scorers

UNKNOWN_SETTINGS = "evaluationSettingsId names no grading config"


@transaction.atomic
def create_evaluator(*, project: Project, body: dict[str, Any], creator: str = "", request: Any = None) -> JudgeScorer:
    """Give a grading config a live profile with a name of its own, on unless `enabled` is false.

    Raises 400 for a blank name, a missing or unknown `evaluationSettingsId` or bad values, 409 for a scorer that needs
    a reference answer.
    """
    name = sections.name_of(body.get("name"))
    online = sections.online(project, None, {"enabled": True, **body})
    row = _bindable(project, body.get("evaluationSettingsId"), creator=creator)
    before = scorers.state(row)
    scorers.set_online(row, online)
    row.profile_name = name
    return _save(row, before, creator=creator, request=request, action="judge.attach", fields=body)


@transaction.atomic
def update_evaluator(
    *, project: Project, profile_id: str, body: dict[str, Any], creator: str = "", request: Any = None
) -> JudgeScorer:
    """Change what was sent; `evaluationSettingsId` moves the profile to another config, or to a copy of it.

    Naming the config that the bound one was copied from changes nothing, so the same request may be repeated. Raises
    404, 400 and 409.
    """
    row = _locked(project, profile_id)
    settings_id = body.get("evaluationSettingsId")
    if "evaluationSettingsId" in body and settings_id not in (row.pk, row.copied_from or row.pk):
        if row.builtin_key:
            raise APIError(scorers.BASELINE_READ_ONLY, 409)
        target = _bindable(project, settings_id, creator=creator)
        before = scorers.state(target)
        _hand_over(row, target)
        row = target
    else:
        before = scorers.state(row)
    if "name" in body:
        name = sections.name_of(body["name"])
        row.profile_name = "" if name == row.name and not row.profile_name else name
    scorers.set_online(row, sections.online(project, row.online, body))
    scorers.refuse_what_is_built_in(row, before)
    return _save(row, before, creator=creator, request=request, action="judge.update", fields=body)


@transaction.atomic
def delete_evaluator(*, project: Project, profile_id: str, request: Any = None) -> None:
    """Take the live profile away; the rubric stays (SCORE-114). Raises 404, and 409 for the built-in judge."""
    row = _locked(project, profile_id)
    before = scorers.state(row)
    scorers.set_online(row, None)
    scorers.refuse_what_is_built_in(row, before)
    _save(row, before, creator="", request=request, action="judge.detach", fields=())


def attached_names(project: Project, grading_id: str) -> Iterable[str]:
    """Names of live profiles made from a dataset's grading config: they stand in the way of deleting the dataset."""
    rows = JudgeScorer.objects.filter(project=project, copied_from=grading_id, online__isnull=False)
    return [row.profile_name or row.name for row in rows.only("name", "profile_name")]


def _locked(project: Project, profile_id: str) -> JudgeScorer:
    row = None
    if is_id(profile_id):
        rows = JudgeScorer.objects.select_for_update().filter(project=project, online__isnull=False)
        row = rows.filter(profile_id=profile_id).first()
    if row is None:
        raise NotFound("Online evaluator not found")
    return row


def _bindable(project: Project, settings_id: Any, *, creator: str) -> JudgeScorer:
    """The locked scorer of that id when it has no live profile, else a fresh copy; raises 400."""
    if settings_id is None or settings_id == "":
        raise APIError("evaluationSettingsId is required")
    if not isinstance(settings_id, str) or not is_id(settings_id):
        raise APIError(UNKNOWN_SETTINGS)
    source = JudgeScorer.objects.select_for_update().filter(project=project, pk=settings_id).first()
    if source is None:
        return _of_dataset(project, settings_id, creator=creator)
    if source.online is None:
        return source
    copy = scorers.copy_of(source, name=f"{source.name[:293]} (copy)")
    copy.copied_from = source.pk
    return scorers.insert(copy, creator=creator)


def _of_dataset(project: Project, grading_id: str, *, creator: str) -> JudgeScorer:
    # Held while the copy is made, so that the dataset is not deleted meanwhile.
    rows = Dataset.objects.select_for_update().defer("questions")
    dataset = rows.filter(project=project, grading_id=grading_id).first()
    if dataset is None:
        raise APIError(UNKNOWN_SETTINGS)
    grading = dataset.grading or {}
    row = JudgeScorer(
        project_id=dataset.project_id,
        name=dataset.name,
        judge=sections.judge({}, grading),
        offline=sections.offline({}, {**grading, "numberOfRequests": dataset.number_of_requests}),
        copied_from=dataset.grading_id,
    )
    return scorers.insert(row, creator=creator)


def _hand_over(source: JudgeScorer, target: JudgeScorer) -> None:
    """Give a profile with its id and name to a scorer that has none; what it has rated goes with it.

    The target is left for the caller to save.
    """
    target.profile_id, target.profile_name, target.online = (
        source.profile_id,
        source.profile_name or source.name,
        source.online,
    )
    source.profile_id, source.profile_name, source.online = new_id(), "", None
    source.save(update_fields=["profile_id", "profile_name", "online", "updated_at"])


def _save(
    row: JudgeScorer,
    before: dict[str, Any],
    *,
    creator: str,
    request: Any,
    action: str,
    fields: Iterable[str],
) -> JudgeScorer:
    # No part of the history is touched here, so its newest number is not needed.
    return scorers.save(row, before=before, newest=None, creator=creator, request=request, action=action, fields=fields)
