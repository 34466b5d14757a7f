"""Export rows of judge scorers, their history and live profiles, and of groups (source 1:8092-8134)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.core import exports
from apps.core.times import datetime_to_iso
from apps.projects.models import Project
from apps.scorers import wire
from apps.scorers.models import JudgeScorer, JudgeScorerVersion, ScorerGroup, SeededScorers


def _settings(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = JudgeScorer.objects.filter(project=project)
    for row in exports.by_keyset(rows, since_ms, time_field="updated_at"):
        yield {
            "id": row.pk,
            "projectId": project.uid,
            "name": row.name,
            "description": row.description or None,
            **wire.judge(row),
            **wire.offline(row),
            "seeded": row.seeded,
            "templateKey": row.template_key or None,
            "builtinKey": row.builtin_key or None,
            "createdAt": datetime_to_iso(row.created_at),
            "updatedAt": datetime_to_iso(row.updated_at),
        }


def _versions(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = JudgeScorerVersion.objects.filter(scorer__project=project)
    for row in exports.by_keyset(rows, since_ms, time_field="created_at"):
        yield {
            "id": row.pk,
            "projectId": project.uid,
            "evaluationSettingsId": row.scorer_id,
            "version": row.version,
            "snapshot": row.snapshot,
            "changeSummary": row.change_summary,
            "note": row.note or None,
            "creator": row.creator or None,
            "createdAt": datetime_to_iso(row.created_at),
        }


def _evaluators(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = JudgeScorer.objects.filter(project=project, online__isnull=False)
    for row in exports.by_keyset(rows, since_ms, time_field="updated_at"):
        document = wire.evaluator(row)
        yield {
            "id": document.pop("_id"),
            "projectId": project.uid,
            **document,
            "builtinKey": row.builtin_key or None,
            "updatedAt": datetime_to_iso(row.updated_at),
        }


def _groups(project: Project, since_ms: int | None) -> Iterator[dict[str, Any]]:
    rows = ScorerGroup.objects.filter(project=project)
    for row in exports.by_keyset(rows, since_ms, time_field="updated_at"):
        document = wire.group(row)
        yield {
            "id": document.pop("_id"),
            "projectId": project.uid,
            **document,
            "updatedAt": datetime_to_iso(row.updated_at),
        }


def register() -> None:
    """Called once, when Django is ready."""
    exports.register(
        exports.Entity(
            "evaluation-settings",
            lambda project: JudgeScorer.objects.filter(project=project).count(),
            _settings,
            (JudgeScorer,),
        )
    )
    exports.register(
        exports.Entity(
            "evaluation-settings-versions",
            lambda project: JudgeScorerVersion.objects.filter(scorer__project=project).count(),
            _versions,
            (JudgeScorerVersion,),
        )
    )
    exports.register(
        exports.Entity(
            "online-evaluators",
            lambda project: JudgeScorer.objects.filter(project=project, online__isnull=False).count(),
            _evaluators,
        )
    )
    exports.register(
        exports.Entity(
            "scorer-groups",
            lambda project: ScorerGroup.objects.filter(project=project).count(),
            _groups,
            (ScorerGroup,),
        )
    )
    exports.leave_out(SeededScorers, "which shipped judges were given; internal")
