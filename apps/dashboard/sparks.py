"""Server-side SVG of small charts: sparklines and bars. Geometry lives in attributes, so no inline styles are needed."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

_OPEN = '<svg class="spark" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">{}</svg>'


def line_path(values: Sequence[float | None]) -> tuple[str, tuple[float, float] | None]:
    """Path data of a line over 100 x 100 and its last point; a None breaks the line, a lone value becomes a dot."""
    known = [value for value in values if value is not None]
    if not known:
        return "", None
    low, high = min(known), max(known)
    spread = high - low
    step = 100 / max(1, len(values) - 1)
    parts: list[str] = []
    last: tuple[float, float] | None = None
    pen_down = False
    for index, value in enumerate(values):
        if value is None:
            pen_down = False
            continue
        x = round(index * step, 2)
        y = round(90 - (value - low) / spread * 80, 2) if spread else 50.0
        parts.append(f"{'L' if pen_down else 'M'}{x:g} {y:g}")
        pen_down = True
        last = (x, y)
    return "".join(parts), last


def line(values: Sequence[float | None]) -> SafeString:
    """A sparkline with its last point dotted."""
    path, last = line_path(values)
    if last is None:
        return format_html(_OPEN, "")
    dot = format_html('<path class="end" d="M{} {}h.01"/>', f"{last[0]:g}", f"{last[1]:g}")
    return format_html(_OPEN, format_html('<path class="line" d="{}"/>{}', path, dot))


def bars(values: Sequence[float | None], *, verdict: str = "") -> SafeString:
    """Small bars for a table cell; the highest is drawn in the verdict's colour."""
    known = [value or 0 for value in values]
    top = max(known, default=0)
    width = 100 / max(1, len(known))

    def bar(index: int, value: float) -> tuple[str, str, str, str, SafeString | str]:
        height = max(value / top * 100, 4) if top and value else 0
        lit = mark_safe(' data-on=""') if top and value == top else ""
        return f"{index * width:.2f}", f"{100 - height:.1f}", f"{width * 0.72:.2f}", f"{height:.1f}", lit

    inner = format_html_join(
        "",
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}"{}/>',
        (bar(index, value) for index, value in enumerate(known)),
    )
    mark = format_html(' data-v="{}"', verdict) if verdict else ""
    return format_html(
        '<svg class="spark" data-inline{} viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">{}</svg>',
        mark,
        inner,
    )
