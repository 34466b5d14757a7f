"""The project key on raw ASGI doors: the cache answers at once, a miss is looked up in a thread."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError, connection

from apps.core.asgi import Scope, header
from apps.projects.models import Project
from apps.projects.services.keys import cached_project, project_for_key

logger = logging.getLogger(__name__)

_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="key-lookup")
_running: dict[str, asyncio.Future[Project | None]] = {}


class KeyUnavailable(Exception):
    """The key could not be looked up because the database is away."""


async def project_of_key(scope: Scope) -> Project | None:
    """The project that the request's `x-api-key` opens, or None. Raises KeyUnavailable."""
    raw = header(scope, b"x-api-key")
    if not raw:
        return None
    return await project_by_key(raw.decode("latin-1"))


async def project_by_key(key: str) -> Project | None:
    """The project a key opens, or None. Raises KeyUnavailable."""
    known, project = cached_project(key)
    if known:
        return project
    # Requests that miss together share one look-up.
    running = _running.get(key)
    if running is None:
        loop = asyncio.get_running_loop()
        running = _running[key] = asyncio.ensure_future(loop.run_in_executor(_threads, _look_up, key))
        running.add_done_callback(lambda _: _running.pop(key, None))
    try:
        return await asyncio.shield(running)
    except DatabaseError:
        raise KeyUnavailable from None


def _look_up(key: str) -> Project | None:
    try:
        return project_for_key(key)
    except DatabaseError:
        # A connection that died with the server is replaced once.
        logger.warning("looking up a key failed; trying again on a fresh connection")
        connection.close()
        return project_for_key(key)
