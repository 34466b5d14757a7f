"""How figures read on pages: one place for digits, units and the dash that stands for "no value".

Pure functions from numbers to short texts. A missing value is always `–`, never 0, 100 % or $0; the unit stands in the
cell; minus is `−`.
"""

from __future__ import annotations

import math
from decimal import Decimal

from django.utils.formats import number_format

NONE = "–"
NBSP = "\u00a0"


def is_number(value: object) -> bool:
    """Whether the value is a finite number (booleans are not)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def plain(value: float, digits: int) -> str:
    """The number with so many decimals, grouped, with a true minus."""
    # number_format cuts digits off, so the value is rounded before.
    rounded = Decimal(f"{abs(value):.{digits}f}")
    text = number_format(rounded, decimal_pos=digits, use_l10n=True, force_grouping=True)
    return f"−{text}" if value < 0 and rounded else text


def count(value: float | None) -> str:
    """`18,426`."""
    return plain(value, 0) if value is not None and is_number(value) else NONE


def compact(value: float | None) -> str:
    """`842`, `12.4k`, `3.1M`: for axes and narrow cells; the full number belongs in a title."""
    if value is None or not is_number(value):
        return NONE
    size = abs(value)
    for limit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            scaled = value / limit
            return plain(scaled, 0 if abs(scaled) >= 100 else 1) + letter
    return plain(value, 0)


def percent_parts(rate: float | None, digits: int = 1) -> tuple[str, str]:
    """(`94.1`, `%`) for a share between 0 and 1."""
    if rate is None or not is_number(rate):
        return NONE, ""
    return plain(rate * 100, digits), "%"


def percent(rate: float | None, digits: int = 1) -> str:
    """`94.1 %` for a share between 0 and 1."""
    return _joined(percent_parts(rate, digits))


def duration_parts(ms: float | None) -> tuple[str, str]:
    """(`8.42`, `s`) for milliseconds; under a second in ms, from two minutes on in minutes, then hours and days."""
    if ms is None or not is_number(ms):
        return NONE, ""
    size = abs(ms)
    if size < 0.9995:
        return plain(ms, 2 if size else 0), "ms"
    if size < 999.5:
        return plain(ms, 0), "ms"
    if size < 9_995:
        return plain(ms / 1000, 2), "s"
    if size < 120_000:
        return plain(ms / 1000, 1), "s"
    if size < 7_200_000:
        return plain(ms / 60_000, 0 if size >= 600_000 else 1), "min"
    if size < 172_800_000:
        return plain(ms / 3_600_000, 1), "h"
    return plain(ms / 86_400_000, 1), "d"


def duration(ms: float | None) -> str:
    """`842 ms`, `8.42 s`, `26 min`."""
    return _joined(duration_parts(ms))


def usd(value: float | None) -> str:
    """`$231.14`, `$0.0487`; a spend too small for four digits is `< $0.0001`."""
    if value is None or not is_number(value):
        return NONE
    size = abs(value)
    sign = "−" if value < 0 else ""
    if size == 0:
        return "$0"
    if size < 0.00005:
        return f"<{NBSP}$0.0001"
    if size < 1:
        return f"{sign}${plain(size, 4)}"
    if size < 10_000:
        return f"{sign}${plain(size, 2)}"
    return f"{sign}${plain(size, 0)}"


def price(value: float | None) -> str:
    """A price per million tokens: `$1.25`, `$0.075`; without trailing zeros beyond cents."""
    if value is None or not is_number(value):
        return NONE
    text = f"{value:.6f}".rstrip("0")
    whole, _dot, decimals = text.partition(".")
    return f"${plain(float(whole), 0)}.{decimals.ljust(2, '0')}"


def points(delta: float | None) -> str:
    """A difference of two shares in percentage points: `0.8 pt` (without sign; the arrow carries it)."""
    if delta is None or not is_number(delta):
        return NONE
    return f"{plain(abs(delta) * 100, 1)}{NBSP}pt"


def _joined(parts: tuple[str, str]) -> str:
    return NBSP.join(part for part in parts if part)
