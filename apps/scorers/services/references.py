"""What a member of a group refers to. Judges live here; the app that owns patterns and custom scorers registers them:

    references.kinds["pattern"] = names_of

where `names_of(project, ids)` gives the names of those ids that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apps.projects.models import Project
from apps.scorers import selectors

# The kinds of the wire; one without a registered look-up has nothing yet, so nothing can be named.
KINDS = ("judge", "pattern", "custom")
Names = Callable[[Project, list[str]], dict[str, str]]


def _judges(project: Project, ids: list[str]) -> dict[str, str]:
    return {pk: row.name for pk, row in selectors.judge_scorers_by_id(project, ids).items()}


kinds: dict[str, Names] = {"judge": _judges}


def names_of(project: Project, members: Iterable[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Names of the members that exist, by kind and id; one look-up for each kind."""
    wanted: dict[str, list[str]] = {}
    for member in members:
        wanted.setdefault(member["kind"], []).append(member["refId"])
    return {
        (kind, pk): name
        for kind, ids in wanted.items()
        if kind in kinds
        for pk, name in kinds[kind](project, ids).items()
    }
