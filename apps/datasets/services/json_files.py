"""Datasets as JSON files: what a person downloads from one server and gives to another."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from apps.core.api.errors import APIError
from apps.datasets import wire
from apps.datasets.models import Dataset

MAX_BYTES = 10 * 1024 * 1024
MAX_DATASETS = 200


class JSONRefused(APIError):
    """A file that holds no datasets; 400, for one that is too large 413."""


def dump(dataset: Dataset) -> bytes:
    """The document of a dataset, indented for people and diffs; `read` and the import route take it back."""
    text = json.dumps(wire.document(dataset), ensure_ascii=False, indent=2)
    return text.encode() + b"\n"


def read(data: bytes) -> list[dict[str, Any]]:
    """The rows of a file for `datasets.import_dataset`.

    Takes a document, a list of them, the answer of the list route, or lines of the export (NDJSON). Raises JSONRefused,
    naming the line or entry that is no dataset; a file is taken whole or not at all.
    """
    if len(data) > MAX_BYTES:
        raise JSONRefused(
            f"The file has {len(data) / 1024 / 1024:.0f} MB; at most {MAX_BYTES // 1024 // 1024} MB are taken", 413
        )
    data = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not data:
        raise JSONRefused("The file is empty")
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        rows = _lines(data)
    else:
        rows = _rows(found)
    if len(rows) > MAX_DATASETS:
        raise JSONRefused(f"The file holds {len(rows)} datasets; at most {MAX_DATASETS} are taken at once")
    for number, row in enumerate(rows, 1):
        if not isinstance(row.get("name"), str) or not row["name"].strip():
            raise JSONRefused(f"Dataset {number} of the file has no name")
    return rows


def _rows(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict) and isinstance(found.get("datasets"), list):
        found = found["datasets"]
    if isinstance(found, dict):
        return [found]
    if isinstance(found, list) and found and all(isinstance(item, dict) for item in found):
        return found
    raise JSONRefused("The file holds no datasets")


def _lines(data: bytes) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise JSONRefused(f"Line {number} of the file is not valid JSON") from None
        if not isinstance(row, dict):
            raise JSONRefused(f"Line {number} of the file is no dataset")
        rows.append(row)
    return rows
