"""Reads of judge scorers, their history and groups."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count, QuerySet

from apps.core.ids import is_id
from apps.projects.models import Project
from apps.scorers.models import JudgeScorer, JudgeScorerVersion, ScorerGroup


def list_judge_scorers(project: Project) -> QuerySet[JudgeScorer]:
    """Every judge scorer of the project, shipped ones too, newest first."""
    return JudgeScorer.objects.filter(project=project).order_by("-pk")


def get_judge_scorer(project: Project, scorer_id: object) -> JudgeScorer | None:
    """One judge scorer, or None; ids of judge scorers and of evaluation settings are the same (EVAL-010)."""
    if not isinstance(scorer_id, str) or not is_id(scorer_id):
        return None
    return JudgeScorer.objects.filter(project=project, pk=scorer_id).first()


def judge_scorers_by_id(project: Project, ids: Iterable[str]) -> dict[str, JudgeScorer]:
    """The judge scorers among some ids, in one query."""
    wanted = {item for item in ids if is_id(item)}
    if not wanted:
        return {}
    return {row.pk: row for row in JudgeScorer.objects.filter(project=project, pk__in=wanted)}


def list_evaluators(project: Project) -> QuerySet[JudgeScorer]:
    """The judge scorers that have a live profile, newest first: what the older clients call online evaluators."""
    return list_judge_scorers(project).filter(online__isnull=False)


def get_evaluator(project: Project, profile_id: str) -> JudgeScorer | None:
    """The judge scorer with this live profile, or None."""
    if not is_id(profile_id):
        return None
    return JudgeScorer.objects.filter(project=project, profile_id=profile_id, online__isnull=False).first()


def versions(scorer: JudgeScorer) -> QuerySet[JudgeScorerVersion]:
    """A scorer's history, newest first."""
    return scorer.versions.order_by("-version")


def version_counts(project: Project, ids: list[str]) -> dict[str, int]:
    """How many entries the histories of some scorers have; unknown ids are left out."""
    rows = JudgeScorer.objects.filter(project=project, pk__in=[item for item in ids if is_id(item)])
    return dict(rows.annotate(n=Count("versions")).values_list("pk", "n"))


def list_groups(project: Project) -> QuerySet[ScorerGroup]:
    """The project's scorer groups, newest first."""
    return ScorerGroup.objects.filter(project=project).order_by("-pk")


def get_group(project: Project, group_id: object) -> ScorerGroup | None:
    """One scorer group, or None."""
    if not isinstance(group_id, str) or not is_id(group_id):
        return None
    return ScorerGroup.objects.filter(project=project, pk=group_id).first()
