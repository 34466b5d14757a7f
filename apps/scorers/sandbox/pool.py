"""A few warm child processes that run scripts, replaced when they are killed, die, or have run often enough."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import selectors
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

# A fresh process now and then bounds what a leak in the engine could gather.
RUNS_PER_CHILD = 200
MEMORY_MOST_MB = 64
FRAME_MOST = 16 * 1024 * 1024
_ANSWER_MOST = 1024 * 1024
# The engine stops a script by CPU time itself; the clock on the wall stops what it cannot.
_GRACE_S = 0.2
_START_S = 10.0
_WAIT_S = 60.0


class SandboxError(Exception):
    """The script ended without an answer; the text says why."""

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class _Child:
    """One process; used by one thread at a time."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("_quickjs")
        if spec is None or spec.origin is None:
            raise SandboxError("the JavaScript engine (quickjs-ng) is not installed")
        keep = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
        self.runs = 0
        try:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    str(Path(__file__).with_name("child.py")),
                    str(Path(spec.origin).parent),
                    str(MEMORY_MOST_MB),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=keep,
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"the sandbox process could not be started ({error.strerror})") from None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        try:
            self.filtered = self._receive(time.monotonic() + _START_S).get("filtered") is True
        except SandboxError:
            self.end()
            raise SandboxError("the sandbox process did not start") from None

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.runs += 1
        deadline = time.monotonic() + seconds
        self._send(request["frame"], deadline)
        answer = self._receive(deadline)
        if answer.get("id") != request["id"]:
            raise SandboxError("the sandbox answered out of turn")
        return answer

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                self._wait(self._in, selectors.EVENT_WRITE, deadline)
            except OSError:
                raise SandboxError("the sandbox process ended before the script began") from None

    def _receive(self, deadline: float) -> dict[str, Any]:
        (size,) = struct.unpack(">I", self._read(4, deadline))
        if size > _ANSWER_MOST:
            raise SandboxError("the sandbox answered too much")
        answer = json.loads(self._read(size, deadline))
        if not isinstance(answer, dict):
            raise SandboxError("the sandbox answered with nonsense")
        return answer

    def _read(self, size: int, deadline: float) -> bytes:
        data = b""
        while len(data) < size:
            try:
                part = os.read(self._out, size - len(data))
            except BlockingIOError:
                self._wait(self._out, selectors.EVENT_READ, deadline)
                continue
            if not part:
                raise SandboxError("the script brought its process down (out of memory, or a fault of the engine)")
            data += part
        return data

    @staticmethod
    def _wait(descriptor: int, event: int, deadline: float) -> None:
        left = deadline - time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            if left <= 0 or not selector.select(left):
                raise SandboxError("it ran too long", timed_out=True)

    def end(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process.wait()


class Pool:
    """At most `size` children; a run waits its turn for at most a minute."""

    def __init__(self, size: int) -> None:
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[_Child] = []
        self._lock = threading.Lock()

    def run(
        self, code: str, names: dict[str, Any], absent: list[str], *, time_s: float, memory_mb: int
    ) -> dict[str, Any]:
        """The child's answer to one script; raises SandboxError when there is none."""
        identity = secrets.token_hex(8)
        request = {"id": identity, "code": code, "names": names, "absent": absent}
        body = json.dumps(request | {"time_s": time_s, "memory_mb": min(memory_mb, MEMORY_MOST_MB)}).encode()
        if len(body) > FRAME_MOST:
            raise SandboxError(f"what it is given is larger than {FRAME_MOST // 2**20} MB")
        if not self._slots.acquire(timeout=_WAIT_S):
            raise SandboxError("the sandbox is busy; try again later", timed_out=True)
        try:
            child = self._take()
            try:
                answer = child.ask({"id": identity, "frame": struct.pack(">I", len(body)) + body}, time_s + _GRACE_S)
            except SandboxError as error:
                child.end()
                if error.timed_out:
                    raise SandboxError(f"it ran longer than {time_s:g} seconds", timed_out=True) from None
                raise
            except BaseException:
                child.end()
                raise
            if child.runs >= RUNS_PER_CHILD:
                child.end()
            else:
                with self._lock:
                    self._idle.append(child)
            return answer
        finally:
            self._slots.release()

    def _take(self) -> _Child:
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                return _Child()
            if child.process.poll() is None:
                return child
            child.end()

    def filtered(self) -> bool:
        """Whether the kernel filters the children's system calls on this host."""
        if not self._slots.acquire(timeout=_WAIT_S):
            raise SandboxError("the sandbox is busy; try again later", timed_out=True)
        try:
            child = self._take()
            with self._lock:
                self._idle.append(child)
            return child.filtered
        finally:
            self._slots.release()

    def pids(self) -> list[int]:
        """The idle children's process ids."""
        with self._lock:
            return [child.process.pid for child in self._idle]

    def close(self) -> None:
        """End the idle children; those at work end when their run does."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def forget(self) -> None:
        """Drop the children without ending them: after a fork they are the parent's."""
        for child in self._idle:
            for pipe in (child.process.stdin, child.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            child.process.returncode = 0  # not ours to wait for
        self._idle = []


_pool: Pool | None = None
_making = threading.Lock()


def pool() -> Pool:
    """The process's pool, made on first use."""
    global _pool
    with _making:
        if _pool is None:
            _pool = Pool(max(4, min(8, 2 * (os.cpu_count() or 2))))
        return _pool


def _after_fork() -> None:
    global _pool, _making
    if _pool is not None:
        _pool.forget()
    _pool = None
    _making = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
