"""Windows: names, lengths, points and the aggregate buckets that cover them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.times import parse_iso_ms
from apps.core.windows import DAY, FIVE_MINUTES, HOUR, Piece, parse_free, parse_named, pieces, point_iso

NOON = parse_iso_ms("2026-03-10T12:07:30Z")


@pytest.mark.parametrize("text", [None, "", "junk", "1h", "31d", "7D"])
def test_an_unknown_named_window_reads_as_seven_days(text):
    assert parse_named(text).name == "7d"


def test_24h_has_hourly_points_and_covers_at_least_a_day():
    window = parse_named("24h", at_ms=NOON)
    assert point_iso(window.start) == "2026-03-09T12:00:00.000Z"
    assert point_iso(window.end) == "2026-03-10T13:00:00.000Z"
    assert len(window.points()) == 25
    assert window.label(window.points()[0]) == "12:00"


def test_7d_has_daily_points_the_first_one_partial():
    window = parse_named("7d", at_ms=NOON)
    assert point_iso(window.start) == "2026-03-03T12:00:00.000Z"
    assert [window.label(point) for point in window.points()] == [f"Mar {day}" for day in range(3, 11)]


def test_the_previous_window_ends_where_this_one_begins():
    window = parse_named("30d", at_ms=NOON)
    before = window.previous()
    assert (before.end, before.end - before.start) == (window.start, 30 * DAY)


@pytest.mark.parametrize(
    ("text", "name", "step"),
    [
        ("1h", "1h", FIVE_MINUTES),
        ("6h", "6h", 15 * 60),
        ("1d", "1d", HOUR),
        ("36h", "36h", HOUR),
        ("7d", "7d", 6 * HOUR),
        ("90d", "90d", DAY),
        ("2160h", "2160h", DAY),
        ("91d", "1d", HOUR),
        ("2161h", "1d", HOUR),
        ("0h", "1d", HOUR),
        ("-1d", "1d", HOUR),
        ("1.5h", "1d", HOUR),
        ("٣h", "1d", HOUR),
        ("x", "1d", HOUR),
        (None, "1d", HOUR),
    ],
)
def test_free_windows(text, name, step):
    window = parse_free(text, at_ms=NOON)
    assert (window.name, window.step) == (name, step)


def test_long_windows_read_days_with_hours_at_the_edge():
    window = parse_named("7d", at_ms=NOON)
    midnight = parse_iso_ms("2026-03-04T00:00:00Z") // 1000
    assert pieces(window) == [Piece(HOUR, window.start, midnight), Piece(DAY, midnight, window.end)]


@given(
    st.sampled_from(["1h", "2h", "5h", "24h", "1d", "3d", "7d", "30d", "90d"]),
    st.integers(1_500_000_000_000, 1_900_000_000_000),
    st.sampled_from([FIVE_MINUTES, HOUR, DAY]),
)
def test_pieces_cover_a_window_once_without_gaps(text, at_ms, widest):
    window = parse_free(text, at_ms=at_ms)
    parts = pieces(window, widest=widest)
    assert parts[0].start <= window.start
    assert parts[-1].end >= window.end
    assert all(a.end == b.start for a, b in pairwise(parts))
    assert all(p.start % p.width == 0 and p.end % p.width == 0 and p.start < p.end for p in parts)
    assert window.start <= at_ms // 1000 - window.seconds < window.start + window.edge
    assert window.points()[-1] <= at_ms // 1000 < window.end
    if widest >= window.edge:
        assert len(parts) <= 5
