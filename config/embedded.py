"""The embedded worker: one child process with the worker and the scheduler, kept alive, ended with its parent.

The child watches a pipe whose other end only the parent holds: however the parent ends (also by kill -9), the pipe
closes and the child goes. A child that dies is started again, ever more slowly while it keeps dying.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

logger = logging.getLogger("agentx.server")

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
# A child that lived this long was healthy: its next pause is short again.
HEALTHY_SECONDS = 60.0
# After this the child is killed; its unfinished tasks are delivered again when their leases end.
STOP_SECONDS = 6.0


class EmbeddedWorker:
    """Supervises the child from a thread of the parent."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="worker-supervisor", daemon=True)

    def start(self) -> None:
        """Start the child and keep it running."""
        self._thread.start()

    def begin_stop(self) -> None:
        """Ask the child to finish its tasks; returns at once."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.terminate()

    def stop(self) -> None:
        """Wait for the child, kill it when it takes too long."""
        self.begin_stop()
        child = self._child
        if child is not None:
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                logger.warning("the embedded worker did not stop in time and is killed; its tasks will run again")
                child.kill()
                child.wait(5)
        self._thread.join(5)

    def _supervise(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            with self._lock:
                if self._stopping.is_set():
                    return
                self._child = child = self._spawn()
            code = child.wait()
            if child.stdin is not None:
                child.stdin.close()
            if self._stopping.is_set():
                return
            pause = (
                FIRST_PAUSE_SECONDS
                if time.monotonic() - began >= HEALTHY_SECONDS
                else min(pause * 2, LONGEST_PAUSE_SECONDS)
            )
            logger.error("the embedded worker ended", extra={"exit_code": code, "restart_in_seconds": pause})
            self._stopping.wait(pause)

    @staticmethod
    def _spawn() -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C in the terminal reaches the parent only, which then ends the child in order.
        return subprocess.Popen(
            [sys.executable, "-m", "config.server", "worker", "--embedded"],
            stdin=subprocess.PIPE,
            # Two malloc arenas: threads that mostly wait do not each need one of their own.
            env={
                "MALLOC_ARENA_MAX": "2",
                **os.environ,
                "AGENTX_CHILD_PROCESS": "1",
                "PYTHONPATH": _python_path(),
            },
            start_new_session=True,
        )


def _python_path() -> str:
    """The child finds the same `config` package as its parent, installed or run from a checkout."""
    from pathlib import Path

    root = str(Path(__file__).resolve().parent.parent)
    rest = os.environ.get("PYTHONPATH")
    return f"{root}{os.pathsep}{rest}" if rest else root
