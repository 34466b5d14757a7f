"""JSON in: an absent body is an empty object (clients send the content type with none), junk is a 400."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import msgspec
from django.conf import settings
from rest_framework.parsers import BaseParser

from apps.core.api.errors import APIError


class WireJSONParser(BaseParser):
    """Parses a JSON body of at most 10 MB; raises 400 for text that is not JSON and 413 for more."""

    media_type = "*/*"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """The decoded body; `{}` when there is none (source sdk evaluations/client.py:655-659)."""
        body = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(body) > settings.MAX_BODY_BYTES:
            raise APIError("Request body is larger than 10 MB", 413)
        if not body.strip():
            return {}
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise APIError("Request body is not valid JSON", 400) from None
