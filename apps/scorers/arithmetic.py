"""How a scorer group makes one 0-10 score of its members (source 1:3951-3976)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GATE_PASSES_AT = 0.5


@dataclass(frozen=True, slots=True)
class MemberScore:
    """A member's goodness from 0 to 1, None when it gave no score; its weight; whether it must pass."""

    name: str
    goodness: float | None
    weight: float = 1.0
    gate: bool = False


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The group's score from 0 to 10 (None when nothing can be scored) and how it came about, for a person."""

    score: float | None
    explanation: str


def of_judge(rating: float | None) -> float | None:
    """Goodness of a judge's 0-10 rating."""
    return None if rating is None else rating / 10


def of_pattern(matched: bool, polarity: str) -> float:
    """Goodness of a pattern: a failure pattern should not match, a proper one should."""
    return float(matched) if polarity == "proper" else float(not matched)


def of_external(score: float | None, matches: bool, *, invert: bool) -> float:
    """Goodness of an external scorer: its score when within 0..1, else its verdict; by default a match is bad."""
    if score is not None and math.isfinite(score) and 0 <= score <= 1:
        return float(score)
    return float(matches if invert else not matches)


def group_score(members: Sequence[MemberScore]) -> GroupScore:
    """The weighted mean of the members that gave a score, times ten; 0 when one that must pass is below a half.

    Members without a score leave the mean. With no weight left there is no score, but a failed gate still gives 0.
    """
    scored = [member for member in members if member.goodness is not None]
    parts = [
        f"{member.name} not scored"
        if member.goodness is None
        else f"{member.name} {member.goodness * 10:.4g}/10 (weight {member.weight:g}{', must pass' if member.gate else ''})"
        for member in members
    ]
    text = f"Weighted blend: {'; '.join(parts)}." if parts else "The group has no members."
    failed = [member.name for member in scored if member.gate and (member.goodness or 0.0) < GATE_PASSES_AT]
    if failed:
        return GroupScore(0.0, f"{text} Must-pass not met: {', '.join(failed)}; the group's score is 0.")
    total = sum(member.weight for member in scored)
    if not scored:
        return GroupScore(None, f"{text} No member gave a score.")
    if total <= 0:
        return GroupScore(None, f"{text} No scored member has a weight, so there is no score.")
    mean = sum(member.weight * (member.goodness or 0.0) for member in scored) / total
    # What floating point adds in the sixteenth place would be shown and compared: 6.5, not 6.500000000000002.
    return GroupScore(min(10.0, max(0.0, round(mean * 10, 9))), text)
