"""Latencies as counts in logarithmic buckets: mergeable, and good for any quantile within 1 %.

A histogram is a dict {bucket number: count}. Counts are signed while they travel as contributions and never negative
in a stored aggregate. As JSON (in `Rollup.latency`) the bucket numbers are the keys, as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

_GAMMA = 1.01 / 0.99
_FACTOR = 1 / math.log(_GAMMA)
# Everything below a thousandth of a millisecond, zero included.
ZERO_BUCKET = -1000

Histogram = dict[int, int]

_decoder = msgspec.json.Decoder(dict[int, int], strict=False)


def bucket_of(milliseconds: float) -> int:
    """The number of the bucket a latency falls into."""
    if not milliseconds > 0.001:
        return ZERO_BUCKET
    return math.ceil(math.log(min(milliseconds, 1e15)) * _FACTOR)


def value_of(bucket: int) -> float:
    """The latency in milliseconds that stands for a bucket, at most 1 % off any value in it."""
    if bucket <= ZERO_BUCKET:
        return 0.0
    return 2 * _GAMMA**bucket / (_GAMMA + 1)


def merge(target: Histogram, other: Mapping[int, int]) -> Histogram:
    """Add `other` into `target` (which is returned); buckets whose count reaches zero disappear."""
    for bucket, count in other.items():
        total = target.get(bucket, 0) + count
        if total:
            target[bucket] = total
        else:
            target.pop(bucket, None)
    return target


def merged(histograms: Iterable[Mapping[int, int]]) -> Histogram:
    """The sum of several histograms."""
    total: Histogram = {}
    for histogram in histograms:
        merge(total, histogram)
    return total


def quantile(histogram: Mapping[int, int], q: float) -> float | None:
    """The latency in milliseconds below which the share `q` (0..1) of the values lies; None without values."""
    total = sum(count for count in histogram.values() if count > 0)
    if total <= 0:
        return None
    rank = q * (total - 1)
    seen = 0
    for bucket in sorted(histogram):
        count = histogram[bucket]
        if count <= 0:
            continue
        seen += count
        if seen > rank:
            return value_of(bucket)
    return value_of(max(histogram))


def to_json(histogram: Mapping[int, int]) -> str:
    """The stored form: a JSON object with buckets in ascending order."""
    return msgspec.json.encode({str(bucket): histogram[bucket] for bucket in sorted(histogram)}).decode()


def from_json(text: str | bytes) -> Histogram:
    """The histogram of a stored form."""
    return _decoder.decode(text)
