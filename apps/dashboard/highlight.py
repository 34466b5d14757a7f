"""Colours for the snippets of the guides: keywords, strings, numbers and comments. Not a parser, and only for our own texts."""

from __future__ import annotations

import re

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

_PYTHON = re.compile(
    r"(?P<c>\#[^\n]*)"
    r"|(?P<s>[rbf]?\"[^\"\n]*\"|[rbf]?'[^'\n]*')"
    r"|(?P<k>\b(?:from|import|with|as|def|return|async|await|for|in|if|else|class|print)\b|@[\w.]+)"
    r"|(?P<a>\b(?:True|False|None)\b)"
    r"|(?P<n>\b\d+(?:\.\d+)?\b)"
)
_SHELL = re.compile(
    r"(?P<c>(?:^|(?<=\s))\#[^\n]*)"
    r"|(?P<s>\"[^\"\n]*\")"
    r"|(?P<k>(?m:^)(?:export|pip install|curl)\b|(?<=\s)-[A-Za-z]\b)"
    r"|(?P<a>(?<=export )\w+)"
)


def highlight(code: str, language: str = "python") -> SafeString:
    """The code, escaped, with `<span class="k|s|n|a|c">` around what deserves a colour."""
    pattern = _SHELL if language == "sh" else _PYTHON
    parts: list[str] = []
    last = 0
    for match in pattern.finditer(code):
        parts.append(conditional_escape(code[last : match.start()]))
        parts.append(format_html('<span class="{}">{}</span>', match.lastgroup, match.group()))
        last = match.end()
    parts.append(conditional_escape(code[last:]))
    return mark_safe("".join(parts))
