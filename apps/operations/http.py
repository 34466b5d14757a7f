"""The two operational doors: /health says that the process answers, /metrics what it is doing. Raw ASGI."""

from __future__ import annotations

import hmac

from django.conf import settings

from apps.core.asgi import Receive, Scope, Send, header, json_error, send_bytes
from apps.operations.metrics import CONTENT_TYPE, render

_HEALTHY = b'{"status":"ok"}'


async def health(scope: Scope, receive: Receive, send: Send) -> None:
    """200 `{"status":"ok"}`, without credentials (source 1:3171-3172)."""
    await send_bytes(send, 200, _HEALTHY)


async def metrics(scope: Scope, receive: Receive, send: Send) -> None:
    """Prometheus text; behind `Authorization: Bearer <AGENTX_METRICS_TOKEN>` when that is set (source 1:8306-8312)."""
    token = settings.METRICS_TOKEN
    scheme, _, given = (header(scope, b"authorization") or b"").partition(b" ")
    if token and not (scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), token.encode())):
        await json_error(send, 401, "Invalid or missing metrics token")
        return
    await send_bytes(send, 200, render().encode(), CONTENT_TYPE)
