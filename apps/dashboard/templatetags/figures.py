"""Tags for key figures: the number with its unit in small type, the change against before, sparklines, prices."""

from __future__ import annotations

from collections.abc import Callable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.dashboard import formats
from apps.dashboard.highlight import highlight
from apps.dashboard.sparks import bars, line

register = template.Library()

register.filter("price", formats.price)

_PROVIDER_NAMES = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "openrouter": "OpenRouter",
    "custom": gettext_lazy("Custom"),
}


@register.filter
def provider_name(slug: str) -> str:
    """A provider as it writes itself."""
    return str(_PROVIDER_NAMES.get(slug, slug))


@register.filter
def ticks(text: object) -> SafeString:
    """Text with its `code` in code marks."""
    parts = str(text).split("`")
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if index % 2 else part,) for index, part in enumerate(parts))
    )


@register.simple_tag
def snippet(code: str, language: str = "python") -> SafeString:
    """A snippet with its keywords, strings and comments coloured."""
    return highlight(code, language)


_CHANGES: dict[str, Callable[[float], str]] = {
    "points": lambda value: formats.points(value),
    "share": lambda value: formats.percent(abs(value)),
    "duration": lambda value: formats.duration(abs(value)),
    "usd": lambda value: formats.usd(abs(value)),
}
_UP = "M8 12.5V4m0 0L4.5 7.5M8 4l3.5 3.5"
_DOWN = "M8 3.5V12m0 0l3.5-3.5M8 12L4.5 8.5"


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
def change(value: float | None, kind: str = "points", better: str = "") -> SafeString:
    """The change against the window before: arrow for the direction, colour for good or bad.

    `kind`: points (shares), share (relative change), duration (ms) or usd. `better`: up, down or "" (no judgement).
    """
    if value is None or not formats.is_number(value):
        return mark_safe("")
    flat = abs(value) < 0.0005 if kind in ("points", "share") else abs(value) < 1e-9
    if flat:
        return format_html('<span class="delta">{}</span>', _("no change"))
    text = _CHANGES[kind](value)
    verdict = "" if not better else ("pass" if (better == "up") == (value > 0) else "fail")
    words = _("up by %(value)s") if value > 0 else _("down by %(value)s")
    return format_html(
        '<span class="delta"{}><svg class="icon" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5"'
        ' stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="{}"/></svg>'
        '<span class="vh">{}</span><span aria-hidden="true">{}</span></span>',
        format_html(' data-v="{}"', verdict) if verdict else "",
        _UP if value > 0 else _DOWN,
        words % {"value": text},
        text,
    )


@register.simple_tag
def spark(values: list[float | None], form: str = "line", verdict: str = "") -> SafeString:
    """A decorative sparkline of the values (gaps stay gaps); the figures beside it carry the meaning."""
    return bars(values, verdict=verdict) if form == "bars" else line(values)
