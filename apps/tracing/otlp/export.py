"""What both transports do with an export request: decode, map, and say what became of it."""

from __future__ import annotations

from collections import Counter

import msgspec

from apps.tracing.ingest.records import SpanIn, Stored
from apps.tracing.otlp import jsonbody, protobuf
from apps.tracing.otlp.encoding import JSON
from apps.tracing.otlp.mapping import map_spans
from apps.tracing.otlp.spans import Undecodable

_MAX_REASONS = 10
_MAX_MESSAGE = 2000


class Prepared(msgspec.Struct):
    """The rows of a request, and a text for each span that could not become one."""

    rows: list[SpanIn]
    rejected: list[str]


def prepare(body: bytes, media_type: str) -> Prepared:
    """Decode and map an export request. Raises Undecodable when the body is broken or none of its spans is usable:
    sending it again would not help."""
    decoded = jsonbody.decode(body) if media_type == JSON else protobuf.decode(body)
    rows, broken = map_spans(decoded.spans)
    rejected = decoded.rejected + broken
    if rejected and not rows:
        raise Undecodable(f"No usable span: {_summary(rejected)}")
    return Prepared(rows, rejected)


def verdict(prepared: Prepared, stored: list[Stored]) -> tuple[int, str]:
    """How many spans were rejected and why, for partialSuccess; (0, "") when all were taken."""
    refused = [
        f"span {row.span_id}: {result.refused}"
        for row, result in zip(prepared.rows, stored, strict=True)
        if result.refused
    ]
    rejected = prepared.rejected + refused
    return len(rejected), _summary(rejected)


def encode_response(media_type: str, rejected: int, message: str) -> bytes:
    """ExportTraceServiceResponse in the request's encoding."""
    encode = jsonbody.encode_response if media_type == JSON else protobuf.encode_response
    return encode(rejected, message)


def _summary(reasons: list[str]) -> str:
    counts = Counter(reasons)
    texts = [
        reason if count == 1 else f"{reason} ({count} times)" for reason, count in counts.most_common(_MAX_REASONS)
    ]
    if len(counts) > _MAX_REASONS:
        texts.append(f"and {len(counts) - _MAX_REASONS} more")
    return "; ".join(texts)[:_MAX_MESSAGE]
