"""Chat messages out of the payloads of agents and models, whatever their framework calls things.

Reads OpenAI chat and responses shapes, Anthropic content blocks, Gemini parts, LangChain messages (dumped or as
objects) and plain lists of role and content. What is no conversation gives None, and the page shows the JSON.
Text is never rendered as markdown or HTML; media are described, not inlined.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.dashboard import jsonview
from apps.dashboard.texts import of_written_part

MAX_MESSAGES = 200
MAX_TEXT = 12_000
ROLES = {
    "user": gettext_lazy("User"),
    "assistant": gettext_lazy("Assistant"),
    "system": gettext_lazy("System"),
    "tool": gettext_lazy("Tool"),
}
_ROLE_OF = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "humanmessage": "user",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "systemmessage": "system",
    "toolmessage": "tool",
}


@dataclass
class Part:
    """One piece of a message: `text`, `call`, `result`, `media` or `json`."""

    form: str
    text: str = ""
    name: str = ""
    left: int = 0
    value: Any = None

    @property
    def shown(self) -> SafeString:
        """The JSON of a call's arguments or of an unknown piece."""
        return jsonview.render_value(self.value)

    @property
    def more(self) -> str:
        """How much text was left out, readable."""
        return jsonview.readable_size(self.left)


@dataclass
class Message:
    """One message; `role` is one of ROLES."""

    role: str
    name: str = ""
    parts: list[Part] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The role in words."""
        return str(ROLES.get(self.role, self.role))


def conversation(value: Any) -> list[Message] | None:
    """The messages of a parsed payload, or None when it holds none."""
    items = _items(value)
    if items is None:
        return None
    found = [message for item in items[:MAX_MESSAGES] if (message := _message(item)) is not None]
    return found or None


def _items(value: Any, depth: int = 0) -> list[Any] | None:
    """The list of messages inside a payload."""
    if depth > 3:
        return None
    if isinstance(value, list):
        if value and all(_looks(item) for item in value):
            return value
        if len(value) == 1 and isinstance(value[0], list | dict):
            return _items(value[0], depth + 1)
        return None
    if isinstance(value, dict):
        if _looks(value):
            return [value]
        if isinstance(value.get("choices"), list):
            inner = [choice.get("message") for choice in value["choices"] if isinstance(choice, dict)]
            return inner if inner and all(_looks(item) for item in inner) else None
        for key in ("messages", "contents", "history", "chat_history"):
            if isinstance(value.get(key), list) and value[key]:
                found = _items(value[key], depth + 1)
                if found is not None:
                    system = value.get("system") or value.get("system_instruction") or value.get("instructions")
                    return [{"role": "system", "content": system}, *found] if system else found
        generations = value.get("generations")
        if isinstance(generations, list):
            flat = [g for group in generations for g in (group if isinstance(group, list) else [group])]
            inner = [g.get("message") for g in flat if isinstance(g, dict)]
            return inner if inner and all(_looks(item) for item in inner) else None
    return None


def _body(item: dict[str, Any]) -> dict[str, Any]:
    """The members of a message; LangChain's serialized objects keep them in `kwargs` or `data`."""
    for key in ("kwargs", "data"):
        inner = item.get(key)
        if isinstance(inner, dict) and ("content" in inner or "role" in inner):
            return {**inner, "type": inner.get("type") or _class(item)}
    return item


def _class(item: dict[str, Any]) -> str:
    ids = item.get("id")
    return str(ids[-1]) if isinstance(ids, list) and ids else str(item.get("type") or "")


def _role(item: dict[str, Any]) -> str:
    for key in ("role", "type"):
        word = item.get(key)
        if isinstance(word, str) and word.lower() in _ROLE_OF:
            return _ROLE_OF[word.lower()]
    return ""


def _looks(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return len(item) == 2 and isinstance(item[0], str) and item[0].lower() in _ROLE_OF
    if not isinstance(item, dict):
        return False
    item = _body(item)
    return bool(_role(item)) and bool({"content", "parts", "tool_calls", "text"} & item.keys())


def _message(item: Any) -> Message | None:
    if isinstance(item, list | tuple):
        return Message(_ROLE_OF[str(item[0]).lower()], parts=_content(item[1]))
    if not isinstance(item, dict):
        return None
    item = _body(item)
    parts = _content(item.get("content", item.get("parts", item.get("text"))))
    for call in item.get("tool_calls") or []:
        if isinstance(call, dict):
            parts.append(_call(call))
    role = _role(item)
    if role == "tool":
        parts = [Part("result", name=str(item.get("name") or ""), value=_result(item.get("content")))]
    return Message(role, str(item.get("name") or ""), parts)


def _result(content: Any) -> Any:
    if isinstance(content, str) and content[:1] in "{[":
        return jsonview.parse(content)
    return content


def _call(call: dict[str, Any]) -> Part:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = next(
        (
            source[key]
            for source in (function, call)
            for key in ("arguments", "args", "input")
            if source.get(key) is not None
        ),
        None,
    )
    if isinstance(arguments, str):
        arguments = jsonview.parse(arguments)
    return Part("call", name=str(function.get("name") or call.get("name") or _("tool")), value=arguments)


def _text(text: str) -> Part:
    shown, left = jsonview.cut(of_written_part(text), MAX_TEXT)
    return Part("text", text=shown, left=left)


def _content(content: Any) -> list[Part]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [_text(content)]
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return [Part("json", value=content)]
    return [_piece(piece) for piece in content[:MAX_MESSAGES]]


def _piece(piece: Any) -> Part:
    if isinstance(piece, str):
        return _text(piece)
    if not isinstance(piece, dict):
        return Part("json", value=piece)
    form = str(piece.get("type") or "")
    if form in ("tool_use", "tool_call", "function_call") or "functionCall" in piece or "function_call" in piece:
        inner = piece.get("functionCall") or piece.get("function_call")
        return _call(inner if isinstance(inner, dict) else piece)
    if form in ("tool_result", "tool_call_response", "function_response"):
        value = piece.get("content", piece.get("response", piece.get("result")))
        return Part("result", name=str(piece.get("name") or ""), value=_result(value))
    if isinstance(piece.get("text"), str):
        return _text(piece["text"])
    if form in ("text", "input_text", "output_text", "thinking", "reasoning") and isinstance(
        piece.get("content") or piece.get("thinking"), str
    ):
        return _text(piece.get("content") or piece.get("thinking") or "")
    if any(word in form for word in ("image", "audio", "video", "file", "media", "document")) or "inline_data" in piece:
        return _media(form, piece)
    return Part("json", value=piece)


def _media(form: str, piece: dict[str, Any]) -> Part:
    """A picture, sound or file: its kind and size; never its bytes."""
    text = json.dumps(piece)
    kind = form.replace("_url", "").replace("input_", "").replace("_", " ") or "file"
    url = next(
        (
            str(found)
            for found in (
                piece.get("url"),
                (piece.get("image_url") or {}).get("url")
                if isinstance(piece.get("image_url"), dict)
                else piece.get("image_url"),
            )
            if found
        ),
        "",
    )
    where = "" if url.startswith("data:") or not url else url[:200]
    return Part("media", text=where, name=f"{kind}, {jsonview.readable_size(len(text))}")
