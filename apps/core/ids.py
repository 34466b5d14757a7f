"""Identifiers: 21 URL-safe characters, a sortable time part of 8 and then 13 random ones.

The alphabet is in ASCII order, so comparing ids as bytes compares the times they carry. A span's id carries the
millisecond of its `createdAt` (also for imported history), which makes the id alone the key of paging, ranges and
partitions: `id < upper_bound(ms)` is "created before ms". On Postgres id columns compare in collation "C".
"""

from __future__ import annotations

import os
import time

ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
LENGTH = 21
TIME_LENGTH = 8
# The first character is shifted so that ids never begin with "-" or a digit.
_SHIFT = 11
MAX_MS = ((63 - _SHIFT) << 42) | ((1 << 42) - 1)
_VALUE = {char: value for value, char in enumerate(ALPHABET)}
_BYTE_TO_CHAR = bytes(ord(ALPHABET[byte & 63]) for byte in range(256))
_RANDOM_LENGTH = LENGTH - TIME_LENGTH
_REFILL = 512
# Random parts drawn ahead: one call into the system for many ids. Popping is atomic; a forked child draws its own.
_drawn: list[str] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)
_pairs = [a + b for a in ALPHABET for b in ALPHABET]


def time_prefix(ms: int) -> str:
    """The 8 characters for a time in milliseconds since 1970; times outside 1970..9000 are clamped."""
    value = min(max(ms, 0), MAX_MS) + (_SHIFT << 42)
    return _pairs[value >> 36] + _pairs[(value >> 24) & 4095] + _pairs[(value >> 12) & 4095] + _pairs[value & 4095]


def _random_part() -> str:
    try:
        return _drawn.pop()
    except IndexError:
        text = os.urandom(_RANDOM_LENGTH * _REFILL).translate(_BYTE_TO_CHAR).decode("ascii")
        parts = [text[start : start + _RANDOM_LENGTH] for start in range(0, len(text), _RANDOM_LENGTH)]
        part = parts.pop()
        _drawn.extend(parts)
        return part


def new_id(ms: int | None = None) -> str:
    """A fresh id that carries `ms` (milliseconds since 1970), by default the present."""
    if ms is None:
        ms = time.time_ns() // 1_000_000
    return time_prefix(ms) + _random_part()


def default_id() -> str:
    """new_id() for model fields."""
    return new_id()


def id_ms(value: str) -> int:
    """The milliseconds an id carries. Raises ValueError when it is not one of our ids."""
    if len(value) != LENGTH:
        raise ValueError("not an id")
    number = 0
    try:
        for char in value[:TIME_LENGTH]:
            number = number << 6 | _VALUE[char]
    except KeyError:
        raise ValueError("not an id") from None
    number -= _SHIFT << 42
    if number < 0:
        raise ValueError("not an id")
    return number


def is_id(value: str) -> bool:
    """Whether the text can be one of our ids at all; anything else need not, and on Postgres must not, be looked up."""
    return len(value) == LENGTH and all(char in _VALUE for char in value)
