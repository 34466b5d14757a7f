"""A JSON column that is stored compressed."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
from django.db import models

_FASTEST = 1


class PackedJSONField(models.BinaryField):
    """Any JSON value as compressed bytes: for large texts that are kept often and read seldom.

    A history keeps every state of a dataset; ten thousand cases that differ in one compress to a tenth. The column
    cannot be searched. `unpacked` gives the JSON bytes without decoding them.
    """

    # For the type checker: a row holds the JSON value, not the bytes of the base class.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> Any:
        """Compressed bytes for the database."""
        return None if value is None else zlib.compress(msgspec.json.encode(value), _FASTEST)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """The value that was stored."""
        return None if value is None else msgspec.json.decode(unpacked(value))

    def to_python(self, value: Any) -> Any:
        """Values are never text that needs decoding."""
        return value


def unpacked(value: bytes | memoryview) -> bytes:
    """The JSON bytes of a stored value."""
    return zlib.decompress(bytes(value))
