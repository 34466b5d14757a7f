"""One line of a payload of which only the first characters were read."""

from __future__ import annotations

import json
from typing import Any

# How many characters of a payload's JSON a list reads for its preview.
READ = 2_000
SHOWN = 200
_CLOSERS = {"{": "}", "[": "]"}


def mended(text: str) -> str:
    """The start of a JSON text as whole JSON: what was cut off is dropped, what was open is closed.

    Text that is no JSON comes back as it is. Runs once over the text, without recursion.
    """
    stack: list[str] = []
    in_string = escaped = False
    # Where the text could be cut, and which containers were open there.
    safe = 0
    open_at_safe: list[str] = []
    for index, char in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in _CLOSERS:
            stack.append(char)
            safe, open_at_safe = index + 1, list(stack)
        elif char in "}]":
            if stack:
                stack.pop()
            safe, open_at_safe = index + 1, list(stack)
        elif char == "," and stack:
            safe, open_at_safe = index, list(stack)
    if not in_string and not stack:
        return text
    closers = "".join(_CLOSERS[char] for char in reversed(stack))
    candidates = []
    if in_string:
        body = text
        if escaped:
            body = body[:-1]
        elif "\\u" in body[-6:]:
            body = body[: body.rindex("\\u")] if len(body) - body.rindex("\\u") < 6 else body
        candidates.append(f'{body}…"{closers}')
    candidates.append(text + closers)
    candidates.append(text[:safe] + "".join(_CLOSERS[char] for char in reversed(open_at_safe)))
    for candidate in candidates:
        try:
            json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return candidate
    return text


def beginning(text: str | None, *, read: int = READ) -> str | None:
    """A payload's first `read` characters, mended where they were cut."""
    if text is None or len(text) < read:
        return text
    return mended(text)


def first_line(value: Any, length: int = SHOWN) -> str:
    """Text on one line, cut at its end."""
    flat = " ".join(str(value or "")[: length * 4].split())
    return flat if len(flat) <= length else f"{flat[: length - 1].rstrip()}…"
