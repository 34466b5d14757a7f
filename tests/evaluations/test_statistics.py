"""Intervals and the permutation test against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from apps.evaluations import statistics

RATINGS = st.lists(st.floats(0, 10, allow_nan=False), min_size=2, max_size=40)


def test_quantiles_of_t():
    """Table and expansion against scipy."""
    for degrees in [*range(1, 200), 1_000, 10_000]:
        assert statistics.t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=1e-6)
    with pytest.raises(ValueError, match="degrees"):
        statistics.t_quantile(0)


@given(RATINGS)
def test_interval_of_a_mean(values):
    """As scipy's t-interval."""
    found = statistics.mean_interval(values, bounds=None)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    if error > 1e-9:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=error)
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-5), pytest.approx(high, abs=1e-5))


def test_small_samples_are_honest():
    """No case: nothing; one case: no interval; the scale bounds the interval."""
    assert statistics.mean_interval([]) is None
    one = statistics.mean_interval([7.0])
    assert one is not None
    assert (one.mean, one.low, one.high, one.cases) == (7.0, None, None, 1)
    two = statistics.mean_interval([1.0, 9.0])
    assert two is not None
    assert (two.low, two.high) == (0.0, 10.0)


@pytest.mark.parametrize("count", [2, 5, 8, 12])
def test_exact_permutation(count):
    """Every assignment of signs, as scipy's."""
    differences = np.random.default_rng(count).normal(0.4, 1, count)
    found, method = statistics.permutation_p(list(differences))
    oracle = stats.permutation_test(
        (differences,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert method == "exact"
    assert found == pytest.approx(oracle.pvalue)


@pytest.mark.parametrize(("count", "method"), [(60, "monte-carlo"), (3_000, "normal")])
def test_large_samples(count, method):
    """Close to the t-test, and the same on every call."""
    differences = list(np.random.default_rng(7).normal(0.05, 1, count))
    found = statistics.permutation_p(differences)
    assert found == statistics.permutation_p(differences)
    assert found[1] == method
    assert found[0] == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)


@given(RATINGS, st.randoms())
def test_p_values_are_probabilities_and_symmetric(values, random):
    """Swapping the runs changes the sign and nothing else."""
    other = [random.uniform(0, 10) for _ in values]
    a, b = dict(enumerate(values)), dict(enumerate(other))
    forth, back = statistics.paired_difference(a, b), statistics.paired_difference(b, a)
    assert forth is not None
    assert back is not None
    assert 0 < forth.p_value <= 1
    assert forth.mean == pytest.approx(-back.mean)
    assert forth.p_value == pytest.approx(back.p_value)


def test_pairs_are_the_shared_cases():
    """What only one run has takes no part."""
    found = statistics.paired_difference({0: 5, 1: 7, 9: 1}, {0: 6, 1: 7, 4: 10})
    assert found is not None
    assert (found.cases, found.changed, found.mean) == (2, 1, -0.5)
    assert statistics.paired_difference({0: 5}, {1: 5}) is None


@pytest.mark.parametrize(
    ("candidate", "baseline", "text"),
    [
        ([5] * 3 + [8] * 3 + [6] * 6, [6] * 3 + [7] * 2 + [8] + [7] * 2 + [6] * 4, "inside the noise of 12 cases"),
        ([3] * 12, [7] * 12, "The drop of 4 is larger than the noise of 12 cases explains."),
        ([8] * 12, [7] * 12, "The gain of 1 is larger than the noise of 12 cases explains."),
        ([3] * 3, [7] * 3, "The drop of 4 rests on 3 changed cases, too few to tell it from noise."),
        ([3], [7], "The drop of 4 rests on 1 changed case, too few to tell it from noise."),
        ([7] * 4, [7] * 4, "No change in any of 4 cases."),
    ],
)
def test_wording(candidate, baseline, text):
    """What a release owner reads."""
    difference = statistics.paired_difference(dict(enumerate(candidate)), dict(enumerate(baseline)))
    assert text in statistics.describe(difference)
    assert "share no rated case" in statistics.describe(None)
