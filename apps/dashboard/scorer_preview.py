"""What a judge receives, block by block in its order, and the exact question with an example filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from apps.scorers.judging.prompt import build_prompt, unknown_variables

_INPUT = "Please cancel invoice INV-7731 and pay me back."
_OUTPUT = (
    "Invoice INV-7731 is paid, so I cannot cancel it. I asked for a refund quote and will come back within an hour."
)
_EXPECTED = "Says that a paid invoice is refunded, not cancelled, and asks for a refund quote."
_CONTEXT = "Paid invoices are refunded, not cancelled."
_PATH = "1. billing.get_invoice (succeeded)\n2. billing.quote_refund (failed: service unavailable)"
_TOOLS = "billing.get_invoice(id)\nbilling.quote_refund(id)"


@dataclass(frozen=True, slots=True)
class Block:
    """One part of the question: `sent` says whether this scorer sends it, `note` where it comes from."""

    title: str
    note: str
    text: str
    icon: str = "file-text"
    sent: bool = True


@dataclass(frozen=True, slots=True)
class Preview:
    """The blocks, the whole question with an example, and names in braces that will not be filled."""

    blocks: list[Block]
    prompt: str
    unknown: list[str]
    misses_output: bool


def assembly(judge: dict[str, Any]) -> Preview:
    """The preview of a rubric (wire keys of `judge`); nothing is asked of a model."""
    own = judge.get("judgePrompt") or ""
    depth = judge.get("toolContext") or "simple"
    blocks = [
        Block(
            _("Instructions"),
            _("own template") if own.strip() else _("default template"),
            own.strip()[:400] if own.strip() else _("How to judge, and the scale from 0 to 10."),
            "terminal",
        ),
        Block(_("Question and answer"), _("from the result"), "{input} → {output}", "message-square"),
        Block(
            _("Expected results"),
            _("from the case"),
            _("Cases without them are skipped.")
            if judge.get("requiresExpected")
            else _("Without them the judge is told to judge by the criteria alone."),
            "target",
        ),
        Block(
            _("Retrieved context"),
            _("from the trace"),
            _("What the agent retrieved; with an own template only where {context} stands."),
            "search",
        ),
        Block(
            _("Trajectory"),
            _("tool context: %(depth)s") % {"depth": depth},
            _("The steps of the linked trace.") if depth != "none" else _("Not sent."),
            "list-tree",
            depth != "none",
        ),
        Block(
            _("Tool definitions"),
            _("tool context: %(depth)s") % {"depth": depth},
            _("What the tools of the trace are for.") if depth == "detailed" else _("Not sent."),
            "wrench",
            depth == "detailed",
        ),
        Block(
            _("Capabilities, knowledge, delegations, judge guideline"),
            _("from the case"),
            _("Those the case names."),
            "list",
        ),
    ]
    for title, key, icon in (
        (_("Accept when"), "acceptanceCriteria", "check"),
        (_("Reject when"), "rejectionCriteria", "x"),
        (_("Also consider"), "evaluationCriteria", "info"),
    ):
        text = (judge.get(key) or "").strip()
        blocks.append(Block(title, _("this scorer"), text or _("Nothing written."), icon, bool(text)))
    blocks.append(
        Block(
            _("How to answer"),
            _("fixed"),
            _("One JSON object with a rating from 0 to 10 and a justification."),
            "scale",
        )
    )
    member: Any = {**judge, "name": ""}
    prompt = build_prompt(
        member,
        input=_INPUT,
        output=_OUTPUT,
        expected=_EXPECTED,
        context=_CONTEXT,
        trajectory=_PATH,
        tool_definitions=_TOOLS,
        case={},
    )
    return Preview(blocks, prompt, unknown_variables(own), bool(own.strip()) and "{output}" not in own)
