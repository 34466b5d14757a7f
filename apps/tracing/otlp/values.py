"""Attribute values to JSON text: the payload and metadata bytes of a row."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

_encode = msgspec.json.encode
_decode = msgspec.json.decode


def clean_text(text: str) -> str:
    """The text with lone surrogates (half an emoji) replaced, so that it has a UTF-8 form."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean(value: Any) -> Any:
    """The value with all text cleaned, NaN and infinities turned to None and too deep levels cut."""
    return _clean(value, 0)


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > 200:
        return None
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item, depth + 1) for key, item in value.items()}
    return value


def to_json(value: Any) -> bytes:
    """JSON text of a plain Python value."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return json.dumps(clean(value), ensure_ascii=False, separators=(",", ":")).encode()


def embedded(text: str) -> bytes | None:
    """The UTF-8 bytes of `text` when it is itself JSON, else None. Text that is JSON but for NaN or half an emoji
    is repaired (as Python's own producers write NaN); nesting deeper than any reader can follow is not JSON."""
    raw = text.encode("utf-8", "replace")
    try:
        _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        return None
    else:
        return raw
    if "NaN" not in text and "Infinity" not in text and "\\u" not in text and "\\U" not in text:
        return None
    try:
        return to_json(clean(json.loads(text)))
    except (ValueError, RecursionError):
        return None


def payload(value: Any, *, encoded: bool = False) -> bytes:
    """JSON text of a payload attribute. Text that is a JSON object or list is taken as that; `encoded` says the
    convention JSON-encodes every value, so quoted text and numbers are unwrapped too."""
    if type(value) is str:
        first = value[:1]
        if first == "{" or first == "[" or encoded or first.isspace():
            stripped = value if first in "{[" else value.strip()
            if encoded or stripped[:1] in ("{", "["):
                raw = embedded(stripped)
                if raw is not None:
                    return raw
    return to_json(value)


def unwrapped(value: Any) -> Any:
    """The plain value of an attribute whose convention JSON-encodes text (`"\\"TOOL\\""` reads TOOL)."""
    if isinstance(value, str) and value[:1] in ('"', "{", "["):
        raw = embedded(value)
        if raw is not None:
            return _decode(raw)
    return value
