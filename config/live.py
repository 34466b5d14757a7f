"""GET /live/traces: server-sent events that say when traces have arrived, at most once a second.

    event: traces
    data: {"count": 3, "newest": "<id of the newest trace>"}

The project is that of the key in `x-api-key`, else that of the browser's cookie, else the default one. The stream
tells that there is news, never content; the page then asks for what it wants to show. One look a second for each
watched project, whoever and however many watch: it sees what other server processes stored, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from http.cookies import CookieError, SimpleCookie

from django.db import DatabaseError, connection

from apps.core.asgi import Receive, Scope, Send, json_error
from apps.projects.models import Project
from apps.projects.services.keys import project_for_key
from apps.tracing.live import new_roots, now_mark

logger = logging.getLogger("agentx.http")

INTERVAL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
MOST_CONNECTIONS = 200
PROJECT_COOKIE = "agentx_project"


class _Watch:
    """The watchers of one project and the task that looks for them."""

    def __init__(self) -> None:
        self.queues: set[asyncio.Queue[bytes]] = set()
        self.task: asyncio.Task[None] | None = None


class LiveTraces:
    """The ASGI application of the stream; `stop()` ends every connection."""

    def __init__(self) -> None:
        self._watches: dict[int, _Watch] = {}
        self._connections = 0
        self._stopping = asyncio.Event()
        # One thread, hence one database connection, for all looks.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="live")

    def stop(self) -> None:
        """End all streams; the browser connects again by itself, to whichever server comes back."""
        self._stopping.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until its client leaves or the server stops."""
        if self._connections >= MOST_CONNECTIONS or self._stopping.is_set():
            await json_error(send, 503, "Too many live connections", ((b"retry-after", b"5"),))
            return
        loop = asyncio.get_running_loop()
        self._connections += 1
        try:
            project_id = await loop.run_in_executor(self._pool, _project_id, *_credentials(scope))
            if project_id is None:
                await json_error(send, 401, "Invalid or missing API key")
                return
            await self._stream(project_id, receive, send)
        finally:
            self._connections -= 1

    async def _stream(self, project_id: int, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            (b"connection", b"close"),
        ]
        gone = asyncio.ensure_future(_until_gone(receive))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            # Watch first, answer then: what is stored after the client has seen the answer is told.
            async with self._watching(project_id) as queue:
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                await send({"type": "http.response.body", "body": b"retry: 2000\n\n", "more_body": True})
                while not gone.done() and not stopping.done():
                    news = asyncio.ensure_future(queue.get())
                    await asyncio.wait(
                        {news, gone, stopping}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                    if news.done():
                        body = news.result()
                    else:
                        news.cancel()
                        body = b": still here\n\n"
                    if not gone.done():
                        await send({"type": "http.response.body", "body": body, "more_body": True})
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            stopping.cancel()

    @contextlib.asynccontextmanager
    async def _watching(self, project_id: int) -> AsyncIterator[asyncio.Queue[bytes]]:
        """A queue that gets the project's news; the first watcher starts the looking, the last one ends it."""
        watch = self._watches.setdefault(project_id, _Watch())
        queue: asyncio.Queue[bytes] = asyncio.Queue(1)
        watch.queues.add(queue)
        if watch.task is None:
            watch.task = asyncio.create_task(self._look(project_id, watch, now_mark()))
        try:
            yield queue
        finally:
            watch.queues.discard(queue)
            if not watch.queues:
                watch.task.cancel()
                self._watches.pop(project_id, None)

    async def _look(self, project_id: int, watch: _Watch, mark: str) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                count, mark = await loop.run_in_executor(self._pool, _new_roots, project_id, mark)
            except DatabaseError as error:
                logger.warning("live updates are interrupted: %s", error)
                continue
            except RuntimeError:  # the pool is shut down: the server stops
                return
            if count:
                event = f"event: traces\ndata: {json.dumps({'count': count, 'newest': mark})}\n\n".encode()
                for queue in watch.queues:
                    if not queue.full():
                        queue.put_nowait(event)


def _credentials(scope: Scope) -> tuple[str | None, str | None]:
    """The key and the project's uid of a request."""
    key = uid = None
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            key = value.decode("latin-1")
        elif name == b"cookie":
            with contextlib.suppress(CookieError):
                morsel = SimpleCookie(value.decode("latin-1")).get(PROJECT_COOKIE)
                uid = morsel.value if morsel else None
    return key, uid


def _project_id(key: str | None, uid: str | None) -> int | None:
    try:
        if key is not None:
            project = project_for_key(key)
            return project.pk if project else None
        projects = Project.objects.filter(deleting=False)
        project = (projects.filter(uid=uid).first() if uid else None) or projects.filter(is_default=True).first()
        return project.pk if project else None
    except DatabaseError:
        connection.close()
        raise


def _new_roots(project_id: int, mark: str) -> tuple[int, str]:
    try:
        return new_roots(project_id, mark)
    except DatabaseError:
        connection.close()
        raise


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
