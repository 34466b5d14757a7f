"""Judge scorers, their older views, and groups, as clients read them (sdk monitor/judge_scorers.py, models.py)."""

from __future__ import annotations

from typing import Any

from apps.core.times import datetime_to_iso
from apps.scorers import sections
from apps.scorers.models import JudgeScorer, JudgeScorerVersion, ScorerGroup

GROUP_ONLINE_KEYS = (
    "enabled",
    "sampleRate",
    "alertThreshold",
    "severity",
    "scope",
    "idleSeconds",
    "scopeMode",
    "agentIds",
)


def judge_scorer(row: JudgeScorer) -> dict[str, Any]:
    """The whole entity (SCORE-089..096)."""
    document: dict[str, Any] = {
        "_id": row.pk,
        "name": row.name,
        "description": row.description or None,
        "judge": judge(row),
        "offline": offline(row),
        "online": None if row.online is None else {"profileId": row.profile_id, **online(row.online)},
        "seeded": row.seeded,
        "createdAt": datetime_to_iso(row.created_at),
    }
    if row.builtin_key:
        document["builtinKey"] = row.builtin_key
    return document


def judge(row: JudgeScorer) -> dict[str, Any]:
    """The rubric with every key."""
    return {**sections.JUDGE_DEFAULTS, **row.judge}


def offline(row: JudgeScorer) -> dict[str, Any]:
    """The offline profile with every key."""
    return {**sections.OFFLINE_DEFAULTS, **row.offline}


def online(stored: dict[str, Any]) -> dict[str, Any]:
    """A live profile with every key."""
    return {key: stored.get(key, default) for key, default in sections.ONLINE_DEFAULTS.items()}


def settings_document(row: JudgeScorer) -> dict[str, Any]:
    """The flat view of rubric and offline profile (EVAL-006..009, SCORE-108)."""
    rubric, profile = judge(row), offline(row)
    return {
        "_id": row.pk,
        "name": row.name,
        "description": row.description or None,
        "numberOfRequests": profile["numberOfRequests"],
        "acceptanceCriteria": rubric["acceptanceCriteria"],
        "rejectionCriteria": rubric["rejectionCriteria"],
        "evaluationCriteria": rubric["evaluationCriteria"],
        "judgePrompt": rubric["judgePrompt"],
        "judgeModel": rubric["judgeModel"],
        **{metric: profile[metric] for metric in sections.METRICS},
        "sovereigntyIndex": profile["sovereigntyIndex"],
        "codeScorers": profile["codeScorers"],
        "status": profile["status"],
        "createdAt": datetime_to_iso(row.created_at),
    }


def evaluator(row: JudgeScorer) -> dict[str, Any]:
    """The live profile by itself (SCORE-110); `row.online` must be there."""
    document: dict[str, Any] = {
        "_id": row.profile_id,
        "name": row.profile_name or row.name,
        "evaluationSettingsId": row.pk,
        **online(row.online or {}),
        "createdAt": datetime_to_iso(row.created_at),
    }
    if row.builtin_key:
        document["builtinKey"] = row.builtin_key
    return document


def snapshot(row: JudgeScorer) -> dict[str, Any]:
    """What the history keeps of a scorer: rubric and offline profile, under their wire keys (DATA-035)."""
    return {"name": row.name, "judge": judge(row), "offline": offline(row)}


def version(row: JudgeScorerVersion) -> dict[str, Any]:
    """One entry of a history (DATA-037); `note` only where a tuning left one."""
    document: dict[str, Any] = {
        "_id": row.pk,
        "version": row.version,
        "snapshot": row.snapshot,
        "createdAt": datetime_to_iso(row.created_at),
        "changeSummary": row.change_summary,
        "creator": row.creator or None,
    }
    if row.note:
        document["note"] = row.note
    return document


def group(row: ScorerGroup) -> dict[str, Any]:
    """A scorer group (SCORE-157)."""
    return {
        "_id": row.pk,
        "name": row.name,
        "description": row.description or None,
        "members": row.members,
        "online": None if row.online is None else {key: online(row.online)[key] for key in GROUP_ONLINE_KEYS},
        "createdAt": datetime_to_iso(row.created_at),
    }
