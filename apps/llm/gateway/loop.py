"""One event loop in a thread of its own runs all provider calls of a process, so that their connections are shared.

Callers are ordinary threads: `run` waits for a coroutine with a deadline. How many calls run at once is bounded for the
process; the rest wait inside their own deadline.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")

# Judges wait for providers, not for this process: the bound protects providers and sockets.
MAX_CONCURRENT_CALLS = 32
_GRACE_S = 5.0

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_slots: asyncio.Semaphore | None = None


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _slots
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            _slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
            threading.Thread(target=_loop.run_forever, name="model-calls", daemon=True).start()
        return _loop


def run(make: Callable[[], Coroutine[Any, Any, T]], *, timeout_s: float) -> T:
    """Run a coroutine on the shared loop within the deadline; raises TimeoutError when it passes."""
    loop = _running_loop()

    async def bounded() -> T:
        assert _slots is not None  # made together with the loop
        async with asyncio.timeout(timeout_s), _slots:
            return await make()

    future = asyncio.run_coroutine_threadsafe(bounded(), loop)
    try:
        return future.result(timeout_s + _GRACE_S)
    except FutureTimeout:
        future.cancel()
        raise TimeoutError from None
