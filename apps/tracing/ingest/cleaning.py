"""Make what JSON and protobuf can carry fit for the store: no NUL, no lone surrogates, no NaN, no endless integers."""

from __future__ import annotations

import json
import math
import re
from typing import Any

REPLACEMENT = "\ufffd"
# Escapes a stored payload must not hold: NUL, and any surrogate (a lone one breaks strict readers; pairs are re-encoded).
SUSPICIOUS_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")

_ANY_BAD_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})")

# Longer integers are legal JSON, yet Python's reader (the client's, and ours) refuses the whole text that holds one.
MAX_INTEGER_DIGITS = 4300
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ENDLESS = b"0" * (MAX_INTEGER_DIGITS + 1)


def clean_text(text: str) -> str:
    """The text with NUL and lone surrogates replaced by U+FFFD."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            # utf-16 joins a pair that arrived as two escapes and drops nothing else.
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    return text


def clean_value(value: Any) -> Any:
    """A decoded JSON value with every text cleaned and every non-finite number replaced by None."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(key): clean_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    return value


def dump(value: Any) -> bytes:
    """Compact strict JSON of a cleaned value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")


def load(payload: bytes | str) -> Any:
    """Decode JSON leniently: NaN and infinities become None, bad UTF-8 is replaced. Raises ValueError or RecursionError."""
    text = payload if isinstance(payload, str) else payload.decode("utf-8", "replace")
    # The hook costs a call for every integer, so it is set only where it is needed.
    hook = _integer if _has_endless_digits(text.encode("utf-8", "surrogatepass")) else None
    return json.loads(text, parse_constant=lambda _: None, parse_int=hook)


def _has_endless_digits(payload: bytes) -> bool:
    return len(payload) > MAX_INTEGER_DIGITS and _ENDLESS in payload.translate(_ZEROS)


def _integer(digits: str) -> int | str:
    """The number, or its text when no reader would take it as a number."""
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else digits


def stored_text(payload: bytes) -> str:
    """Payload bytes as the text that is stored: as they came when nothing in them needs cleaning."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        text = payload.decode("utf-8", "replace")
    if ("\\u" in text and SUSPICIOUS_ESCAPE.search(payload)) or _has_endless_digits(payload):
        try:
            return dump(clean_value(load(text))).decode("utf-8")
        except (ValueError, RecursionError):
            # Too deep to rebuild: replace the escapes where they stand.
            text = _ANY_BAD_ESCAPE.sub("\\\\ufffd", text)
    return text.replace("\x00", REPLACEMENT) if "\x00" in text else text
