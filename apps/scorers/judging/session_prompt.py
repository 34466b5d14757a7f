"""What a judge is asked about a whole conversation (source 1:3635-3638): the transcript and the scorer's criteria.

The scorer's template and prompt are skipped; its tool context decides how much of the turns is shown. Marks, tag and
answer format are those of `prompt.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.scorers.grader_types import Member
from apps.scorers.judging.prompt import criteria_parts, marked, redact, tag_of
from apps.scorers.texts import cut_visibly, storable

_TURN_MOST = 12_000
_TRANSCRIPT_MOST = 160_000
_DEFINITIONS_MOST = 40_000

_QUESTION = """\
Judge a whole conversation between a user and an AI agent, not a single answer. Read every turn in order: whether the agent keeps what it was told, contradicts itself, drifts from what the user wants, repeats itself, and whether the user's goal is reached in the end. Judge by the criteria below.

Rate on a scale from 0 to 10: 10 nothing to improve, 7-9 good, 4-6 partly good, 1-3 failed in something that matters, 0 useless or harmful."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange, oldest first; `trajectory` and `tool_definitions` as `read_trace` gives them."""

    input: str
    output: str
    trajectory: str = ""
    tool_definitions: str = ""


def build_session_prompt(member: Member, turns: Sequence[Turn]) -> str:
    """The question about a conversation. Long turns, and a transcript beyond 160,000 characters, are cut visibly.

    Tool context `none` shows the turns alone, `simple` (default) their paths too, `detailed` the definitions of the used
    tools after the transcript, each once.
    """
    level = member.get("toolContext") or "simple"
    lines: list[str] = []
    for number, turn in enumerate(turns, 1):
        lines.append(f"[Turn {number}] User: {cut_visibly(turn.input, _TURN_MOST)}")
        if level != "none" and turn.trajectory:
            lines.append(f"[Turn {number}] Steps:\n{cut_visibly(turn.trajectory, _TURN_MOST)}")
        lines.append(f"[Turn {number}] Agent: {cut_visibly(turn.output, _TURN_MOST)}")
    transcript = cut_visibly("\n\n".join(lines), _TRANSCRIPT_MOST)
    definitions = ""
    if level == "detailed":
        every = dict.fromkeys(line for turn in turns for line in turn.tool_definitions.splitlines() if line)
        definitions = cut_visibly("\n".join(every), _DEFINITIONS_MOST)
    tag = tag_of([transcript, definitions])
    parts = [_QUESTION, f"**Transcript:**\n{marked('transcript', tag, transcript)}"]
    if definitions:
        parts.append(f"**Tool Definitions:**\n{marked('definitions', tag, definitions)}")
    return redact(storable("\n\n".join([*parts, *criteria_parts(member, tag)])))
