"""`POST /api/v1/ingest/traces` as a raw ASGI application: one span in, one id out (source 1:1703-1855).

The router sends only POST here; reads of the same path go to Django.
"""

from __future__ import annotations

import logging

from django.conf import settings

from apps.core.asgi import (
    BodyRefused,
    ClientGone,
    Receive,
    Scope,
    Send,
    json_error,
    read_plain_body,
    send_bytes,
    send_json,
)
from apps.tracing.ingest import pipeline, wire
from apps.tracing.ingest.auth import KeyUnavailable, project_of_key
from apps.tracing.ingest.errors import (
    PROJECT_GONE,
    QUEUE_FULL,
    QUEUE_FULL_RETRY_AFTER,
    STORAGE_UNAVAILABLE,
    STORAGE_UNAVAILABLE_RETRY_AFTER,
    InvalidPayload,
    NotJSON,
    QueueFull,
    StorageUnavailable,
)

logger = logging.getLogger(__name__)


async def traces(scope: Scope, receive: Receive, send: Send) -> None:
    """Store the span in the body and answer `{traceId, trace_id, deduped}`."""
    try:
        try:
            project = await project_of_key(scope)
            if project is None:
                await json_error(send, 401, "Invalid or missing API key")
                return
            body = await read_plain_body(scope, receive, settings.MAX_BODY_BYTES)
            span = wire.decode(body)
            stored = (await pipeline.submit(project, [span]))[0]
        except ClientGone:
            return
        except BodyRefused as refused:
            await json_error(send, refused.status, str(refused), refused.headers)
        except NotJSON as error:
            await json_error(send, 400, str(error))
        except InvalidPayload as error:
            await send_json(send, 422, error.body())
        except QueueFull:
            await json_error(send, 429, QUEUE_FULL, ((b"retry-after", QUEUE_FULL_RETRY_AFTER.encode()),))
        except (StorageUnavailable, KeyUnavailable):
            await json_error(
                send, 503, STORAGE_UNAVAILABLE, ((b"retry-after", STORAGE_UNAVAILABLE_RETRY_AFTER.encode()),)
            )
        else:
            if stored.refused is not None:
                await json_error(send, 401 if stored.refused == PROJECT_GONE else 429, stored.refused)
            else:
                answer = '{"traceId":"%s","trace_id":"%s","deduped":%s}' % (  # noqa: UP031
                    stored.id,
                    stored.id,
                    "true" if stored.deduped else "false",
                )
                await send_bytes(send, 200, answer.encode())
    except Exception:
        logger.exception("ingest failed")
        await json_error(send, 500, "Internal server error")
