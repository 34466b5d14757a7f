"""Reading request bodies by hand: small checks that end in a 400 with a text a person can act on."""

from __future__ import annotations

import math
import re
from typing import Any

from rest_framework.request import Request

from apps.core.api.errors import APIError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def object_body(request: Request) -> dict[str, Any]:
    """The body as a JSON object; raises 400 for any other JSON."""
    body = request.data
    if not isinstance(body, dict):
        raise APIError("Request body must be a JSON object")
    return body


def one_line(value: Any, field: str, *, limit: int) -> str:
    """A non-blank text of one line, stripped; raises 400 naming the field, never its value."""
    if not isinstance(value, str) or not value.strip():
        raise APIError(f"{field} is required")
    text = value.strip()
    if len(text) > limit:
        raise APIError(f"{field} must be at most {limit} characters")
    if _CONTROL.search(text):
        raise APIError(f"{field} must not contain control characters")
    return text


def secret_or_none(value: Any, field: str, *, limit: int = 1000) -> str | None:
    """A secret to store, None for null or blank text; raises 400 naming the field, never its value."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise APIError(f"{field} must be a string or null")
    text = value.strip()
    if not text:
        return None
    if len(text) > limit or not text.isascii() or _CONTROL.search(text) or " " in text:
        raise APIError(f"{field} must be one line of at most {limit} plain characters without spaces")
    return text


def is_number(value: Any) -> bool:
    """Whether a decoded JSON value is a finite number (true and false are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
