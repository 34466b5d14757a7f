"""Tags of the evaluation pages: ratings, their intervals, differences and the comparison of two texts."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from apps.dashboard import formats, textdiff

register = template.Library()


@register.filter
def rating(value: float | None) -> str:
    """A rating on the 0-10 scale: `7.6`, `8.0`; the dash when there is none."""
    if value is None or not formats.is_number(value):
        return formats.NONE
    return formats.plain(value, 2 if round(value, 1) != round(value, 2) else 1)


@register.filter
def signed(value: float | None) -> str:
    """A difference of ratings with its sign: `+0.3`, `−4.5`, `0.0`."""
    text = rating(value)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") else text


@register.filter
def p_value(value: float | None) -> str:
    """`p = 0.031`, `p < 0.001`."""
    if value is None or not formats.is_number(value):
        return formats.NONE
    return "p < 0.001" if value < 0.001 else f"p = {formats.plain(value, 3)}"


@register.filter
def negative(value: float) -> float:
    """The number with its sign turned."""
    return -value


def verdict_of(value: float, mark: float) -> str:
    """fail below the mark, warn up to one point above it, else pass."""
    return "fail" if value < mark else "warn" if value < min(mark + 1, 10) else "pass"


@register.simple_tag
def score(value: float | None, mark: float = 5.0, size: str = "") -> SafeString:
    """A rating with its bar and the mark it is held against; the dash when nothing was rated."""
    if value is None or not formats.is_number(value):
        return format_html('<span class="faint">{}</span>', formats.NONE)
    share = max(0.0, min(float(value), 10.0)) * 10
    label = _("%(value)s of 10, mark %(mark)s") % {"value": rating(value), "mark": rating(mark)}
    return format_html(
        '<span class="score" data-v="{}"{}><b>{}</b><svg role="img" aria-label="{}">'
        '<rect class="track" y="25%" width="100%" height="50%" rx="2"/>'
        '<rect class="fill" y="25%" width="{}%" height="50%" rx="2"/>'
        '<rect class="at" x="{}%" y="0" width="1.5" height="100%"/></svg></span>',
        verdict_of(value, mark),
        format_html(' data-size="{}"', size) if size else "",
        rating(value),
        label,
        f"{share:.1f}",
        f"{max(0.0, min(mark, 10.0)) * 10:.1f}",
    )


@register.simple_tag
def interval(value: Any, series: str = "1", low: float = 0.0, high: float = 10.0, zero: str = "") -> SafeString:
    """A mean with its 95 % interval on a scale; `value` is an interval as the wire has it, `zero` draws a line at 0."""
    if not value:
        return mark_safe("")
    mean = value["mean"]
    span = (high - low) or 1.0

    def at(number: float) -> str:
        return f"{max(0.0, min((number - low) / span, 1.0)) * 100:.1f}%"

    known = value["low"] is not None and value["high"] is not None
    label = (
        _("%(mean)s, 95 %% interval %(low)s to %(high)s")
        % {"mean": rating(mean), "low": rating(value["low"]), "high": rating(value["high"])}
        if known
        else rating(mean)
    )
    whisker = (
        format_html('<line class="whisker" x1="{}" x2="{}" y1="50%" y2="50%"/>', at(value["low"]), at(value["high"]))
        if known
        else ""
    )
    line = format_html('<line class="zero" x1="{0}" x2="{0}" y1="0" y2="100%"/>', at(0)) if zero else ""
    return format_html(
        '<svg class="interval plot" role="img" aria-label="{}"><line class="axis" x1="0" x2="100%" y1="50%" y2="50%"/>{}'
        '<g data-s="{}">{}<circle class="mean" cx="{}" cy="50%" r="5"/></g></svg>',
        label,
        line,
        series,
        whisker,
        at(mean),
    )


@register.simple_tag
def delta_bar(value: float | None, most: float = 10.0) -> SafeString:
    """A difference drawn from the middle: to the left when it fell."""
    if value is None:
        return mark_safe("")
    share = min(abs(value) / (most or 10.0), 1.0) * 50
    x = 50 - share if value < 0 else 50
    return format_html(
        '<svg class="delta-bar plot" aria-hidden="true"><line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>'
        '<g data-v="{}"><rect class="bar" x="{}%" width="{}%" y="25%" height="50%" rx="1"/></g></svg>',
        "none" if abs(value) < 1e-9 else "fail" if value < 0 else "pass",
        f"{x:.1f}",
        f"{share:.1f}",
    )


@register.simple_tag
def text_diff(expected: str, actual: str) -> SafeString:
    """Expected and actual as one column of lines; empty when they are too long to compare."""
    lines = textdiff.compare(expected, actual)
    if lines is None:
        return mark_safe("")
    return format_html(
        '<div class="diff" data-prose role="group" aria-label="{}">{}</div>',
        _("Expected and actual answer, line by line"),
        format_html_join("", "{}", ((_line(line),) for line in lines)),
    )


_SIGNS = {"same": " ", "del": "−", "add": "+"}


def _line(line: textdiff.Line) -> SafeString:
    words = {"same": "", "del": _("expected"), "add": _("actual")}[line.kind]
    tag = {"del": "del", "add": "ins"}.get(line.kind, "")
    text = format_html_join(
        "",
        "{}",
        (
            (
                format_html(f"<{tag}>{{}}</{tag}>", piece.text)
                if piece.marked and tag
                else format_html("{}", piece.text),
            )
            for piece in line.pieces
        ),
    )
    return format_html(
        '<div class="{}"><span>{}</span><span aria-hidden="true">{}</span><span>{}{}</span></div>',
        line.kind,
        line.number,
        _SIGNS[line.kind],
        format_html('<span class="vh">{}: </span>', words) if words else "",
        text,
    )
