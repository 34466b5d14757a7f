"""The few lines every raw ASGI door needs: reading a body within its limits and answering JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec

from apps.core.encoding import BrokenEncoding, TooLarge, UnknownEncoding, codings, decompress

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

# How long a client may take to send its body once it has begun; the connection itself times the beginning.
BODY_TIMEOUT_SECONDS = 60.0
# Inflating more than this goes to a thread, so that it does not hold up the requests of others.
_INFLATE_INLINE_BYTES = 16 * 1024
_CLOSE = ((b"connection", b"close"),)


class BodyTooLarge(Exception):
    """The request body is larger than the limit; what was read of it is dropped."""


class BodyRefused(Exception):
    """A body that cannot be taken; `status` and the text are the answer, `headers` go with it."""

    def __init__(self, status: int, text: str, headers: Headers = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class ClientGone(Exception):
    """The client hung up before its body was complete; there is nobody to answer."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole request body. Raises BodyTooLarge beyond `limit` bytes (before reading, when the length is declared)."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > limit:
            raise BodyTooLarge
        return body
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise BodyTooLarge
    chunks = [body]
    size = len(body)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def read_plain_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole request body with its Content-Encoding (gzip, deflate) undone, within the time a client has for it.

    `limit` holds for the bytes sent and for what they inflate to. Raises ClientGone, or BodyRefused: 408 too slow,
    413 too large, 415 an encoding that is not read, 400 a body that is not what its encoding says.
    """
    sent = b""
    for name, value in scope["headers"]:
        if name == b"content-encoding":
            sent = sent + b"," + value if sent else value
    try:
        names = codings(sent.decode("latin-1")) if sent else []
        # Nearly every body is there at once, and then nothing is timed.
        first = await receive()
        if first.get("more_body", False):
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                body = await read_body(scope, _preceded_by(first, receive), limit)
        else:
            body = await read_body(scope, _preceded_by(first, receive), limit)
        if not names or not body:
            return body
        if len(body) > _INFLATE_INLINE_BYTES:
            return await asyncio.to_thread(decompress, body, names, limit)
        return decompress(body, names, limit)
    except UnknownEncoding as error:
        raise BodyRefused(415, str(error)) from None
    except BrokenEncoding as error:
        raise BodyRefused(400, f"Invalid request body: {error}") from None
    except (BodyTooLarge, TooLarge):
        raise BodyRefused(413, f"Request body is larger than {limit // 1_048_576} MB", _CLOSE) from None
    except TimeoutError:
        raise BodyRefused(408, "Request body did not arrive in time", _CLOSE) from None


def _preceded_by(first: MutableMapping[str, Any], receive: Receive) -> Receive:
    """`receive` with a message that was taken already put back in front."""
    waiting: MutableMapping[str, Any] | None = first

    async def again() -> MutableMapping[str, Any]:
        nonlocal waiting
        if waiting is None:
            return await receive()
        message, waiting = waiting, None
        return message

    return again


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first value of a request header; `name` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None


async def send_bytes(
    send: Send, status: int, body: bytes, content_type: bytes = b"application/json", headers: Headers = ()
) -> None:
    """Answer with a complete body."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", content_type),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, obj: object, headers: Headers = ()) -> None:
    """Answer with JSON; extra headers are pairs of bytes with lower-case names."""
    await send_bytes(send, status, msgspec.json.encode(obj), headers=headers)


async def json_error(send: Send, status: int, text: str, headers: Headers = ()) -> None:
    """Answer with the API's error shape."""
    await send_json(send, status, {"error": text}, headers)
