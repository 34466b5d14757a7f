"""Django as WSGI inside the ASGI server: a bounded pool of permanent threads, each with its own database connection.

a2wsgi builds the environ; the responder is ours, because a2wsgi's crosses between thread and loop three times for
each answer and leaves its thread waiting for ever when a client goes away in the middle of a stream. Here a normal
answer crosses once, and a stream ends at its next chunk when nobody reads it any more.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import logging
from collections.abc import Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from a2wsgi.wsgi import build_environ

from apps.core.asgi import Receive, Scope, Send

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]

# How long a stream waits for a client that has stopped reading.
STALLED_CLIENT_SECONDS = 60.0


def _without_nul(encoded: bytes) -> bytes:
    """URL-encoded text with every NUL as U+FFFD, which is what ingest stores for one; Postgres takes none anywhere."""
    return encoded.replace(b"%00", b"%EF%BF%BD").replace(b"\x00", b"%EF%BF%BD")


class ClientGone(ConnectionError):
    """Nobody reads the stream any more."""


class Bridge:
    """Runs a WSGI application in `workers` permanent threads."""

    def __init__(self, application: Callable[..., Iterable[bytes]], *, workers: int) -> None:
        self._application = application
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="web")

    def close(self) -> None:
        """Wait for running requests; called after the last answer is out or was given up."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answer one request whose body has been read."""
        loop = asyncio.get_running_loop()
        environ = self._environ(scope, body)
        gone = asyncio.Event()
        context = contextvars.copy_context()
        await loop.run_in_executor(self._pool, context.run, self._respond, environ, loop, receive, send, gone)

    @staticmethod
    def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
        # Bytes beyond ASCII in a query are legal to receive and must not break the request; headers with an
        # underscore would shadow the real ones in an environ (x_api_key as x-api-key).
        query = scope["query_string"]
        if not query.isascii():
            query = b"".join(b"%%%02X" % byte if byte > 127 else bytes((byte,)) for byte in query)
        headers: Headers = []
        for name, value in scope["headers"]:
            if b"_" in name or name in (b"content-length", b"transfer-encoding", b"content-encoding"):
                continue
            if name == b"cookie":
                value = value.replace(b"\\000", b"")
            elif name == b"content-type" and value.lower().startswith(b"application/x-www-form-urlencoded"):
                body = _without_nul(body)
            headers.append((name, value))
        if body:
            headers.append((b"content-length", str(len(body)).encode()))
        path = scope["path"].replace("\x00", "\ufffd")
        narrowed: Any = {**scope, "path": path, "query_string": _without_nul(query), "headers": headers}
        body_reader: Any = None
        environ: Any = build_environ(narrowed, body_reader)
        environ["wsgi.input"] = io.BytesIO(body)
        environ["wsgi.multiprocess"] = False
        return dict(environ)

    def _respond(
        self,
        environ: dict[str, Any],
        loop: asyncio.AbstractEventLoop,
        receive: Receive,
        send: Send,
        gone: asyncio.Event,
    ) -> None:
        started: list[Message] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[..., Any]:
            raw: Headers = [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in headers]
            started[:] = [{"type": "http.response.start", "status": int(status[:3]), "headers": raw}]
            return lambda _chunk: None

        answer = self._application(environ, start_response)
        try:
            if getattr(answer, "streaming", True):
                self._stream(answer, started[0], loop, receive, send, gone)
            else:
                content = b"".join(answer)
                asyncio.run_coroutine_threadsafe(_send_whole(send, started[0], content), loop).result()
        except ClientGone:
            logger.debug("the client left before the end of the stream")
        finally:
            close = getattr(answer, "close", None)
            if close is not None:
                close()

    @staticmethod
    def _stream(
        chunks: Iterable[bytes],
        start: Message,
        loop: asyncio.AbstractEventLoop,
        receive: Receive,
        send: Send,
        gone: asyncio.Event,
    ) -> None:
        def put(message: Message) -> None:
            future = asyncio.run_coroutine_threadsafe(_send(send, message), loop)
            try:
                future.result(timeout=STALLED_CLIENT_SECONDS)
            except TimeoutError:
                future.cancel()
                raise ClientGone from None
            if gone.is_set():
                raise ClientGone

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        put(start)
        watcher = asyncio.run_coroutine_threadsafe(watch(), loop)
        try:
            for chunk in chunks:
                if chunk:
                    put({"type": "http.response.body", "body": chunk, "more_body": True})
            put({"type": "http.response.body", "body": b""})
        finally:
            watcher.cancel()


async def _send(send: Send, message: Message) -> None:
    await send(message)


async def _send_whole(send: Send, start: Message, body: bytes) -> None:
    await send(start)
    await send({"type": "http.response.body", "body": body})
