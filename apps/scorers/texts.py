"""Texts that models and scripts made, in a form every database stores."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text without NUL characters, and with halves of surrogate pairs replaced by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut(text: str, most: int) -> str:
    """The text, or its first `most` characters ending in an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def cut_visibly(text: str, most: int) -> str:
    """The text, or its beginning and end with a mark between them that says how much is missing."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n[... {len(text) - most:,} characters left out ...]\n{text[-tail:]}"
