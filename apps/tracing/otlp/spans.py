"""What both OTLP encodings are read into before mapping, and the reasons a span can be refused for."""

from __future__ import annotations

import math
from typing import Any

import msgspec


class Undecodable(ValueError):
    """The whole request body cannot be read; the text is fit for the answer."""


class OtelEvent(msgspec.Struct, gc=False):
    """A span event: nanoseconds since 1970, its name and attributes."""

    time_ns: int
    name: str
    attributes: dict[str, Any]


class OtelSource(msgspec.Struct):
    """The resource and instrumentation scope a span came under; `label` caches the platform label they give."""

    resource: dict[str, Any]
    scope_name: str
    scope_version: str
    label: str | None = None


class OtelSpan(msgspec.Struct, gc=False):
    """One OTLP span with lowercase hex ids, plain Python attribute values and times in nanoseconds (0: absent)."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    failed: bool
    settled_ok: bool
    status_message: str
    events: list[OtelEvent]
    links: list[dict[str, Any]]
    source: OtelSource


class Decoded(msgspec.Struct, gc=False):
    """The spans of one request that can be used, and one text for each that cannot."""

    spans: list[OtelSpan]
    rejected: list[str]


# OTLP status codes.
STATUS_OK = 1
STATUS_ERROR = 2
MAX_ID_CHARS = 128


def reason_to_reject(trace_id: str, span_id: str, parent_id: str | None, name: str, start_ns: int) -> str | None:
    """Why a span cannot become a row, None when it can. A blank name is only a root's fault (source 1:1719)."""
    label = f" '{name[:100]}'" if name else ""
    if not span_id:
        return f"span{label} has no valid spanId"
    if not trace_id:
        return f"span{label} has no valid traceId"
    if not name.strip() and (parent_id is None or not start_ns):
        return f"span {span_id} has no name"
    return None


def finite(value: Any) -> float | None:
    """A number, or text that is one, as a finite float or int; None for everything else."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value
