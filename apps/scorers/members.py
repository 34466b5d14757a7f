"""Group members that are no judges. The app that owns patterns and custom scorers registers how one of them is run:

    members.runners["pattern"] = run_pattern

where `run_pattern(project, member, material)` returns a MemberOutcome and raises nothing for what the scorer does. Until
then, and for a scorer that is gone, the member is listed as not scored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError

from apps.projects.models import Project
from apps.scorers.grader_types import GroupMember

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemberMaterial:
    """What a pattern, code or external scorer is given of one answer; `tool_calls` None without a linked trace."""

    input: str
    output: str
    expected: str | None
    tool_calls: list[dict[str, Any]] | None
    trace_id: str | None


@dataclass(frozen=True, slots=True)
class MemberOutcome:
    """A member's goodness from 0 to 1 (see arithmetic.py), or None with the reason as `error`."""

    goodness: float | None
    reasoning: str | None = None
    error: str | None = None

    def row(self, name: str) -> dict[str, Any]:
        """The row of `codeScorerResults`."""
        row: dict[str, Any] = {"name": name, "score": self.goodness}
        if self.reasoning is not None:
            row["reasoning"] = self.reasoning
        if self.error is not None:
            row["error"] = self.error
        return row


Runner = Callable[[Project, GroupMember, MemberMaterial], MemberOutcome]

runners: dict[str, Runner] = {}


def run(project: Project, member: GroupMember, material: MemberMaterial) -> MemberOutcome:
    """Run one member; a fault in it is its own error row."""
    runner = runners.get(member["kind"])
    if runner is None:
        return MemberOutcome(None, error=f"Not scored: {member['kind']} scorers cannot run in a dataset run here.")
    try:
        return runner(project, member, material)
    except (DatabaseError, InterfaceError):
        raise
    except Exception as error:
        # A broken scorer must not cost the answer its other verdicts; it gets an error, never a number.
        logger.exception("a group member failed", extra={"scorer": member["refId"]})
        return MemberOutcome(None, error=f"Not scored: the scorer failed ({type(error).__name__}).")
