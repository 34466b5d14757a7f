"""Content types and content encodings of OTLP/HTTP bodies."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from apps.core.encoding import BrokenEncoding, TooLarge, UnknownEncoding, codings, decompress
from apps.tracing.otlp.encoding import JSON, PROTOBUF, media_type

BODY = b"some body " * 500
LIMIT = 1_000_000


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("application/x-protobuf", PROTOBUF),
        ("Application/X-Protobuf; v=1", PROTOBUF),
        ("application/json", JSON),
        ("application/json; charset=utf-8", JSON),
        ("text/plain", None),
        ("application/grpc", None),
        ("", None),
    ],
)
def test_media_types(header: str, expected: str | None) -> None:
    assert media_type(header) == expected


def test_codings() -> None:
    assert codings("") == codings("identity") == []
    assert codings(" GZIP , deflate") == ["gzip", "deflate"]
    for header in ("br", "gzip, zstd", "gzip,gzip,gzip,gzip"):
        with pytest.raises(UnknownEncoding):
            codings(header)


@pytest.mark.parametrize(
    ("names", "sent"),
    [
        (["gzip"], gzip.compress(BODY, mtime=0)),
        (["x-gzip"], gzip.compress(BODY, mtime=0)),
        (["gzip"], gzip.compress(BODY[:100], mtime=0) + gzip.compress(BODY[100:], mtime=0)),
        (["gzip"], gzip.compress(BODY, mtime=0) + b"\x00" * 8),
        (["deflate"], zlib.compress(BODY)),
        (["deflate"], zlib.compress(BODY, wbits=-15)),
        (["deflate", "gzip"], gzip.compress(zlib.compress(BODY), mtime=0)),
        ([], BODY),
    ],
)
def test_inflating(names: list[str], sent: bytes) -> None:
    assert decompress(sent, names, LIMIT) == BODY


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("gzip", BODY),
        ("gzip", gzip.compress(BODY, mtime=0)[:-20]),
        ("gzip", b""),
        ("deflate", BODY),
        ("deflate", zlib.compress(BODY)[:20]),
        ("gzip", gzip.compress(b"", mtime=0) * 5000),
    ],
)
def test_broken(name: str, sent: bytes) -> None:
    with pytest.raises(BrokenEncoding):
        decompress(sent, [name], LIMIT)


def test_the_limit_holds_after_inflating() -> None:
    assert len(decompress(gzip.compress(b"x" * LIMIT), ["gzip"], LIMIT)) == LIMIT
    with pytest.raises(TooLarge):
        decompress(gzip.compress(b"x" * (LIMIT + 1)), ["gzip"], LIMIT)


def test_a_bomb_is_refused_with_flat_memory() -> None:
    compressor = zlib.compressobj(wbits=31)
    megabyte = b"\x00" * 1_000_000
    bomb = b"".join(compressor.compress(megabyte) for _ in range(1000)) + compressor.flush()
    tracemalloc.start()
    with pytest.raises(TooLarge):
        decompress(bomb, ["gzip"], 10 * 1024 * 1024)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
