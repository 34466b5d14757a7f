"""What was said: readable text out of the JSON payloads that agents send as input and output."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

_ASKED = ("question", "query", "prompt", "message", "user_input", "user_message", "input", "inputs", "text", "content")
_ANSWERED = ("answer", "response", "output", "outputs", "reply", "result", "text", "content", "message", "completion")
_DEPTH = 6
PREVIEW = 160


# The published client serializes no deeper than four levels and writes what lies below as Python does, cut after 200
# characters. Every answer of the OpenAI Agents SDK over the Responses API arrives so: a list with one message whose
# content parts are such text.
_WRITTEN_PART = re.compile(r"^\{'annotations': \[\], 'text': (?P<quote>['\"])(?P<text>.*)$", re.DOTALL)
_CLIENT_CUT = 200
_TEXT_PARTS = ("output_text", "text", "input_text")


def of_written_part(text: str) -> str:
    """The words of a content part that was written down as a Python literal; any other text as it is."""
    if not text.startswith("{'") or len(text) > _CLIENT_CUT:
        return text
    try:
        part = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        cut = _WRITTEN_PART.match(text) if len(text) == _CLIENT_CUT else None
        if cut is None:
            return text
        words, _, _ = cut["text"].partition(f"{cut['quote']}, 'type': 'output_")
        return f"{words.replace(chr(92) + 'n', chr(10)).replace(chr(92) + cut['quote'], cut['quote'])}…"
    if isinstance(part, dict) and part.get("type") in _TEXT_PARTS and isinstance(part.get("text"), str):
        return str(part["text"])
    return text


def asked(payload: str | None) -> str:
    """The person's words of a turn's input; of a message list the last user message. Empty when there is none."""
    return _said(_load(payload), _ASKED, ("user", "human"), 0)


def answered(payload: str | None) -> str:
    """The agent's words of a turn's output; of a message list the last assistant message. Empty when there is none."""
    return _said(_load(payload), _ANSWERED, ("assistant", "ai", "model", "agent"), 0)


def one_line(text: str, length: int = PREVIEW) -> str:
    """The text on one line, cut at its end."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1].rstrip()}…"


def _load(payload: str | None) -> Any:
    if not payload:
        return None
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        # A preview that was cut in the middle of its JSON: what can be read of a leading string is shown.
        return payload[1:].replace('\\"', '"').replace("\\n", "\n") if payload.startswith('"') else payload


def _said(value: Any, keys: tuple[str, ...], roles: tuple[str, ...], depth: int) -> str:
    if value is None or depth > _DEPTH:
        return ""
    if isinstance(value, str):
        return of_written_part(value.strip())
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        return _of_list(value, keys, roles, depth)
    if isinstance(value, dict):
        for name in ("messages", "choices"):
            if isinstance(value.get(name), list) and value[name]:
                found = _said(value[name], keys, roles, depth + 1)
                if found:
                    return found
        for key in keys:
            if value.get(key) not in (None, "", [], {}):
                found = _said(value[key], keys, roles, depth + 1)
                if found:
                    return found
        return json.dumps(value, ensure_ascii=False, indent=2) if value and depth == 0 else ""
    return ""


def _role(item: Any) -> str:
    if isinstance(item, dict):
        return str(item.get("role") or item.get("type") or "").lower()
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        return item[0].lower()
    return ""


def _of_list(items: list[Any], keys: tuple[str, ...], roles: tuple[str, ...], depth: int) -> str:
    """The last message of one of the roles, or the texts of content parts joined."""
    for item in reversed(items):
        if _role(item) in roles:
            content = item[1] if isinstance(item, list) else item.get("content", item.get("parts", item))
            found = _said(content, keys, roles, depth + 1)
            if found:
                return found
    parts = [text for item in items if (text := _said(_part(item), keys, roles, depth + 1))]
    if parts:
        return "\n".join(parts)
    return json.dumps(items, ensure_ascii=False, indent=2) if items and depth == 0 else ""


def _part(item: Any) -> Any:
    """The text of one content part; a pair of role and text is its text."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], str):
        return item[1]
    return item
