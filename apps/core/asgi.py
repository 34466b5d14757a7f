"""The few lines every raw ASGI door needs: reading a body within a limit and answering JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import msgspec

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]


class BodyTooLarge(Exception):
    """The request body is larger than the limit; what was read of it is dropped."""


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
