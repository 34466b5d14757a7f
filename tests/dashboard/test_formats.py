"""How figures read on pages."""

from __future__ import annotations

import math

import pytest

from apps.dashboard import formats
from apps.dashboard.sparks import bars, line_path
from apps.dashboard.templatetags.figures import change

N = formats.NBSP


@pytest.mark.parametrize("write", [formats.count, formats.percent, formats.duration, formats.usd, formats.price])
@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_missing_value_is_a_dash_and_never_a_zero(write, value):
    assert write(value) == "–"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, f"0{N}ms"),
        (0.25, f"0.25{N}ms"),
        (842, f"842{N}ms"),
        (999.7, f"1.00{N}s"),
        (8420, f"8.42{N}s"),
        (34_100, f"34.1{N}s"),
        (150_000, f"2.5{N}min"),
        (26 * 60_000, f"26{N}min"),
        (3 * 3_600_000, f"3.0{N}h"),
        (5 * 86_400_000, f"5.0{N}d"),
    ],
)
def test_durations_choose_their_unit(ms, text):
    assert formats.duration(ms) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "$0"), (0.00001, f"<{N}$0.0001"), (0.0487, "$0.0487"), (231.14, "$231.14"), (12345.6, "$12,346")],
)
def test_money(value, text):
    assert formats.usd(value) == text


@pytest.mark.parametrize(("value", "text"), [(1.25, "$1.25"), (0.075, "$0.075"), (15, "$15.00"), (1250, "$1,250.00")])
def test_prices_keep_their_digits(value, text):
    assert formats.price(value) == text


def test_counts_and_shares():
    assert formats.count(18426) == "18,426"
    assert formats.count(-3) == "−3"
    assert formats.percent(0.941) == f"94.1{N}%"
    assert formats.points(-0.008) == f"0.8{N}pt"


def test_a_delta_says_direction_in_words_and_verdict_by_colour():
    worse = change(0.011, "points", "down")
    assert 'data-v="fail"' in worse and "up by 1.1" in worse
    better = change(-0.006, "points", "down")
    assert 'data-v="pass"' in better and "down by 0.6" in better
    assert "data-v" not in change(0.062, "share")
    assert change(None) == ""
    assert "no change" in change(0.0)


def test_a_sparkline_keeps_gaps_and_marks_its_last_point():
    path, last = line_path([1, None, 3, 2])
    assert path.count("M") == 2 and last is not None and last[0] == 100
    assert line_path([None, None]) == ("", None)
    assert line_path([5])[1] == (0.0, 50.0)


def test_bars_light_the_highest_only():
    assert bars([1, 4, 0]).count("data-on") == 1
    assert bars([]).count("<rect") == 0
