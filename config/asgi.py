"""The router of the one server process: who answers a request, and what holds for every request.

Raw ASGI callables answer where speed or long connections matter (ingest, OTLP, /health, /metrics, server-sent
events); everything else is Django as WSGI in a bounded pool of permanent threads. What Django's middleware would do
for all of them alike happens here, once: request id, rate limit and its headers, the size of bodies, the shape of an
error nobody caught, the end of everything at shutdown.

    from the URL table: POST /api/v1/ingest/traces, POST /api/v1/otel/v1/traces, /health, /metrics, /live/traces -> here
    all others -> config/urls.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable

import django
from django.apps import apps as django_apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if not django_apps.ready:
    django.setup()

from django.conf import settings

from apps.core import ratelimit
from apps.core.asgi import BodyRefused, ClientGone, Receive, Scope, Send, json_error, read_plain_body, send_json
from apps.core.ids import new_id
from apps.core.logs import request_id
from apps.operations import http as operations
from apps.tracing.ingest.http import traces
from apps.tracing.otlp.http import receiver
from config.background import Background
from config.bridge import Bridge, Message
from config.live import LiveTraces
from config.wsgi import application as django_wsgi

logger = logging.getLogger("agentx.http")

App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Threads that run Django. Each holds one database connection for as long as the process lives.
WEB_THREADS = 8
# Threads of their own for requests that wait for models, so that a batch being judged for minutes keeps no page waiting.
JUDGING_THREADS = 16
_JUDGING = re.compile(
    r"/compare/judge|/runs/[^/]+/analyze"
    r"|/api/v1/(?:custom-agent-evaluations/runs(?:/[^/]+/(?:results|finalize|analyze))?"
    r"|evaluate/(?:analyze/.+|runs/pairwise|synthesize-cases|datasets/suggest-expected)"
    r"|custom-agent-evaluations/datasets/suggest-expected"
    r"|ingest/(?:traces/[^/]+/evaluate|ci-runs/[^/]+/results))"
)
# How much of a refused body is taken in before its connection is cut.
DISCARD_SECONDS = 10.0
DISCARD_BYTES = 256 * 1024 * 1024
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class Router:
    """The ASGI application; one instance a process."""

    def __init__(self) -> None:
        self._bridge = Bridge(django_wsgi, workers=WEB_THREADS)
        self._judging = Bridge(django_wsgi, workers=JUDGING_THREADS)
        self._background: Background | None = None
        self._live = LiveTraces()
        self._raw = self._routes()

    def _routes(self) -> dict[tuple[str, str], App]:
        """The raw doors, by method and path."""
        return {
            ("GET", "/health"): operations.health,
            ("HEAD", "/health"): operations.health,
            ("GET", "/metrics"): operations.metrics,
            ("GET", "/live/traces"): self._live,
            ("POST", "/api/v1/ingest/traces"): traces,
            ("POST", "/api/v1/otel/v1/traces"): receiver,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one scope of the ASGI server."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
        elif kind == "lifespan":
            await self._lifespan(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        given, forwarded = _headers(scope)
        identity = given or new_id()
        request_id.set(identity)
        extra = [(b"x-request-id", identity.encode())]
        surface = ratelimit.surface_of(path)
        allowed = True
        if surface is not None:
            client = scope.get("client")
            peer = ratelimit.client_ip(client[0] if client else "", forwarded)
            allowed, limits = ratelimit.hit(surface, peer)
            extra += [(name.lower().encode(), value.encode()) for name, value in limits]
        started = False
        # Whether more of the body is on its way than was read.
        unread = True
        status = 0
        begin = time.perf_counter()

        async def tracking_receive() -> Message:
            nonlocal unread
            message = await receive()
            unread = bool(message.get("more_body", False))
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                if message["status"] == 413 and unread:
                    await _discard_body(receive)
                started, status = True, message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        try:
            if not allowed:
                await send_json(send_with_headers, 429, ratelimit.REFUSAL)
            else:
                raw = self._raw.get((scope["method"], path))
                if raw is not None:
                    await raw(scope, tracking_receive, send_with_headers)
                else:
                    await self._django(scope, tracking_receive, send_with_headers)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The last line of defence for the raw doors; Django's own errors were answered by Django.
            logger.exception("unhandled error", extra={"method": scope["method"], "path": path})
            if not started:
                await json_error(send_with_headers, 500, "Internal server error")
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "request",
                extra={
                    "method": scope["method"],
                    "path": path,
                    "status": status,
                    "duration_ms": round((time.perf_counter() - begin) * 1000, 1),
                },
            )

    async def _django(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body on the event loop, so that a slow upload holds no thread, then let a thread answer."""
        body = b""
        if scope["method"] not in ("GET", "HEAD"):
            try:
                body = await read_plain_body(scope, receive, settings.MAX_BODY_BYTES)
            except ClientGone:
                return
            except BodyRefused as refused:
                await json_error(send, refused.status, str(refused), refused.headers)
                return
        judging = scope["method"] == "POST" and _JUDGING.fullmatch(scope["path"]) is not None
        await (self._judging if judging else self._bridge)(scope, body, receive, send)

    # -- life --------------------------------------------------------------------------------------------------------

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self._background = Background()
            await self._background.start()
        except Exception as error:
            logger.exception("the server could not start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.begin_stop()
        try:
            if self._background is not None:
                await self._background.stop()
            self._bridge.close()
            self._judging.close()
        except Exception as error:
            logger.exception("the server did not stop cleanly")
            await send({"type": "lifespan.shutdown.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    def after_start(self, *, demo: bool = False) -> None:
        """Called once the port answers: start what may be late."""
        if self._background is not None:
            self._background.after_start(demo=demo)

    def begin_stop(self) -> None:
        """Called at the first sign of the end: long connections finish now, so that the drain does not wait on them."""
        self._live.stop()
        if self._background is not None:
            self._background.begin_stop()


async def _discard_body(receive: Receive) -> None:
    """Take in and forget the rest of a body that is too large, within bounds.

    A client that is still sending would otherwise see a reset connection instead of the 413 that explains it.
    """
    size = 0
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            while size < DISCARD_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _headers(scope: Scope) -> tuple[str | None, str | None]:
    """The usable x-request-id and the X-Forwarded-For of a request."""
    identity = forwarded = None
    for name, value in scope["headers"]:
        if name == b"x-forwarded-for":
            text = value.decode("latin-1")
            forwarded = f"{forwarded},{text}" if forwarded else text
        elif name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            identity = value.decode()
    return identity, forwarded


application = Router()
