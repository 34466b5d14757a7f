"""Stored JSON as coloured, foldable HTML, bounded whatever was stored.

A payload may be tens of megabytes, thousands of levels deep or no JSON at all; what a page shows is cut to a budget and
says so. Everything that came from outside is escaped here.
"""

from __future__ import annotations

import json
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MAX_NODES = 1_500
MAX_DEPTH = 24
MAX_STRING = 4_000
# Text longer than this is not even parsed for a page; the whole of it can be downloaded.
MAX_PARSE = 2_000_000
_OPEN_DEPTH = 3


def readable_size(chars: int) -> str:
    """`812 B`, `1.2 kB`, `8.4 MB` (characters counted as bytes)."""
    if chars < 1000:
        return f"{chars} B"
    if chars < 1_000_000:
        return f"{chars / 1000:.1f} kB" if chars < 100_000 else f"{chars / 1000:.0f} kB"
    return f"{chars / 1_000_000:.1f} MB"


def parse(text: str | None) -> Any:
    """The value of stored JSON text; text that is no JSON, or too large to parse for a page, comes back as it is."""
    if text is None:
        return None
    if len(text) > MAX_PARSE:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def cut(text: str, limit: int = MAX_STRING) -> tuple[str, int]:
    """Text cut to the limit, and how many characters were left out. Inlined media shrink to their description."""
    if text.startswith("data:") and len(text) > 200:
        head = text[:80].split(",", 1)[0]
        return f"{head},…", len(text) - len(head)
    if len(text) <= limit:
        return text, 0
    return text[:limit], len(text) - limit


class _Writer:
    def __init__(self) -> None:
        self.out: list[str] = []
        self.nodes = 0

    def string(self, text: str) -> None:
        shown, left = cut(text)
        self.out.append(f'<span class="s">{escape(json.dumps(shown, ensure_ascii=False))}</span>')
        if left:
            self.out.append(f'<span class="c"> … {escape(readable_size(left))} {escape(_("more"))}</span>')

    def value(self, value: Any, depth: int, *, more: bool = False) -> None:
        """One value; `more` says that a comma follows it."""
        self.nodes += 1
        if isinstance(value, dict | list):
            self.container(value, depth, more)
            return
        if value is None or value is True or value is False:
            self.out.append(f'<span class="a">{json.dumps(value)}</span>')
        elif isinstance(value, str):
            self.string(value)
        else:
            self.out.append(f'<span class="n">{escape(json.dumps(value))}</span>')
        if more:
            self.out.append(",")

    def container(self, value: dict[str, Any] | list[Any], depth: int, more: bool) -> None:
        is_list = isinstance(value, list)
        left, right = ("[", "]") if is_list else ("{", "}")
        if not value:
            self.out.append(left + right + ("," if more else ""))
            return
        if depth >= MAX_DEPTH:
            self.out.append(
                f'{left}<span class="c"> … {escape(_("nested deeper"))} </span>{right}{"," if more else ""}'
            )
            return
        fold = depth > 0 and (len(value) > 3 or depth >= _OPEN_DEPTH)
        if fold:
            words = (
                ngettext("%(n)d item", "%(n)d items", len(value))
                if is_list
                else ngettext("%(n)d key", "%(n)d keys", len(value))
            ) % {"n": len(value)}
            is_open = " open" if depth < _OPEN_DEPTH and len(value) <= 30 else ""
            shut = f'<span class="shut">{right}{"," if more else ""}</span>'
            self.out.append(
                f'<details{is_open}><summary>{left}<span class="c"> {escape(words)} </span>{shut}</summary>'
            )
        else:
            self.out.append(left)
        pad = "  " * (depth + 1)
        items: Any = enumerate(value) if isinstance(value, list) else value.items()
        for index, (key, item) in enumerate(items):
            if self.nodes >= MAX_NODES:
                rest = len(value) - index
                self.out.append(f'\n{pad}<span class="c">… {escape(_("%(n)d more") % {"n": rest})}</span>')
                break
            self.out.append(f"\n{pad}")
            if not is_list:
                shown, dropped = cut(str(key), 200)
                name = json.dumps(shown + ("…" if dropped else ""), ensure_ascii=False)
                self.out.append(f'<span class="k">{escape(name)}</span>: ')
            self.value(item, depth + 1, more=index < len(value) - 1)
        self.out.append(f"\n{'  ' * depth}{right}{',' if more else ''}")
        if fold:
            self.out.append("</details>")


def render(text: str | None) -> SafeString:
    """HTML of stored JSON text for a `<pre class="code">`; a JSON string shows as the text it holds."""
    if text is None or text == "":
        return mark_safe(f'<span class="c">{escape(_("nothing recorded"))}</span>')
    return render_value(parse(text))


def render_value(value: Any) -> SafeString:
    """HTML of a parsed value, see render()."""
    if isinstance(value, str):
        shown, left = cut(value, 20_000)
        more = f'<span class="c"> … {escape(readable_size(left))} {escape(_("more"))}</span>' if left else ""
        return mark_safe(escape(shown) + more)
    writer = _Writer()
    writer.value(value, 0)
    return mark_safe("".join(writer.out))
