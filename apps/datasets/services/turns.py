"""What a person asked and what the agent replied, out of the payloads of a recorded root.

The input of a root may be the plain question, a whole conversation as messages in any framework's shape, or an object
around either; the question is then the last message of the user, not the history (source 1:2448, 1:5897, 1:6733).
"""

from __future__ import annotations

import json
from typing import Any

from apps.tracing.ingest.caps import ENDING
from apps.tracing.store.reads import SpanRow
from apps.tracing.trajectory import parsed

_USERS = frozenset({"user", "human", "humanmessage", "humanmessagechunk"})
_AGENTS = frozenset({"assistant", "ai", "model", "agent", "aimessage", "aimessagechunk"})
_ROLES = _USERS | _AGENTS | {"system", "developer", "tool", "function", "systemmessage", "toolmessage"}
_CONVERSATIONS = ("messages", "contents")
_QUESTIONS = (
    "query",
    "question",
    "input",
    "prompt",
    "user_input",
    "userInput",
    "utterance",
    "message",
    "text",
    "content",
    "history",
    "chat_history",
)
_ANSWERS = ("output", "answer", "response", "result", "text", "content", "message", "reply")
# Pieces of a message that are no words of whoever sent it.
_NOT_WORDS = frozenset(
    {"tool_result", "tool_use", "tool_call", "tool_call_response", "function_call", "function_response", "thinking"}
)
_MAX_DEPTH = 6


def question_of(row: SpanRow) -> str:
    """The text the user sent; empty when the root holds none."""
    return _asked(parsed(row.input), 0).strip()


def answer_of(row: SpanRow) -> str | None:
    """The text the agent replied with, None when there is none."""
    return _replied(parsed(row.output), 0).strip() or None


def _asked(value: Any, depth: int) -> str:
    if value is None or depth > _MAX_DEPTH:
        return ""
    if isinstance(value, str):
        inner = _embedded(value)
        found = None if inner is None else _conversation(inner, depth)
        if found is not None:
            return _last(found, _USERS)
        return "" if _is_stub(inner) or (inner is None and _is_cut_conversation(value)) else value
    found = _conversation(value, depth)
    if found is not None:
        return _last(found, _USERS)
    if isinstance(value, list):
        words = _words(value)
        if words:
            return words
        return _asked(value[0], depth + 1) if len(value) == 1 else _dump(value)
    if isinstance(value, dict):
        for key in _QUESTIONS:
            text = _asked(value.get(key), depth + 1)
            if text.strip():
                return text
        return "" if _is_stub(value) else _dump(value)
    return _dump(value)


def _replied(value: Any, depth: int) -> str:
    if value is None or depth > _MAX_DEPTH:
        return ""
    if isinstance(value, str):
        inner = _embedded(value)
        found = None if inner is None else _conversation(inner, depth)
        return value if found is None else _last(found, _AGENTS) or value
    if isinstance(value, dict) and isinstance(value.get("choices"), list) and value["choices"]:
        choice = value["choices"][0]
        return _replied(choice.get("message", choice.get("text")) if isinstance(choice, dict) else choice, depth + 1)
    found = _conversation(value, depth)
    if found is not None:
        return _last(found, _AGENTS) or _dump(value)
    if isinstance(value, list):
        return _words(value) or (_replied(value[0], depth + 1) if len(value) == 1 else _dump(value))
    if isinstance(value, dict):
        for key in _ANSWERS:
            text = _replied(value.get(key), depth + 1)
            if text.strip():
                return text
        return _dump(value) if value else ""
    return _dump(value)


def _embedded(text: str) -> Any:
    """JSON that a producer sent as text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_cut_conversation(text: str) -> bool:
    """Messages that ingest cut at its cap: the last question is not there any more, and no other one stands for it."""
    return text.endswith(ENDING) and text.lstrip()[:1] in ("[", "{") and '"role"' in text[:2000]


def _is_stub(value: Any) -> bool:
    """What an importer writes for an interaction that had no words (sdk integrations/moveworks.py:373)."""
    return isinstance(value, dict) and (not value or set(value) == {"interaction_type"})


def _conversation(value: Any, depth: int) -> list[tuple[str, str]] | None:
    """(role, text) of each message of a conversation; None for what is none."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        for key in _CONVERSATIONS:
            if isinstance(value.get(key), list) and value[key]:
                found = _conversation(value[key], depth + 1)
                if found is not None:
                    return found
        message = _message(value)
        return None if message is None else [message]
    if isinstance(value, list) and value:
        if len(value) == 1 and isinstance(value[0], list) and _message(value[0]) is None:
            return _conversation(value[0], depth + 1)
        messages = [_message(item) for item in value]
        known = [message for message in messages if message is not None]
        return known if len(known) == len(messages) else None
    return None


def _message(item: Any) -> tuple[str, str] | None:
    if isinstance(item, list | tuple):
        if len(item) == 2 and isinstance(item[0], str) and item[0].lower() in _ROLES:
            return item[0].lower(), _words(item[1])
        return None
    if not isinstance(item, dict):
        return None
    for key in ("kwargs", "data"):
        inner = item.get(key)
        if isinstance(inner, dict) and "content" in inner:
            identity = item.get("id")
            kind = identity[-1] if isinstance(identity, list) and identity else item.get("type")
            item = {"type": kind, **inner}
            break
    role = next(
        (word.lower() for key in ("role", "type") if isinstance(word := item.get(key), str) and word.lower() in _ROLES),
        None,
    )
    if role is not None and ("content" in item or "parts" in item or "text" in item or "tool_calls" in item):
        return role, _words(item.get("content", item.get("parts", item.get("text"))))
    # Entries of a conversation that nobody said: calls and results of tools, reasoning.
    if item.get("type") in ("function_call", "function_call_output", "reasoning", "item_reference"):
        return "tool", ""
    return None


def _words(content: Any) -> str:
    """The text of a message's content: a string, or the text pieces of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "\n".join(text for piece in content if (text := _piece(piece)))


def _piece(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    if not isinstance(piece, dict) or piece.get("type") in _NOT_WORDS:
        return ""
    if isinstance(piece.get("text"), str):
        return str(piece["text"])
    if piece.get("type") in ("text", "input_text", "output_text") and isinstance(piece.get("content"), str):
        return str(piece["content"])
    return ""


def _last(messages: list[tuple[str, str]], roles: frozenset[str]) -> str:
    return next((text for role, text in reversed(messages) if role in roles and text.strip()), "")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
