"""What differs between two versions of a dataset or a judge scorer, as lines for people."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MOST_LINES = 400
_MOST_CASES = 200
_CONTEXT = 2


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `op` is same, del, add or gap."""

    op: str
    text: str

    @property
    def sign(self) -> str:
        """The mark before the text."""
        return {"del": "−", "add": "+"}.get(self.op, " ")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that differs: its name and its lines."""

    name: str
    lines: list[Line]


def diff(before: Mapping[str, Any], after: Mapping[str, Any], names: Mapping[str, str]) -> list[Part]:
    """The parts in the order of `names` (key: what people call it); `questions` are compared case by case."""
    parts: list[Part] = []
    for key, name in names.items():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key == "questions":
            parts += _cases(old or [], new or [])
        else:
            parts.append(Part(name[:1].upper() + name[1:], _lines(_text(old), _text(new))))
    return parts


def _cases(old: list[Any], new: list[Any]) -> list[Part]:
    keys = [[json.dumps(case, sort_keys=True) for case in side] for side in (old, new)]
    parts: list[Part] = []
    for op, a1, a2, b1, b2 in difflib.SequenceMatcher(a=keys[0], b=keys[1], autojunk=False).get_opcodes():
        if op == "equal":
            continue
        for step in range(max(a2 - a1, b2 - b1)):
            gone = old[a1 + step] if a1 + step < a2 else None
            come = new[b1 + step] if b1 + step < b2 else None
            number = b1 + step + 1 if come is not None else a1 + step + 1
            parts.append(Part(f"Case {number}", _lines(_case_text(gone), _case_text(come))))
            if len(parts) >= _MOST_CASES:
                return parts
    return parts


def _case_text(case: Any) -> list[str]:
    if case is None:
        return []
    if not isinstance(case, Mapping):
        return [str(case)]
    lines = list(_question(case.get("main_question"), ""))
    for number, turn in enumerate(case.get("follow_up_questions") or [], 1):
        lines += _question(turn, f"follow-up {number} ")
    for key, value in case.items():
        if key not in ("main_question", "follow_up_questions"):
            lines += [f"{key}: {line}" for line in _text(value)]
    return lines


def _question(question: Any, prefix: str) -> Iterable[str]:
    if not isinstance(question, Mapping):
        return
    for key, value in question.items():
        for line in _text(value):
            yield f"{prefix}{key}: {line}"


def _text(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return value.splitlines() or [""]
    return json.dumps(value, ensure_ascii=False, indent=2).splitlines()


def _lines(old: list[str], new: list[str]) -> list[Line]:
    found: list[Line] = []
    groups = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    for number, group in enumerate(groups):
        if number:
            found.append(Line("gap", "…"))
        for op, a1, a2, b1, b2 in group:
            if op == "equal":
                found += [Line("same", text) for text in old[a1:a2]]
            else:
                found += [Line("del", text) for text in old[a1:a2]]
                found += [Line("add", text) for text in new[b1:b2]]
        if len(found) > _MOST_LINES:
            return [*found[:_MOST_LINES], Line("gap", "…")]
    return found
