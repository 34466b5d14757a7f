"""Tags and filters of the pages: icons, glyphs, and numbers as people read them. Registered as builtins.

No value is an en dash, never 0, 100 % or $0; a minus is U+2212; the unit stands in the cell.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import lucide
from django import template
from django.http import QueryDict
from django.utils import formats
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from lucide.templatetags.lucide import lucide as lucide_tag

from apps.core.times import from_ms, now_ms, to_iso, to_ms
from apps.dashboard import jsonview

register = template.Library()

NOTHING = "–"
KINDS = {
    "agent": ("bot", gettext_lazy("Agent")),
    "chain": ("list-tree", gettext_lazy("Chain")),
    "llm": ("sparkle", gettext_lazy("LLM")),
    "prompt": ("terminal", gettext_lazy("Prompt")),
    "tool": ("wrench", gettext_lazy("Tool")),
    "retrieval": ("search", gettext_lazy("Retrieval")),
    "embedding": ("grid-3x3", gettext_lazy("Embedding")),
    "reranker": ("arrow-up-narrow-wide", gettext_lazy("Reranker")),
    "memory": ("database", gettext_lazy("Memory")),
    "guardrail": ("shield", gettext_lazy("Guardrail")),
    "evaluator": ("scale", gettext_lazy("Evaluator")),
}
# Our own filled shapes: a verdict reads without its colour.
GLYPHS = {
    "pass": "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zm3.3 4-1-.9-3.1 3.6L5.6 6.7l-.9 1 2.6 2.5z",
    "fail": "M8 .8 15.2 8 8 15.2.8 8zM5.9 5 5 5.9 7.1 8 5 10.1l.9.9L8 8.9l2.1 2.1.9-.9L8.9 8 11 5.9 10.1 5 8 7.1z",
    "warn": "M8 1.5 15.3 14H.7zM7.3 6v4h1.4V6zm0 5.2v1.4h1.4v-1.4z",
    "info": "M3 2h10a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1zm4.3 5v4.5h1.4V7zm0-2.5v1.4h1.4V4.5z",
    "none": "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
    "tie": "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM4.5 5.8v1.3h7V5.8zm0 3.1v1.3h7V8.9z",
}


# ---- Shapes -----------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _icon(name: str) -> str:
    return lucide_tag(name, size=None, **{"class": "icon", "aria_hidden": "true"})


@register.simple_tag
def icon(name: str) -> SafeString:
    """A lucide icon in the size and stroke of `.icon`; decoration only, its control carries the name."""
    try:
        return mark_safe(_icon(str(name) + ""))
    except lucide.IconDoesNotExist:
        return mark_safe(_icon("circle"))


@register.simple_tag
def glyph(verdict: str, label: str = "") -> SafeString:
    """A verdict's shape. With a label it is an image with that name, without one it is decoration."""
    path = GLYPHS.get(verdict, GLYPHS["none"])
    if label:
        return format_html(
            '<svg class="glyph" viewBox="0 0 16 16" data-v="{}" role="img" aria-label="{}">'
            '<path fill-rule="evenodd" d="{}"/></svg>',
            verdict,
            label,
            path,
        )
    return format_html(
        '<svg class="glyph" viewBox="0 0 16 16" data-v="{}" aria-hidden="true"><path fill-rule="evenodd" d="{}"/></svg>',
        verdict,
        path,
    )


@register.filter
def kind_label(kind: str) -> str:
    """The word for a span kind."""
    return str(KINDS[kind][1]) if kind in KINDS else (kind or str(_("Span")))


@register.filter
def kind_icon(kind: str) -> SafeString:
    """The icon of a span kind."""
    return mark_safe(_icon(KINDS[kind][0] if kind in KINDS else "circle-dashed"))


@register.simple_tag
def kind_tile(kind: str) -> SafeString:
    """The coloured tile of a span kind with its word for readers who see no colour."""
    return format_html(
        '<span class="kind" data-kind="{}">{}<span class="vh">{}</span></span>', kind, kind_icon(kind), kind_label(kind)
    )


# ---- Numbers ----------------------------------------------------------------------------------------------------------------


def _fixed(value: float, places: int) -> str:
    text = formats.number_format(round(abs(value), places), decimal_pos=places, use_l10n=True, force_grouping=True)
    return f"−{text}" if value < 0 and round(abs(value), places) else text


@register.filter
def num(value: Any) -> str:
    """`11,284`; fractions keep at most two places."""
    if value is None or value == "":
        return NOTHING
    number = float(value)
    places = next((n for n in (0, 1) if round(number, n) == round(number, 2)), 2)
    return _fixed(number, places)


@register.filter
def compact(value: Any) -> str:
    """`11.3k`, `4.2M`; below 10,000 in full."""
    if value is None or value == "":
        return NOTHING
    number = float(value)
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= limit:
            scaled = number / (1e3 if unit == "k" else limit)
            return f"{_fixed(scaled, 1 if abs(scaled) < 100 else 0)}{unit}"
    return num(value)


@register.filter
def duration(ms: Any) -> str:
    """Milliseconds as `0.4 ms`, `388 ms`, `8.42 s`, `2 min 05 s`, `3 h 12 min`."""
    if ms is None or ms == "":
        return NOTHING
    value = float(ms)
    if value < 0:
        return f"−{duration(-value)}"
    if value < 1:
        return f"{_fixed(value, 2)} ms" if value else "0 ms"
    if value < 10:
        return f"{_fixed(value, 1)} ms"
    if value < 999.5:
        return f"{_fixed(value, 0)} ms"
    if value < 59_995:
        return f"{_fixed(value / 1000, 2)} s"
    seconds = round(value / 1000)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
    return f"{_fixed(seconds / 86_400, 1)} d"


@register.filter
def usd(value: Any) -> str:
    """`$0.0487`: four places below one dollar, two above, more for the tiniest, so that a cost is never `$0.0000`."""
    if value is None or value == "":
        return NOTHING
    number = float(value)
    if number == 0:
        return "$0"
    size = abs(number)
    places = 2 if size >= 1 else 4 if size >= 0.001 else 6
    if size < 0.000001:
        return "<$0.000001"
    return f"{'−' if number < 0 else ''}${_fixed(size, places)}"


@register.filter
def percent(value: Any, places: int = 1) -> str:
    """A share between 0 and 1 as `3.8 %`."""
    if value is None or value == "":
        return NOTHING
    number = float(value) * 100
    return f"{_fixed(number, 0 if number in (0, 100) else places)} %"


@register.filter
def size(value: Any) -> str:
    """Characters or bytes as `812 B`, `1.2 kB`, `8.4 MB`."""
    if value is None or value == "":
        return NOTHING
    number = float(value)
    for unit in ("B", "kB", "MB"):
        if number < 1000 or unit == "MB":
            return f"{_fixed(number, 0 if unit == 'B' or number >= 100 else 1)} {unit}"
        number /= 1000
    return NOTHING


def _ms(value: Any) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return to_ms(value)
    return int(value)


@register.filter
def when(value: Any) -> SafeString | str:
    """A time: `4 min ago` under a day, then the date; the exact UTC time is in `title` and `datetime`.

    Takes milliseconds since 1970 or an aware datetime. `local-time.js` turns the title into the reader's own zone.
    """
    ms = _ms(value)
    if ms is None:
        return NOTHING
    age = now_ms() - ms
    moment = from_ms(ms)
    exact = f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d} UTC"
    if -5_000 < age < 60_000:
        shown = _("%(n)d s ago") % {"n": max(0, age // 1000)}
    elif 0 < age < 3_600_000:
        shown = _("%(n)d min ago") % {"n": age // 60_000}
    elif 0 < age < 86_400_000:
        shown = _("%(n)d h ago") % {"n": age // 3_600_000}
    else:
        this_year = moment.year == from_ms(now_ms()).year
        shown = formats.date_format(moment, "j M, H:i" if this_year else "j M Y")
    return format_html('<time datetime="{}" title="{}">{}</time>', to_iso(ms), exact, shown)


@register.filter
def exact(value: Any) -> SafeString | str:
    """A time in full: `28 Nov 2026, 14:32:08.114` (UTC until the page's script shows the reader's zone)."""
    ms = _ms(value)
    if ms is None:
        return NOTHING
    moment = from_ms(ms)
    shown = f"{formats.date_format(moment, 'j M Y, H:i:s')}.{ms % 1000:03d}"
    return format_html('<time datetime="{}" data-local="full" title="{} UTC">{}</time>', to_iso(ms), shown, shown)


@register.filter
def span_of_time(ms: Any) -> str:
    """A length such as a session's in the two largest units: `3 days, 4 hours`."""
    if ms is None or ms == "":
        return NOTHING
    return timesince(from_ms(0), from_ms(int(ms)))


@register.filter
def middle(text: str, keep: int = 12) -> str:
    """An id shortened in the middle; the full one belongs into a title or a copy button."""
    text = str(text or "")
    if len(text) <= keep + 1:
        return text
    head = (keep + 1) // 2
    return f"{text[:head]}…{text[-(keep - head) :]}" if keep > head else f"{text[:head]}…"


@register.filter
def get(mapping: Any, key: Any) -> Any:
    """`mapping[key]` in a template; None when absent."""
    return mapping.get(key) if isinstance(mapping, Mapping) else None


# ---- Addresses --------------------------------------------------------------------------------------------------------------


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: Any) -> str:
    """This page's query with changes: `{% query status="error" cursor=None %}`; None or "" removes, a list repeats."""
    request = context.get("request")
    params: QueryDict = request.GET.copy() if request is not None else QueryDict(mutable=True)
    for name, value in changes.items():
        if value is None or value == "":
            params.pop(name, None)
        elif isinstance(value, list | tuple):
            params.setlist(name, [str(item) for item in value])
        else:
            params[name] = str(value)
    pairs = [(name, item) for name in params for item in params.getlist(name) if item != ""]
    return f"?{urlencode(pairs)}" if pairs else "?"


# ---- Payloads ---------------------------------------------------------------------------------------------------------------


@register.simple_tag
def json_view(text: str | None) -> SafeString:
    """Stored JSON text, coloured and foldable, for a `<pre class="code">`."""
    return jsonview.render(text)


@register.filter
def absolute(value: Any) -> Any:
    """The number without its sign."""
    return abs(value)
