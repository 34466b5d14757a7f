"""Content types of OTLP/HTTP bodies."""

from __future__ import annotations

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


def media_type(content_type: str) -> str | None:
    """PROTOBUF or JSON for a Content-Type header (parameters ignored), None for any other type."""
    essence = content_type.partition(";")[0].strip().lower()
    if essence in (PROTOBUF, "application/protobuf"):
        return PROTOBUF
    return JSON if essence == JSON else None
