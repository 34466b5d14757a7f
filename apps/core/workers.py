"""Threads for work that waits: as many as there is work for, up to a bound, each gone a while after its last task.

Judging waits for model providers, so it must not hold the few threads that answer requests one by one. A thread keeps
its database connection between tasks and closes it when it ends. Inside a transaction (tests that roll back) the
work runs at once in the calling thread, because another connection could not see what was not committed.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connection, connections

P = ParamSpec("P")
T = TypeVar("T")

# As many as the gateway lets call providers at once.
MAX_THREADS = 32
IDLE_SECONDS = 20.0


class Workers:
    """A pool that grows to `limit` threads and shrinks to none."""

    def __init__(self, limit: int = MAX_THREADS, idle_seconds: float = IDLE_SECONDS, name: str = "judging") -> None:
        self._name = name
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._tasks: queue.SimpleQueue[tuple[Future[object], Callable[[], object]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        # Tasks handed in and not yet finished; a thread is added while there are more of them than threads.
        self._open = 0

    @property
    def threads(self) -> int:
        """How many threads there are now."""
        return self._threads

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in one of the threads; callers bound what they hand in."""
        future: Future[T] = Future()
        context = contextvars.copy_context()
        if connection.in_atomic_block:
            _complete(future, lambda: context.run(function, *args, **kwargs))
            return future
        if self._pid != os.getpid():
            # Threads do not come along into a forked process.
            self._reset()
        with self._lock:
            self._open += 1
            grow = self._threads < min(self._open, self._limit)
            if grow:
                self._threads += 1
            # Inside the lock, so that no thread ends between the count and the task.
            self._tasks.put((future, lambda: context.run(function, *args, **kwargs)))  # type: ignore[arg-type]
        if grow:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def _work(self) -> None:
        try:
            while True:
                try:
                    future, task = self._tasks.get(timeout=self._idle_seconds)
                except queue.Empty:
                    with self._lock:
                        if not self._tasks.empty():
                            continue
                        self._threads -= 1
                    return
                if future.set_running_or_notify_cancel():
                    close_old_connections()
                    _complete(future, task)
                with self._lock:
                    self._open -= 1
        finally:
            connections.close_all()


def _complete(future: Future[T], task: Callable[[], T]) -> None:
    try:
        value = task()
    except BaseException as error:  # noqa: BLE001 - handed to whoever waits for the future
        future.set_exception(error)
    else:
        future.set_result(value)
