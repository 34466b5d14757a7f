"""Judges that ship with the server: the templates and the built-in Session Baseline Judge (SCORE-140..154).

Texts stand in `fixtures/judge_templates.json`. A project gets each of them once: when it is made, or, for one that a
later release brings, at the next start. `SeededScorers` remembers what was given, so a deleted one never comes back.
"""

from __future__ import annotations

import json
import time
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.core.ids import new_id
from apps.projects.models import Project
from apps.scorers import sections, wire
from apps.scorers.models import JudgeScorer, JudgeScorerVersion, SeededScorers

SESSION_BASELINE = "session-baseline"
CREATOR = "AgentX"


@lru_cache(maxsize=1)
def pack() -> list[dict[str, Any]]:
    """What ships, in its order: `{ key, name, description, judge, builtin, online? }`."""
    shipped = json.loads((settings.BASE_DIR / "fixtures" / "judge_templates.json").read_text("utf-8"))
    templates = [{**entry, "builtin": False} for entry in shipped["templates"]]
    return [*templates, *({**entry, "builtin": True} for entry in shipped["builtins"])]


@transaction.atomic
def seed(project: Project) -> int:
    """Give a project what it was never given; answers how many that were. Never touches what is there."""
    record, _ = SeededScorers.objects.select_for_update().get_or_create(project=project)
    missing = [entry for entry in pack() if entry["key"] not in record.keys]
    if not missing:
        return 0
    # Lists show the newest first: each is a little older than the one before it in the pack.
    now_ms = time.time_ns() // 1_000_000
    rows = [_row(project, entry, new_id(now_ms - position)) for position, entry in enumerate(missing)]
    JudgeScorer.objects.bulk_create(rows)
    JudgeScorerVersion.objects.bulk_create(
        JudgeScorerVersion(
            scorer=row, version=0, snapshot=wire.snapshot(row), change_summary="Created", creator=CREATOR
        )
        for row in rows
    )
    record.keys = [*record.keys, *(entry["key"] for entry in missing)]
    record.save(update_fields=["keys"])
    return len(rows)


def backfill() -> int:
    """Give every project what a new release brought; run once at each start, answers how many rows were made."""
    keys = {entry["key"] for entry in pack()}
    given = dict(SeededScorers.objects.values_list("project_id", "keys"))
    made = 0
    for project in Project.objects.filter(deleting=False):
        if not keys <= set(given.get(project.pk, ())):
            made += seed(project)
    return made


def _row(project: Project, entry: dict[str, Any], pk: str) -> JudgeScorer:
    online = entry.get("online")
    return JudgeScorer(
        id=pk,
        project=project,
        name=entry["name"],
        description=entry["description"],
        judge=sections.judge({}, entry["judge"]),
        offline=sections.offline({}, {}),
        online=None if online is None else sections.online(project, None, online),
        template_key="" if entry["builtin"] else entry["key"],
        seeded=not entry["builtin"],
        builtin_key=entry["key"] if entry["builtin"] else "",
    )
