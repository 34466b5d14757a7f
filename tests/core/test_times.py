"""Times on the wire."""

from __future__ import annotations

import json

import pytest

from apps.core.times import from_ms, to_iso


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_787_826_600_007, "2026-08-27T10:30:00.007Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        # What no calendar date can say becomes the nearest one.
        (10**18, "9999-12-31T23:59:59.999Z"),
        (-(10**18), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_every_number_has_a_date(ms, shown):
    assert to_iso(ms) == shown
    assert from_ms(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z") == shown


def test_the_year_has_four_digits():
    assert json.dumps(to_iso(-62_000_000_000_000))[1:5].isdigit()
