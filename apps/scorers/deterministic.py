"""Checks of a result without any model: the tools it should call, and the context it should have retrieved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from apps.scorers.judging.trace_material import chunks_of
from apps.scorers.metrics import jaccard
from apps.scorers.texts import cut

MODES = ("strict", "unordered", "superset", "subset")
CONTEXT_MATCH = "Context match (jaccard)"
_LIST_MOST = 4_000

ScorerRow = dict[str, Any]


def trajectory_match(expectation: Any, actual: Sequence[str] | None) -> ScorerRow | None:
    """The row `Trajectory match (<mode>)`: 1 or 0 with both lists as reasoning; None without an expectation.

    `expectation` is the case's {tools, mode}; `actual` the tool names the linked trace lists, None without a trace.
    Repeated calls count in every mode; an empty list of tools expects that none is called (source 1:4767-4788).
    """
    if not isinstance(expectation, Mapping) or not isinstance(expectation.get("tools"), list):
        return None
    said = expectation.get("mode")
    mode = said if isinstance(said, str) and said in MODES else "strict"
    name = f"Trajectory match ({mode})"
    expected = [_tool_name(tool) for tool in expectation["tools"]]
    if actual is None:
        return {"name": name, "score": None, "error": "The result has no linked trace to compare with."}
    want, got = Counter(expected), Counter(actual)
    matched = {
        "strict": list(actual) == expected,
        "unordered": got == want,
        "superset": want <= got,
        "subset": got <= want,
    }[mode]
    reasoning = f"Expected: {_shown(expected)}. Actual: {_shown(actual)}."
    return {"name": name, "score": 1.0 if matched else 0.0, "reasoning": reasoning}


def _tool_name(tool: Any) -> str:
    return str(tool.get("name", "")) if isinstance(tool, Mapping) else str(tool)


def _shown(names: Sequence[str]) -> str:
    return cut(", ".join(names), _LIST_MOST) if names else "no tool call"


def context_match(expectation: Any, actual: Sequence[str] | None) -> ScorerRow | None:
    """The row `Context match (jaccard)` from 0 to 1; None without an expectation.

    `actual` is what was really retrieved: None when nothing tells, which is an error; empty when a retrieval found
    nothing, which is 0 (source 1:4789-4795).
    """
    expected = chunks_of(expectation)
    if not expected:
        return None
    if actual is None:
        return {"name": CONTEXT_MATCH, "score": None, "error": "No retrieved context was sent or recorded."}
    return {"name": CONTEXT_MATCH, "score": jaccard("\n".join(actual), "\n".join(expected)) if actual else 0.0}
