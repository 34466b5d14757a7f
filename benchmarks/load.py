"""A closed-loop client: each sender has one request in flight and sends the next when the answer is in.

Latency is from the first byte sent to the last byte received. A refusal (429, 503) is followed by a short pause, a
lost connection by a new one; both are counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httptools
import uvloop

REFUSAL_PAUSE_SECONDS = 0.05
GRACE_SECONDS = 30.0
# A run is bounded, whatever is asked for.
MAX_SECONDS = 120.0


@dataclass(slots=True)
class Outcome:
    """What a load saw: latencies of good answers in seconds, answers by status, and how long it took."""

    latencies: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def quantile_ms(self, q: float) -> float | None:
        """The latency in ms at this share of good answers."""
        if not self.latencies:
            return None
        ordered = sorted(self.latencies)
        return round(ordered[min(len(ordered) - 1, int(q * len(ordered)))] * 1000, 2)

    def summary(self) -> dict[str, Any]:
        """The JSON of a report."""
        good = len(self.latencies)
        return {
            "requests": good,
            "requestsPerSecond": round(good / self.seconds, 1) if self.seconds else 0,
            "p50Ms": self.quantile_ms(0.5),
            "p95Ms": self.quantile_ms(0.95),
            "p99Ms": self.quantile_ms(0.99),
            "maxMs": self.quantile_ms(1.0),
            "errors": sum(count for status, count in self.statuses.items() if not status.startswith("2")),
            "statuses": dict(self.statuses),
            "seconds": round(self.seconds, 2),
            "generatorCpuSeconds": round(self.cpu_seconds, 2),
        }


@dataclass(slots=True)
class Stream:
    """Senders that share a source of requests. `on_good` hears the body of every good answer."""

    next_request: Callable[[], bytes]
    senders: int
    outcome: Outcome = field(default_factory=Outcome)
    on_good: Callable[[bytes], None] | None = None
    limit: int | None = None
    sent: int = 0


class _Sender(asyncio.Protocol):
    def __init__(self, stream: Stream, deadline: float, ended: Callable[[_Sender, bool], None]) -> None:
        self._stream, self._deadline, self._ended = stream, deadline, ended
        self._transport: asyncio.Transport | None = None
        self._in_flight = False
        self._began = 0.0
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._send()

    def _send(self) -> None:
        stream = self._stream
        over = time.perf_counter() >= self._deadline or (stream.limit is not None and stream.sent >= stream.limit)
        if self._transport is None or over:
            self._in_flight = False
            if self._transport is not None:
                self._transport.close()
            return
        stream.sent += 1
        request = stream.next_request()
        self._parser = httptools.HttpResponseParser(self)
        self._body.clear()
        self._in_flight = True
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if self._stream.on_good is not None:
            self._body += body

    def on_message_complete(self) -> None:
        took = time.perf_counter() - self._began
        status = self._parser.get_status_code()
        outcome = self._stream.outcome
        outcome.statuses[str(status)] += 1
        self._in_flight = False
        if status < 300:
            outcome.latencies.append(took)
            if self._stream.on_good is not None:
                self._stream.on_good(bytes(self._body))
        loop = asyncio.get_running_loop()
        if status in (429, 503):
            loop.call_later(REFUSAL_PAUSE_SECONDS, self._send)
        elif self._parser.should_keep_alive():
            # Not from inside the parser's callback: the next request gets a parser of its own.
            loop.call_soon(self._send)
        elif self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        lost = self._in_flight
        if lost:
            self._stream.outcome.statuses["connection lost"] += 1
            self._in_flight = False
        self._ended(self, lost)


async def _run(host: str, port: int, streams: list[Stream], seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = time.perf_counter() + seconds
    open_senders: set[_Sender] = set()
    idle = asyncio.Event()
    pending: set[asyncio.Task[None]] = set()

    def ended(sender: _Sender, lost: bool) -> None:
        open_senders.discard(sender)
        stream = sender._stream
        over = time.perf_counter() >= deadline or (stream.limit is not None and stream.sent >= stream.limit)
        if not over:
            task = loop.create_task(connect(stream))
            pending.add(task)
            task.add_done_callback(pending.discard)
        elif not open_senders:
            idle.set()

    async def connect(stream: Stream) -> None:
        while time.perf_counter() < deadline:
            try:
                _, sender = await loop.create_connection(lambda: _Sender(stream, deadline, ended), host, port)
            except OSError:
                stream.outcome.statuses["no connection"] += 1
                await asyncio.sleep(0.1)
                continue
            open_senders.add(sender)
            return
        if not open_senders:
            idle.set()

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(connect(stream) for stream in streams for _ in range(stream.senders)))
    try:
        await asyncio.wait_for(idle.wait(), seconds + GRACE_SECONDS)
    except TimeoutError:
        streams[0].outcome.statuses["stuck"] += len(open_senders)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    for stream in streams:
        stream.outcome.seconds, stream.outcome.cpu_seconds = took, cpu


def drive(host: str, port: int, streams: list[Stream], *, seconds: float) -> None:
    """Run the streams side by side for so long (or to their limits); their outcomes are filled in."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(host, port, streams, min(seconds, MAX_SECONDS)))


def request(method: str, path: str, *, host: str, headers: dict[str, str], body: bytes = b"", kind: str = "") -> bytes:
    """The bytes of one HTTP/1.1 request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{key}: {value}" for key, value in headers.items())]
    if body or method == "POST":
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
