"""Charts as data: what a template draws, what `charts.js` reads, and the same numbers as a table.

A page builds `Chart` objects from the analytics selectors; `dashboard/_chart.html` renders a canvas with a spoken
sentence, the JSON for the module, a legend and the table behind "Show as table".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from apps.core.times import from_ms
from apps.dashboard import formats

MAX_SERIES = 5
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_WRITERS: dict[str, Callable[[float | None], str]] = {
    "count": formats.count,
    "tokens": formats.count,
    "ms": formats.duration,
    "usd": formats.usd,
    "percent": formats.percent,
}


@dataclass(frozen=True, slots=True)
class Series:
    """One line or stack of bars. `slot` is a place in the palette ("1" to "6") or a verdict ("fail", "pass", "none")."""

    label: str
    values: list[float | None]
    slot: str = "1"
    note: str = ""
    area: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart over buckets of time. `sentence` is what a screen reader hears in place of the picture.

    `drill` is the address of the traces behind the chart; a bucket opens it with its own range of time.
    """

    id: str
    title: str
    sentence: str
    starts_ms: list[int]
    bucket_ms: int
    series: list[Series]
    kind: str = "bar"
    unit: str = "count"
    stacked: bool = False
    partial: bool = True
    size: str = ""
    empty: str = field(default="")
    drill: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is no value other than nothing and zero."""
        return not any(value for series in self.series for value in series.values)

    @property
    def id_data(self) -> str:
        """The id of the JSON script."""
        return f"{self.id}-data"

    @property
    def spec(self) -> dict[str, Any]:
        """The JSON object `charts.js` draws."""
        return {
            "kind": self.kind,
            "unit": self.unit,
            "stacked": self.stacked,
            "partial": self.partial,
            "links": [self.link(ms) for ms in self.starts_ms] if self.drill else [],
            "sparse": self.bucket_ms < DAY_MS < self.span_ms - 12 * HOUR_MS,
            "labels": [axis_label(ms, self.bucket_ms, self.span_ms) for ms in self.starts_ms],
            "titles": self.row_labels,
            "series": [
                {
                    "label": one.label,
                    "values": one.values,
                    "slot": one.slot,
                    "area": one.area,
                    "dashed": one.dashed,
                }
                for one in self.series
            ],
        }

    def link(self, start_ms: int) -> str:
        """The traces of one bucket."""
        joint = "&" if "?" in self.drill else "?"
        return f"{self.drill}{joint}since={start_ms}&until={start_ms + self.bucket_ms}"

    @property
    def span_ms(self) -> int:
        """How much time the chart covers."""
        return (self.starts_ms[-1] - self.starts_ms[0] + self.bucket_ms) if self.starts_ms else 0

    @property
    def row_labels(self) -> list[str]:
        """The full name of each bucket, in UTC."""
        return [bucket_label(ms, self.bucket_ms) for ms in self.starts_ms]

    @property
    def table(self) -> list[tuple[str, str, list[str]]]:
        """Rows of the table view: bucket name, its traces' address or "", and one text a series; newest first."""
        write = _WRITERS[self.unit]
        rows = [
            (
                label,
                self.link(self.starts_ms[index]) if self.drill else "",
                [write(one.values[index]) for one in self.series],
            )
            for index, label in enumerate(self.row_labels)
        ]
        return rows[::-1]


def bucket_label(ms: int, bucket_ms: int) -> str:
    """`Fri 28 Nov, 14:00` or `Fri 28 Nov` for buckets of a day."""
    moment = from_ms(ms)
    day = f"{moment:%a} {moment.day} {moment:%b}"
    return day if bucket_ms >= DAY_MS else f"{day}, {moment:%H:%M}"


def axis_label(ms: int, bucket_ms: int, span_ms: int) -> str:
    """The short form on the axis: a clock time within a day or so, else the day."""
    moment = from_ms(ms)
    if span_ms <= 36 * HOUR_MS:
        return f"{moment:%H:%M}"
    if span_ms <= 8 * DAY_MS:
        # Several buckets a day: only the first of a day carries a label.
        return "" if ms % DAY_MS else f"{moment:%a} {moment.day}"
    return f"{moment.day} {moment:%b}"


def top_series(
    per_bucket: Sequence[dict[str, float]], totals: dict[str, float], *, note: Callable[[float], str]
) -> list[Series]:
    """At most five series by size and the rest as one, each with its total as a note."""
    ranked = sorted((name for name, total in totals.items() if total), key=lambda name: (-totals[name], name))
    named = ranked if len(ranked) <= MAX_SERIES + 1 else ranked[:MAX_SERIES]
    rest = ranked[len(named) :]
    series = [
        Series(
            label=name,
            values=[bucket.get(name, 0) for bucket in per_bucket],
            slot=str(index + 1),
            note=note(totals[name]),
        )
        for index, name in enumerate(named)
    ]
    if rest:
        series.append(
            Series(
                label=_("%(n)d more") % {"n": len(rest)},
                values=[sum(bucket.get(name, 0) for name in rest) for bucket in per_bucket],
                slot="6",
                note=note(sum(totals[name] for name in rest)),
            )
        )
    return series
