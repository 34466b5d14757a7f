"""uvicorn's HTTP parser with bounds on what comes before the body, which it leaves to a proxy that need not be there."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The request line and all header fields together. Ours fit into one KB, a browser with many cookies into 16.
HEAD_BYTES = 64 * 1024
# From the connection, or from the first byte of a further request on it, to the end of the header fields.
HEAD_SECONDS = 30.0
# What a field costs beside its text, so that twenty thousand empty ones are not free.
_FIELD_BYTES = 32

_REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


class HeadTooLarge(Exception):
    """The head of a request is beyond HEAD_BYTES; the parser ends its work on the connection."""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses heads that are too large (431) and closes connections whose head does not arrive in time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._unparsed = 0
        self._in_head = False
        self._too_large = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has the time for its first head from here on."""
        super().connection_made(transport)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._unwatch_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and refuse a head of which the parser holds too much without its end."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._unparsed += len(data)
            if self._unparsed > HEAD_BYTES:
                self._too_large = True
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request starts."""
        super().on_message_begin()
        self._head_bytes = self._unparsed = 0
        self._in_head = True
        if self._head_timer is None:
            self._watch_head()

    def on_url(self, url: bytes) -> None:
        """A piece of the request's address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field."""
        self._count(len(name) + len(value) + _FIELD_BYTES)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there; what follows has its own limits."""
        self._in_head = False
        self._unwatch_head()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request in the API's error shape, and close."""
        status, text = (431, "Request header is too large") if self._too_large else (400, "Invalid HTTP request")
        body = msgspec.json.encode({"error": text})
        self.transport.write(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
            % (status, _REASONS[status], len(body), body)
        )
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            self._too_large = True
            raise HeadTooLarge

    def _watch_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def _unwatch_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()
