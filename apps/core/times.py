"""Times: milliseconds since 1970 inside, ISO 8601 UTC with milliseconds and Z on the wire."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A start and a latency may each be stored and their sum still lie beyond what a calendar date can say.
_FIRST_MS = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MS = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def now_ms() -> int:
    """The present in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def to_iso(ms: int) -> str:
    """`2026-08-27T10:30:00.000Z` for milliseconds since 1970; beyond the years 1 to 9999 the nearest of them."""
    ms = min(max(ms, _FIRST_MS), _LAST_MS)
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment.isoformat(timespec='seconds')[:19]}.{ms % 1000:03d}Z"


def datetime_to_iso(moment: datetime) -> str:
    """The wire form of an aware datetime."""
    return to_iso(to_ms(moment))


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int) -> datetime:
    """The aware UTC datetime of milliseconds since 1970; beyond the years 1 to 9999 the nearest of them."""
    return _EPOCH + timedelta(milliseconds=min(max(ms, _FIRST_MS), _LAST_MS))


def parse_iso_ms(text: str) -> int:
    """Milliseconds of an ISO date or datetime; a value without an offset is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip())
    return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
