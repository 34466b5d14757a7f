"""The two operational doors: /health says that the process answers, /metrics what it is doing. Raw ASGI."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from apps.operations.metrics import CONTENT_TYPE, render

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

_HEALTHY = b'{"status":"ok"}'


async def health(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """200 `{"status":"ok"}`, without credentials (source 1:3171-3172)."""
    await _answer(send, 200, _HEALTHY, b"application/json", head=scope["method"] == "HEAD")


async def metrics(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Prometheus text; behind `Authorization: Bearer <AGENTX_METRICS_TOKEN>` when that is set (source 1:8306-8312)."""
    token = settings.METRICS_TOKEN
    if token:
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if not hmac.compare_digest(given, b"Bearer " + token.encode()):
            await _answer(send, 401, b'{"error":"Invalid or missing metrics token"}', b"application/json")
            return
    await _answer(send, 200, render().encode(), CONTENT_TYPE)


async def _answer(send: Send, status: int, body: bytes, content_type: bytes, *, head: bool = False) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
