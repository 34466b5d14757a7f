"""uvicorn's HTTP parser with bounds on what comes before the body, which it leaves to a proxy that need not be there."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The request line and all header fields together. Ours fit into one KB, a browser with many cookies into 16.
HEAD_BYTES = 64 * 1024
HEAD_FIELDS = 500
# From the connection, or from the first byte of a further request on it, to the end of the header fields.
HEAD_SECONDS = 30.0
# Then to the first bytes of a body that was announced; whoever reads a body sets the time for the whole of it.
BODY_START_SECONDS = 60.0

_REASONS = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}


class HeadTooLarge(Exception):
    """The head of a request is beyond the limits; the parser ends its work on the connection."""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses heads that are too large (431) and closes connections on which a request does not arrive in time.

    A request that comes in one piece, as nearly all do, starts no timer and costs no call for each field.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Bytes of the piece at work, and of all pieces since the head began; whether its end is still to come, or came
        # with this piece.
        self._piece = self._since_begin = 0
        self._in_head = self._head_ended = False
        self._too_large = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has the time for its first head from here on."""
        super().connection_made(transport)
        self._wait(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, then wait for what is missing; refuse a head of which the parser holds too much without its end."""
        if self.transport.is_closing():
            return
        self._piece = len(data)
        if self._in_head:
            self._since_begin += self._piece
        self._head_ended = False
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            if self._since_begin > HEAD_BYTES:
                self._too_large = True
                self.send_400_response("")
            elif self._timer is None:
                self._wait(HEAD_SECONDS)
        elif self._head_ended and self.cycle.more_body and not self.cycle.body:
            self._wait(BODY_START_SECONDS)
        elif self._timer is not None:
            self._arrived()

    def on_message_begin(self) -> None:
        """A request starts."""
        super().on_message_begin()
        self._in_head = True
        self._since_begin = self._piece

    def on_headers_complete(self) -> None:
        """The head is there; what follows has its own limits."""
        self._in_head = False
        self._head_ended = True
        self._arrived()
        too_long = self._since_begin > HEAD_BYTES and self._size_of_head() > HEAD_BYTES
        if too_long or len(self.headers) > HEAD_FIELDS:
            self._too_large = True
            raise HeadTooLarge
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

    def _size_of_head(self) -> int:
        """What came may hold the body too: the head by itself."""
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _wait(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._late)

    def _arrived(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
