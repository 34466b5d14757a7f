"""Cases as they are stored: whatever a client sends becomes a list that every reader can parse (DATA-011..014).

`questions` is never refused. A malformed entry keeps its position as a case with an empty query, so the indexes of
the others stay what the sender meant; null keys count as absent and are dropped; well-formed cases come back as sent,
keys that nobody knows included. Values the published client could not parse are brought into its types (sdk
evaluations/models.py:34-70) or left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from apps.tracing.ingest.cleaning import clean_text

SMOKE_COUNT_MAX = 10
TRAJECTORY_MODES = ("strict", "unordered", "subset", "superset")
_TEXTS = ("expectedResults", "judgeGuideline", "retrievalContext")
_LISTS = ("expectedCapabilities", "expectedKnowledgeBase", "expectedDelegations", "splits")
# Deeper JSON is cut off: readers and both databases walk it recursively.
_MAX_DEPTH = 40
_MAX_INTEGER = 2**63 - 1


def normalized(questions: Any) -> list[dict[str, Any]]:
    """The cases of a sent `questions`; `[]` when it is no array."""
    if not isinstance(questions, list):
        return []
    return [_case(clean(entry, 1)) for entry in questions]


def clean(value: Any, depth: int = 0) -> Any:
    """A JSON value fit for the store: no NUL, no lone surrogate, no number JSON cannot carry, nothing too deep."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -_MAX_INTEGER <= value <= _MAX_INTEGER else clean(float_or_none(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item, depth + 1) for item in value]
    return None


def float_or_none(value: int) -> float | None:
    """An integer too large for JSON readers as a float; None when it is too large even for that."""
    try:
        return float(value)
    except OverflowError:
        return None


def case_texts(questions: list[dict[str, Any]]) -> list[str]:
    """The query of every case's main question, in order; an empty text for a blank one."""
    return [query_of(case) for case in questions]


def query_of(case: dict[str, Any]) -> str:
    """The text a case puts to the agent."""
    main = case.get("main_question")
    query = main.get("query") if isinstance(main, dict) else None
    return query if isinstance(query, str) else ""


def usable(questions: list[dict[str, Any]], split: str | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(questionIndex, case) of every case with a query, of one split when it is named (DATA-022)."""
    for index, case in enumerate(questions):
        if not query_of(case).strip():
            continue
        if split and split not in (case["main_question"].get("splits") or []):
            continue
        yield index, case


def splits_of(questions: list[dict[str, Any]]) -> list[str]:
    """Every split that some case is tagged with, in order of first use."""
    found: dict[str, None] = {}
    for case in questions:
        main = case.get("main_question")
        for name in (main.get("splits") or []) if isinstance(main, dict) else []:
            found.setdefault(name)
    return list(found)


def _case(entry: Any) -> dict[str, Any]:
    """One entry with `main_question.query` as text and, when it is there, `follow_up_questions` as a list."""
    if not isinstance(entry, dict):
        return {"main_question": {"query": ""}, "follow_up_questions": []}
    case = _without_nulls(entry)
    case["main_question"] = _question(case.get("main_question"))
    if "follow_up_questions" in case:
        followups = case["follow_up_questions"]
        case["follow_up_questions"] = [_question(item) for item in followups] if isinstance(followups, list) else []
    if "source" in case:
        if isinstance(case["source"], dict):
            case["source"] = _without_nulls(case["source"])
        else:
            del case["source"]
    return case


def _question(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"query": ""}
    question = _without_nulls(value)
    question["query"] = _text(question.get("query")) or ""
    for key in _TEXTS:
        _put(question, key, _text(question.get(key)))
    for key in _LISTS:
        _put(question, key, _texts(question.get(key)))
    context = question.get("expectedRetrievalContext")
    _put(question, "expectedRetrievalContext", _texts(context) if isinstance(context, list) else _text(context))
    _put(question, "expectedTrajectory", _trajectory(question.get("expectedTrajectory")))
    _put(question, "smokeTest", _smoke(question.get("smokeTest")))
    return question


def _put(question: dict[str, Any], key: str, value: Any) -> None:
    """Replace a key that is there; what came out unusable goes."""
    if key not in question:
        return
    if value is None:
        del question[key]
    else:
        question[key] = value


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def _texts(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return None
    return [text for item in value if (text := _text(item)) is not None]


def _trajectory(value: Any) -> dict[str, Any] | None:
    """`tools: []` stays: it asserts that no tool is called (DATA-020)."""
    if not isinstance(value, dict):
        return None
    found = _without_nulls(value)
    if "tools" in found:
        tools = _texts(found["tools"])
        if tools is None:
            del found["tools"]
        else:
            found["tools"] = tools
    if "mode" in found and found["mode"] not in TRAJECTORY_MODES:
        del found["mode"]
    return found


def _smoke(value: Any) -> dict[str, Any] | None:
    """`count` becomes a whole number from 1 to 10 (DATA-021)."""
    if not isinstance(value, dict):
        return None
    found = _without_nulls(value)
    if "enabled" in found and not isinstance(found["enabled"], bool):
        found["enabled"] = False
    if "guidance" in found and not isinstance(found["guidance"], str):
        del found["guidance"]
    if "count" in found:
        found["count"] = _whole(found["count"])
    return found


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1
    return int(min(max(value, 1), SMOKE_COUNT_MAX))
