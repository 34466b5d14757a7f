"""Windows of time that reads take: `24h`, `7d`, `30d`, or any `<n>h` / `<n>d` from 1h to 90d for metrics.

A window is cut into points (the bars of a chart) that begin at multiples of `step` in UTC. It reaches from the
aggregate bucket that holds "now minus its length" to the end of the point that holds now, so it never shows less than
was asked for: the first point may be a partial one, and the last is always the one that is still filling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from apps.core.times import from_ms, now_ms, to_iso

MINUTE = 60
FIVE_MINUTES = 5 * MINUTE
HOUR = 60 * MINUTE
DAY = 24 * HOUR

NAMED = {"24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
DEFAULT_NAME = "7d"
DEFAULT_FREE = "1d"
_FREE = re.compile(r"\s*([1-9][0-9]{0,3})([hd])\s*", re.ASCII)
_LONGEST = 90 * DAY


@dataclass(frozen=True, slots=True)
class Window:
    """`[start, end)` in seconds since 1970, cut into points `step` seconds wide; `name` is echoed on the wire.

    `edge` is the width of the aggregate buckets at which the window may begin.
    """

    name: str
    seconds: int
    start: int
    end: int
    step: int
    edge: int

    @property
    def start_ms(self) -> int:
        """First millisecond inside."""
        return self.start * 1000

    @property
    def end_ms(self) -> int:
        """First millisecond after."""
        return self.end * 1000

    def previous(self) -> Window:
        """The window of equal length right before this one (source 1:7307-7309)."""
        return Window(self.name, self.seconds, self.start - self.seconds, self.start, self.step, self.edge)

    def points(self) -> list[int]:
        """Starts of all points, oldest first, empty ones too; each a multiple of `step`."""
        return list(range(self.start - self.start % self.step, self.end, self.step))

    def days(self) -> list[Window]:
        """The window cut at midnight UTC: one part for each day it touches, oldest first."""
        cuts = [self.start, *range(self.start - self.start % DAY + DAY, self.end, DAY), self.end]
        return [replace(self, start=start, end=end) for start, end in pairwise(cuts)]

    def label(self, point: int) -> str:
        """What a person reads under a point, in UTC: `14:05`, `Nov 29`, or `Nov 29 06:00`."""
        moment = from_ms(point * 1000)
        day = f"{moment:%b} {moment.day}"
        if self.step >= DAY:
            return day
        if self.seconds <= DAY:
            return f"{moment:%H:%M}"
        return f"{day} {moment:%H:%M}"


@dataclass(frozen=True, slots=True)
class Piece:
    """`[start, end)` in seconds, to be read from aggregate buckets `width` seconds wide."""

    width: int
    start: int
    end: int


def _window(name: str, seconds: int, step: int, at_ms: int | None) -> Window:
    now = (now_ms() if at_ms is None else at_ms) // 1000
    edge = FIVE_MINUTES if seconds < DAY else HOUR
    start = now - seconds
    return Window(name, seconds, start - start % edge, now - now % step + step, step, edge)


def parse_named(text: str | None, *, at_ms: int | None = None) -> Window:
    """`24h` (hourly points), `7d` or `30d` (daily points); anything else reads as `7d` (MON, preamble)."""
    name = (text or "").strip()
    if name not in NAMED:
        name = DEFAULT_NAME
    seconds = NAMED[name]
    return _window(name, seconds, HOUR if seconds == DAY else DAY, at_ms)


def parse_free(text: str | None, *, at_ms: int | None = None) -> Window:
    """`<n>h` or `<n>d` from 1h to 90d, else `1d` (source 1:7310-7318); points fit the length (12 to 90 of them)."""
    name = (text or "").strip()
    found = _FREE.fullmatch(name)
    seconds = int(found[1]) * (HOUR if found[2] == "h" else DAY) if found else 0
    if not HOUR <= seconds <= _LONGEST:
        name, seconds = DEFAULT_FREE, DAY
    return _window(name, seconds, _step_of(seconds), at_ms)


def _step_of(seconds: int) -> int:
    if seconds <= 2 * HOUR:
        return FIVE_MINUTES
    if seconds <= 12 * HOUR:
        return 15 * MINUTE
    if seconds <= 2 * DAY:
        return HOUR
    if seconds <= 7 * DAY:
        return 6 * HOUR
    return DAY


def pieces(window: Window, *, widest: int = DAY) -> list[Piece]:
    """The window as few ranges of buckets: the widest buckets that fit inside, narrower ones at its edges.

    `widest` bounds the width, e.g. to the points of a chart. Widths are 5 minutes, one hour and one day.
    """
    return list(_cover(window.start, window.end, [w for w in (DAY, HOUR, FIVE_MINUTES) if w <= widest]))


def _cover(start: int, end: int, widths: list[int]) -> Iterator[Piece]:
    if start >= end:
        return
    width, *narrower = widths
    if not narrower:
        yield Piece(width, start - start % width, end + -end % width)
        return
    inner_start, inner_end = start + -start % width, end - end % width
    if inner_start >= inner_end:
        yield from _cover(start, end, narrower)
        return
    yield from _cover(start, inner_start, narrower)
    yield Piece(width, inner_start, inner_end)
    yield from _cover(inner_end, end, narrower)


def point_iso(point: int) -> str:
    """The wire form of a point's start."""
    return to_iso(point * 1000)
