"""The API speaks JSON whatever `Accept` or `?format=` say: a browser's address bar gets JSON too, never a 406."""

from __future__ import annotations

from collections.abc import Iterable

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class AlwaysFirst(BaseContentNegotiation):
    """Picks the first parser and renderer of the view."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """The view's only parser."""
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The view's only renderer with its media type."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
