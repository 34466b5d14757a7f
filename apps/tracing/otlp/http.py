"""`POST /api/v1/otel/v1/traces`: OTLP/HTTP, protobuf and JSON, as a raw ASGI app (source 1:8640-8652).

Answers 200 in the request's encoding, with `partialSuccess` for spans that were rejected alone. Errors are the API's
`{ "error": text }`: 400 undecodable, empty or without one usable span, 401 key, 413 too large (inflated too), 415 other
content type or encoding, 429 queue full and 503 storage outage with `Retry-After` for the request as a whole.
"""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings

from apps.core.asgi import (
    BodyRefused,
    ClientGone,
    Headers,
    Receive,
    Scope,
    Send,
    json_error,
    read_plain_body,
    send_bytes,
)
from apps.tracing.ingest import pipeline
from apps.tracing.ingest.auth import KeyUnavailable, project_by_key
from apps.tracing.ingest.errors import (
    QUEUE_FULL,
    QUEUE_FULL_RETRY_AFTER,
    STORAGE_UNAVAILABLE,
    STORAGE_UNAVAILABLE_RETRY_AFTER,
    QueueFull,
    StorageUnavailable,
)
from apps.tracing.otlp import export
from apps.tracing.otlp.encoding import media_type
from apps.tracing.otlp.spans import Undecodable

logger = logging.getLogger(__name__)

# Work on bodies beyond this size goes to a thread, so that it does not hold up the requests of others.
_DECODE_INLINE_BYTES = 512 * 1024


class _Refused(Exception):
    """The answer to a request that is not taken."""

    def __init__(self, status: int, text: str, retry_after: str | None = None, headers: Headers = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = [*headers, (b"retry-after", retry_after.encode())] if retry_after else headers


async def receiver(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI app; the router sends it only POSTs of its path."""
    try:
        content_type, body = await _export(scope, receive)
    except ClientGone:
        return
    except _Refused as refused:
        await json_error(send, refused.status, refused.text, refused.headers)
        return
    await send_bytes(send, 200, body, content_type.encode())


async def _export(scope: Scope, receive: Receive) -> tuple[str, bytes]:
    """The content type and body of the answer. Raises _Refused or ClientGone."""
    key = content_type = ""
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            key = value.decode("latin-1")
        elif name == b"content-type":
            content_type = value.decode("latin-1")
    try:
        project = await project_by_key(key) if key else None
    except KeyUnavailable:
        raise _Refused(503, STORAGE_UNAVAILABLE, STORAGE_UNAVAILABLE_RETRY_AFTER) from None
    if project is None:
        raise _Refused(401, "Invalid or missing API key")
    media = media_type(content_type)
    if media is None:
        raise _Refused(415, "Unsupported Content-Type: send application/x-protobuf or application/json")
    try:
        body = await read_plain_body(scope, receive, settings.MAX_BODY_BYTES)
        if not body:
            raise _Refused(400, "Empty request body")
        if len(body) > _DECODE_INLINE_BYTES:
            prepared = await asyncio.to_thread(export.prepare, body, media)
        else:
            prepared = export.prepare(body, media)
    except BodyRefused as refused:
        raise _Refused(refused.status, str(refused), headers=refused.headers) from None
    except Undecodable as error:
        raise _Refused(400, str(error)) from None
    try:
        stored = await pipeline.submit(project, prepared.rows, door="otlp") if prepared.rows else []
    except QueueFull:
        raise _Refused(429, QUEUE_FULL, QUEUE_FULL_RETRY_AFTER) from None
    except StorageUnavailable:
        raise _Refused(503, STORAGE_UNAVAILABLE, STORAGE_UNAVAILABLE_RETRY_AFTER) from None
    rejected, message = export.verdict(prepared, stored)
    return media, export.encode_response(media, rejected, message)
