"""Template filters and tags for figures: numbers, durations, money, times, deltas and sparklines."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from apps.core.times import to_ms
from apps.dashboard import formats
from apps.dashboard.sparks import bars, line

register = template.Library()

register.filter("count", formats.count)
register.filter("compact", formats.compact)
register.filter("percent", formats.percent)
register.filter("duration", formats.duration)
register.filter("usd", formats.usd)
register.filter("price", formats.price)
register.filter("clock", formats.clock)
register.filter("day", formats.day)


def _with_small_unit(parts: tuple[str, str]) -> SafeString:
    number, unit = parts
    return format_html("{}<small>\u00a0{}</small>", number, unit) if unit else format_html("{}", number)


@register.filter
def percent_figure(rate: float | None) -> SafeString:
    """A share as a key figure: the number, then its unit in small type."""
    return _with_small_unit(formats.percent_parts(rate))


@register.filter
def duration_figure(ms: float | None) -> SafeString:
    """Milliseconds as a key figure."""
    return _with_small_unit(formats.duration_parts(ms))


@register.simple_tag
def moment(value: int | datetime | None, form: str = "ago") -> SafeString:
    """A `<time>`: relative under a day (`form="ago"`) or the clock time (`form="clock"`), with the exact time in its title."""
    if value is None:
        return format_html("{}", formats.NONE)
    ms = to_ms(value) if isinstance(value, datetime) else int(value)
    text = formats.ago(ms) if form == "ago" else formats.clock(ms)
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', formats.iso(ms), formats.clock(ms), text)


@register.simple_tag
def delta(value: float | None, kind: str = "points", better: str = "") -> SafeString:
    """The change against the window before: arrow for the direction, colour for good or bad.

    `kind`: points (shares), share (relative change), duration (ms) or usd. `better`: up, down or "" (no judgement).
    """
    if value is None or not formats.is_number(value):
        return mark_safe("")
    texts: dict[str, Any] = {
        "points": formats.points,
        "share": lambda v: formats.percent(abs(v)),
        "duration": lambda v: formats.duration(abs(v)),
        "usd": lambda v: formats.usd(abs(v)),
    }
    text = texts[kind](value)
    flat = (abs(value) * 1000 < 0.5) if kind in ("points", "share") else value == 0
    if flat:
        return format_html('<span class="delta" title="{}">{}</span>', _("No change"), _("no change"))
    direction = "up" if value > 0 else "down"
    verdict = "" if not better else ("pass" if direction == better else "fail")
    words = _("up by %(value)s") if value > 0 else _("down by %(value)s")
    arrow = "M8 12.5V4m0 0L4.5 7.5M8 4l3.5 3.5" if value > 0 else "M8 3.5V12m0 0l3.5-3.5M8 12L4.5 8.5"
    return format_html(
        '<span class="delta"{}><svg class="icon" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5"'
        ' stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="{}"/></svg>'
        '<span class="vh">{}</span><span aria-hidden="true">{}</span></span>',
        format_html(' data-v="{}"', verdict) if verdict else "",
        arrow,
        words % {"value": text},
        text,
    )


@register.simple_tag
def spark(values: list[float | None], form: str = "line", verdict: str = "") -> SafeString:
    """A decorative sparkline of the values (gaps stay gaps); the figures beside it carry the meaning."""
    return bars(values, verdict=verdict) if form == "bars" else line(values)


@register.filter
def middle(text: object, length: int = 24) -> str:
    """An id cut in its middle when longer than `length`."""
    full = str(text)
    if len(full) <= length:
        return full
    head = (length - 1) * 2 // 3
    return f"{full[:head]}…{full[-(length - 1 - head) :]}"


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: object) -> str:
    """The current query string with these parameters set (an empty or None value drops one); always starts with `?`.

    Paging parameters (`cursor`, `page`) go with every change, because they belong to the list as it was.
    """
    params = context["request"].GET.copy()
    for name in ("cursor", "page"):
        if name not in changes:
            params.pop(name, None)
    for name, value in changes.items():
        if value in ("", None):
            params.pop(name, None)
        else:
            params[name] = str(value)
    return f"?{params.urlencode()}"
