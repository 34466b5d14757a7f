"""Times: milliseconds since 1970 inside, ISO 8601 UTC with milliseconds and Z on the wire."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The last millisecond a datetime can name (9999-12-31); what lies behind it is shown as this moment.
_LAST_MS = 253_402_300_799_999


def now_ms() -> int:
    """The present in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def to_iso(ms: int) -> str:
    """`2026-08-27T10:30:00.000Z` for milliseconds since 1970."""
    ms = min(ms, _LAST_MS)
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def datetime_to_iso(moment: datetime) -> str:
    """The wire form of an aware datetime."""
    return to_iso(to_ms(moment))


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int) -> datetime:
    """The aware UTC datetime of milliseconds since 1970."""
    return _EPOCH + timedelta(milliseconds=min(ms, _LAST_MS))


def parse_iso_ms(text: str) -> int:
    """Milliseconds of an ISO date or datetime; a value without an offset is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip())
    return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
