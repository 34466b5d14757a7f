"""Tags and filters of the pages: icons, glyphs, and numbers as people read them. Registered as builtins.

No value is an en dash, never 0, 100 % or $0; a minus is U+2212; the unit stands in the cell.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import lucide
from django import template
from django.http import QueryDict
from django.urls import NoReverseMatch, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from lucide.templatetags.lucide import lucide as lucide_tag

from apps.core.times import from_ms, now_ms, to_iso, to_ms
from apps.dashboard import formats, jsonview
from apps.dashboard.timeline import key_of

register = template.Library()

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

register.filter("compact", formats.compact)
register.filter("percent", formats.percent)
register.filter("duration", formats.duration)
register.filter("usd", formats.usd)


@register.filter
def num(value: float | None) -> str:
    """`11,284`; fractions keep at most two places."""
    if value is None or not formats.is_number(value):
        return formats.NONE
    places = next((n for n in (0, 1) if round(value, n) == round(value, 2)), 2)
    return formats.plain(value, places)


@register.filter
def middle(text: object, keep: int = 12) -> str:
    """An id shortened in its middle; the full one belongs into a title or a copy button."""
    full = str(text or "")
    if len(full) <= keep:
        return full
    head = (keep - 1) * 2 // 3
    return f"{full[:head]}…{full[-(keep - 1 - head) :]}"


@register.filter
def size(value: int | None) -> str:
    """Characters or bytes as `812 B`, `1.2 kB`, `8.4 MB`."""
    return formats.NONE if value is None else jsonview.readable_size(value)


def _ms(value: Any) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return to_ms(value)
    return int(value)


@register.filter
def when(value: Any) -> SafeString | str:
    """A time: `4 min ago` under a day, then the date; the exact time is in `title` and `datetime`.

    Takes milliseconds since 1970 or an aware datetime. `time.js` turns the title into the reader's own zone.
    """
    ms = _ms(value)
    if ms is None:
        return formats.NONE
    age = now_ms() - ms
    moment = from_ms(ms)
    full = f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d} UTC"
    if -5_000 < age < 60_000:
        shown = _("%(n)d s ago") % {"n": max(0, age // 1000)}
    elif 0 < age < 3_600_000:
        shown = _("%(n)d min ago") % {"n": age // 60_000}
    elif 0 < age < 86_400_000:
        shown = _("%(n)d h ago") % {"n": age // 3_600_000}
    else:
        this_year = moment.year == from_ms(now_ms()).year
        shown = date_format(moment, "j M, H:i" if this_year else "j M Y")
    return format_html('<time datetime="{}" title="{}">{}</time>', to_iso(ms), full, shown)


@register.filter
def exact(value: Any) -> SafeString | str:
    """A time in full: `28 Nov 2026, 14:32:08.114` (UTC until the page's script shows the reader's zone)."""
    ms = _ms(value)
    if ms is None:
        return formats.NONE
    moment = from_ms(ms)
    shown = f"{date_format(moment, 'j M Y, H:i:s')}.{ms % 1000:03d}"
    return format_html('<time datetime="{}" data-local="full" title="{} UTC">{}</time>', to_iso(ms), shown, shown)


@register.filter
def get(mapping: Any, key: Any) -> Any:
    """`mapping[key]` in a template; None when absent."""
    return mapping.get(key) if isinstance(mapping, Mapping) else None


# ---- Addresses --------------------------------------------------------------------------------------------------------------


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: Any) -> str:
    """This page's query with changes: `{% query status="error" %}`; None or "" removes a name, a list repeats it.

    The place in the list (`cursor`, `page`, `at`) belongs to the list as it was and goes unless it is given.
    """
    request = context.get("request")
    params: QueryDict = request.GET.copy() if request is not None else QueryDict(mutable=True)
    for name in ("cursor", "page", "at"):
        if name not in changes:
            params.pop(name, None)
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


# ---- Links into parts that may not be there -------------------------------------------------------------------------------


@register.simple_tag
def session_url(session_id: str) -> str:
    """Address of a session's page; `#` while there is none. Session ids may hold any character."""
    try:
        return reverse("dashboard:session", args=[session_id])
    except NoReverseMatch:
        return "#"


@register.filter
def axis_time(ms: int, days: bool = False) -> SafeString:
    """A time under a chart: the clock over hours, the date over days."""
    moment = from_ms(ms)
    text = f"{moment.day} {moment:%b}" if days else f"{moment:%H:%M}"
    return format_html('<time datetime="{}" data-local="{}">{}</time>', to_iso(ms), "day" if days else "minute", text)


@register.inclusion_tag("dashboard/traces/guide_links.html")
def guide_links() -> dict[str, Any]:
    """Links to the guides, as far as their page exists."""
    try:
        return {"url": reverse("dashboard:guide")}
    except NoReverseMatch:
        return {"url": ""}


@register.inclusion_tag("dashboard/traces/demo_button.html", takes_context=True)
def demo_button(context: template.Context) -> dict[str, Any]:
    """The button that loads the demo project, as far as the builder is installed."""
    try:
        return {"url": reverse("dashboard:demo"), "csrf_token": context.get("csrf_token")}
    except NoReverseMatch:
        return {"url": ""}


@register.simple_tag
def agent_url(agent: Any) -> str:
    """Address of an agent's page, else of the list filtered to it."""
    try:
        return reverse("dashboard:agent", args=[agent.pk])
    except NoReverseMatch:
        return f"{reverse('dashboard:traces')}?agent={agent.pk}"


# ---- Trace page -------------------------------------------------------------------------------------------------------------


@register.simple_tag
def value_view(value: Any) -> SafeString:
    """A parsed value, coloured and foldable."""
    return jsonview.render(None) if value is None else jsonview.render_value(value)


@register.simple_tag(takes_context=True)
def kind_query(context: template.Context, chosen: list[str], kind: str) -> str:
    """This page's query with one kind switched over."""
    kinds = [item for item in chosen if item != kind] if kind in chosen else [*chosen, kind]
    return query(context, kind=kinds, span=None)


@register.filter
def node_key(node: Any) -> str:
    """The name of a tree node in addresses."""
    return key_of(node)


@register.filter
def node_name(node: Any) -> str:
    """A tree node's name."""
    return node.row.name if node.row is not None else _("Missing span")


@register.filter
def plus(value: float, more: float) -> float:
    """The sum."""
    return value + float(more)


@register.simple_tag
def graph_icon(box: Any) -> SafeString:
    """The kind's icon inside a box of the graph."""
    inner = kind_icon(box.kind)
    place = f'<svg x="{box.x + 12:.0f}" y="{box.y + 15:.0f}" width="16" height="16" '
    return mark_safe(inner.replace("<svg ", place, 1))


@register.simple_tag
def graph_failed(box: Any) -> SafeString:
    """The mark of a failed step inside a box of the graph."""
    place = f'<svg x="{box.x + 164:.0f}" y="{box.y + 6:.0f}" width="14" height="14" '
    return mark_safe(glyph("fail").replace("<svg ", place, 1))


@register.filter
def as_json(value: Any) -> str:
    """A value as JSON text, for an attribute a script reads."""
    return json.dumps(value, ensure_ascii=False)
