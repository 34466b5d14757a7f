"""JSON in: an absent body is an empty object (clients send the content type with none), junk is a 400."""

from __future__ import annotations

import json
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
            if b"\\ud" in body or b"\\uD" in body:
                return _with_lone_surrogates(body)
            raise APIError("Request body is not valid JSON", 400) from None


def _with_lone_surrogates(body: bytes) -> Any:
    """A body that the fast decoder refuses for half a surrogate pair, which becomes U+FFFD; 400 for other faults."""
    try:
        return _repaired(json.loads(body, parse_constant=_refuse))
    except (ValueError, RecursionError):
        raise APIError("Request body is not valid JSON", 400) from None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    return value
