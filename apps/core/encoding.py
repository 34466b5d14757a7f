"""Content-Encoding of request bodies: which are read, and undoing them within a limit."""

from __future__ import annotations

import zlib

# Encodings may be stacked; more than this is an attack, not a client.
_MAX_CODINGS = 3
_CHUNK = 64 * 1024
_MAX_MEMBERS = 1000
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class UnknownEncoding(ValueError):
    """A Content-Encoding this server does not read; the text names it."""


class BrokenEncoding(ValueError):
    """The body is not what its Content-Encoding says, or ends early."""


class TooLarge(ValueError):
    """The body is larger than the limit once inflated."""


def codings(content_encoding: str) -> list[str]:
    """The encodings of a Content-Encoding header in the order they were applied, identity left out.
    Raises UnknownEncoding."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name and name != "identity"]
    for name in names:
        if name not in _WBITS:
            raise UnknownEncoding(f"Unsupported Content-Encoding: {name[:40]}")
    if len(names) > _MAX_CODINGS:
        raise UnknownEncoding("Unsupported Content-Encoding: too many encodings")
    return names


def _inflate(body: bytes, wbits: int, limit: int) -> bytes:
    """Inflate piece by piece, never holding more than `limit` bytes and one. Gzip may have several members;
    padding after the stream is ignored, as gzip tools do."""
    out = bytearray()
    view = memoryview(body)
    position = 0
    inflater = zlib.decompressobj(wbits)
    for _member in range(_MAX_MEMBERS):
        while position < len(body) and not inflater.eof:
            piece = view[position : position + _CHUNK]
            out += inflater.decompress(piece, limit - len(out) + 1)
            if len(out) > limit:
                raise TooLarge
            position += len(piece)
        if not inflater.eof:
            raise BrokenEncoding("the compressed body ends early")
        position -= len(inflater.unused_data)
        if wbits != _WBITS["gzip"] or body[position : position + 2] != b"\x1f\x8b":
            return bytes(out)
        inflater = zlib.decompressobj(wbits)
    raise BrokenEncoding("the compressed body has too many parts")


def decompress(body: bytes, names: list[str], limit: int) -> bytes:
    """Undo the encodings, last applied first. Raises TooLarge or BrokenEncoding."""
    for name in reversed(names):
        try:
            body = _inflate(body, _WBITS[name], limit)
        except zlib.error as error:
            if name != "deflate":
                raise BrokenEncoding(f"the body is not valid {name}") from error
            try:
                body = _inflate(body, -15, limit)  # some senders leave the zlib wrapper out
            except zlib.error as second:
                raise BrokenEncoding("the body is not valid deflate") from second
    return body
