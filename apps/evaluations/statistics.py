"""How sure an average is, and whether two averages differ by more than chance.

The unit is the case: repetitions of one case are averaged first, so that asking the same question ten times does not
look like ten pieces of evidence. Ratings are on the 0-10 scale. Everything here is pure arithmetic; no verdict of a
gate depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from django.utils.translation import gettext, ngettext

LEVEL = 0.95
SIGNIFICANT = 0.05
# Up to this many cases that changed, every assignment of signs is tried (2^20 of them).
EXACT_CASES = 20
# Beyond the exact count: this many random assignments from a fixed seed, so that a verdict never flickers.
DRAWS = 20_000
SEED = 20_260_101
# Beyond this the sum of random signs is as good as normal and drawing it would only cost time.
NORMAL_CASES = 1_000
# Fewer changed cases than this can never reach p < 0.05: 2 / 2^5 is 0.0625.
FEWEST_CASES = 6
_CHUNK = 2_000
# Sums that differ only by rounding count as equal.
_EPSILON = 1e-9

Method = Literal["exact", "monte-carlo", "normal"]

# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
_T975 = (
    12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851, 2.364624252, 2.306004135,
    2.262157163, 2.228138852, 2.200985160, 2.178812830, 2.160368656, 2.144786688, 2.131449546, 2.119905299,
    2.109815578, 2.100922040, 2.093024054, 2.085963447, 2.079613845, 2.073873068, 2.068657610, 2.063898562,
    2.059538553, 2.055529439, 2.051830516, 2.048407142, 2.045229642, 2.042272456,
)  # fmt: skip
_Z975 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over `cases` with its 95 % interval; `low` and `high` are None for fewer than two cases."""

    mean: float
    low: float | None
    high: float | None
    cases: int

    def as_wire(self) -> dict[str, Any]:
        """`{ mean, low, high, cases, level }`, numbers to 4 decimals."""
        return {
            "mean": _short(self.mean),
            "low": _short(self.low),
            "high": _short(self.high),
            "cases": self.cases,
            "level": LEVEL,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate minus baseline over the cases both have.

    `p_value` is that of the two-sided paired sign-flip permutation test: how often a difference at least this large
    comes up when each case's change is as likely to be a loss as a gain. `changed` counts the cases that differ at all.
    """

    mean: float
    low: float | None
    high: float | None
    cases: int
    changed: int
    p_value: float
    method: Method

    @property
    def significant(self) -> bool:
        """Whether chance alone is an unlikely explanation (p < 0.05)."""
        return self.p_value < SIGNIFICANT

    def as_wire(self) -> dict[str, Any]:
        """`{ mean, low, high, cases, changedCases, pValue, method, significant, level }`."""
        return {
            "mean": _short(self.mean),
            "low": _short(self.low),
            "high": _short(self.high),
            "cases": self.cases,
            "changedCases": self.changed,
            "pValue": _short(self.p_value),
            "method": self.method,
            "significant": self.significant,
            "level": LEVEL,
        }


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t; raises ValueError for less than one degree of freedom."""
    if degrees < 1:
        raise ValueError("degrees of freedom start at 1")
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    # Cornish-Fisher around the normal quantile; the error is below 1e-6 from 31 degrees on.
    z, v = _Z975, degrees
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def mean_interval(values: Sequence[float], *, bounds: tuple[float, float] | None = (0.0, 10.0)) -> Interval | None:
    """The mean of case means with its 95 % t-interval, cut to `bounds`; None when there is no value.

    One case has no interval: it says nothing about how much cases differ.
    """
    if not values:
        return None
    numbers = np.asarray(values, dtype=float)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return Interval(mean, None, None, 1)
    half = t_quantile(len(numbers) - 1) * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Interval(mean, low, high, len(numbers))


def paired_difference(candidate: Mapping[Any, float], baseline: Mapping[Any, float]) -> Difference | None:
    """Candidate minus baseline over the keys (cases) both have; None when they share none."""
    shared = [key for key in candidate if key in baseline]
    if not shared:
        return None
    differences = [candidate[key] - baseline[key] for key in shared]
    around = mean_interval(differences, bounds=None)
    assert around is not None  # there is at least one difference
    p_value, method = permutation_p(differences)
    changed = sum(1 for value in differences if abs(value) > _EPSILON)
    return Difference(around.mean, around.low, around.high, len(differences), changed, p_value, method)


def permutation_p(differences: Sequence[float]) -> tuple[float, Method]:
    """The two-sided p-value of the paired sign-flip test, and how it was found.

    Exact up to EXACT_CASES differences that are not zero, else DRAWS assignments from a fixed seed (the observed one
    counted in, so it is never 0), and the normal approximation for very many.
    """
    numbers = np.asarray(differences, dtype=float)
    numbers = numbers[np.abs(numbers) > _EPSILON]
    if len(numbers) == 0:
        return 1.0, "exact"
    observed = abs(float(numbers.sum())) - _EPSILON
    if len(numbers) <= EXACT_CASES:
        sums = np.zeros(1)
        for value in numbers:
            sums = np.concatenate((sums + value, sums - value))
        return float(np.mean(np.abs(sums) >= observed)), "exact"
    if len(numbers) > NORMAL_CASES:
        spread = math.sqrt(2.0 * float(np.square(numbers).sum()))
        return math.erfc(max(observed, 0.0) / spread), "normal"
    random = np.random.default_rng(SEED)
    hits = 0
    for start in range(0, DRAWS, _CHUNK):
        draws = min(_CHUNK, DRAWS - start)
        signs = random.integers(0, 2, size=(draws, len(numbers)), dtype=np.int8)
        sums = (2.0 * signs - 1.0) @ numbers
        hits += int(np.count_nonzero(np.abs(sums) >= observed))
    return (hits + 1) / (DRAWS + 1), "monte-carlo"


def describe(difference: Difference | None) -> str:
    """What a difference means, in a sentence for the person who decides about the release."""
    if difference is None:
        return gettext("The two runs share no rated case, so nothing can be said about the difference.")
    cases = difference.cases
    size = f"{abs(difference.mean):.2f}".rstrip("0").rstrip(".")
    if difference.changed == 0:
        return ngettext("No change in the one shared case.", "No change in any of %(cases)d cases.", cases) % {
            "cases": cases
        }
    if size == "0":
        return ngettext(
            "The average stayed the same over one case.", "The average stayed the same over %(cases)d cases.", cases
        ) % {"cases": cases}
    falls = difference.mean < 0
    values = {"size": size, "cases": cases, "changed": difference.changed}
    if difference.significant:
        if falls:
            return gettext("The drop of %(size)s is larger than the noise of %(cases)d cases explains.") % values
        return gettext("The gain of %(size)s is larger than the noise of %(cases)d cases explains.") % values
    if difference.changed < FEWEST_CASES:
        if falls:
            text = ngettext(
                "The drop of %(size)s rests on %(changed)d changed case, too few to tell it from noise.",
                "The drop of %(size)s rests on %(changed)d changed cases, too few to tell it from noise.",
                difference.changed,
            )
        else:
            text = ngettext(
                "The gain of %(size)s rests on %(changed)d changed case, too few to tell it from noise.",
                "The gain of %(size)s rests on %(changed)d changed cases, too few to tell it from noise.",
                difference.changed,
            )
        return text % values
    if falls:
        return gettext("The drop of %(size)s is inside the noise of %(cases)d cases.") % values
    return gettext("The gain of %(size)s is inside the noise of %(cases)d cases.") % values


def confidence(candidate: Mapping[Any, float], baseline: Mapping[Any, float] | None) -> dict[str, Any]:
    """The `confidence` field of gates and comparisons, from mean ratings by case.

    `{ "average": Interval, "baseline": Interval | null, "difference": Difference | null, "summary": text | null }`;
    `summary` is null when there is no baseline to compare with.
    """
    average = mean_interval(list(candidate.values()))
    if baseline is None:
        return {
            "average": average.as_wire() if average else None,
            "baseline": None,
            "difference": None,
            "summary": None,
        }
    before = mean_interval(list(baseline.values()))
    difference = paired_difference(candidate, baseline)
    return {
        "average": average.as_wire() if average else None,
        "baseline": before.as_wire() if before else None,
        "difference": difference.as_wire() if difference else None,
        "summary": describe(difference),
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
