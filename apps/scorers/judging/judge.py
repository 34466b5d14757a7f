"""Ask a judge for its verdict on one answer: a rating read for certain, or a skip with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.llm import gateway
from apps.projects.models import Project
from apps.scorers.grader_types import Member
from apps.scorers.judging.prompt import SYSTEM, build_prompt
from apps.scorers.judging.verdict import RAW_MOST, Unusable, parse_verdict
from apps.scorers.texts import cut, storable

JUDGE_TIMEOUT_S = 90.0
NEEDS_EXPECTED = "This scorer needs a reference answer, and the case has no expectedResults."


@dataclass(frozen=True, slots=True)
class JudgeMaterial:
    """What one answer is judged by. `trajectory` None: no trace is linked. `case` is the dataset case, none when live."""

    input: str
    output: str
    expected: str | None = None
    context: str | None = None
    trajectory: str | None = None
    tool_definitions: str | None = None
    case: Mapping[str, Any] = field(default_factory=dict)
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A rating from 0 to 10, what the judge wrote, and what the calls cost in USD (None: no price is known)."""

    rating: float
    justification: str
    model: str
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """No rating, with the reason a person reads; `raw` is the beginning of what the judge said, when it said anything."""

    reason: str
    raw: str = ""
    cost_usd: float | None = None


def judge(
    project: Project, member: Member, material: JudgeMaterial, *, purpose: gateway.Purpose = "judge"
) -> Judged | Skipped:
    """The verdict of one rubric. An answer that cannot be used is asked for once more; a provider that fails, a missing
    key and a used-up quota are skips with their own text. Never raises for any of these."""
    if member.get("requiresExpected") and not (material.expected and material.expected.strip()):
        return Skipped(NEEDS_EXPECTED)
    prompt = build_prompt(
        member,
        input=material.input,
        output=material.output,
        expected=material.expected,
        context=material.context,
        trajectory=material.trajectory,
        tool_definitions=material.tool_definitions,
        case=material.case,
        reasoning=material.reasoning,
    )
    return ask(project, prompt, model=member.get("judgeModel") or None, purpose=purpose)


def ask(project: Project, prompt: str, *, model: str | None, purpose: gateway.Purpose = "judge") -> Judged | Skipped:
    """The verdict on a finished prompt; see `judge`."""
    question = prompt
    spent: float | None = None
    raw = ""
    reason = ""
    for _ in range(2):
        try:
            answer = gateway.chat(
                project=project,
                prompt=question,
                purpose=purpose,
                model=model,
                system=SYSTEM,
                timeout_s=JUDGE_TIMEOUT_S,
            )
        except gateway.ModelUnavailable as error:
            return Skipped(error.reason, raw, spent)
        if answer.cost_usd is not None:
            spent = (spent or 0.0) + answer.cost_usd
        outcome = parse_verdict(answer.text, answer.finish_reason)
        if not isinstance(outcome, Unusable):
            return Judged(outcome.rating, outcome.justification, answer.model, spent)
        raw, reason = cut(storable(answer.text or ""), RAW_MOST), outcome.reason
        question = f"{prompt}\n\nYour last answer could not be used: {reason}. Answer with the one JSON object alone."
    return Skipped(f"The judge's answer could not be used, twice: {reason}.", raw, spent)
