"""JSON out: strict (no NaN), compact, dates in the wire form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from rest_framework.renderers import BaseRenderer

from apps.core.times import datetime_to_iso


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if hasattr(value, "__iter__"):
        return list(value)
    return str(value)


def _wire(value: Any) -> Any:
    """Replace what strict JSON or the wire form cannot carry: NaN and infinities become null, datetimes text."""
    if isinstance(value, datetime):
        return datetime_to_iso(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_wire(item) for item in value]
    return value


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook, decimal_format="number")


class WireJSONRenderer(BaseRenderer):
    """Renders a response body; `msgspec.Raw` members (payloads kept as the bytes that came) pass through untouched."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """UTF-8 JSON, or nothing at all for an answer without a body (204)."""
        if data is None:
            return b""
        return _encoder.encode(_wire(data))
