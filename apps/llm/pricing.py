"""What a call costs: dated prices of the catalog behind a per-process table (source 1:1748-1751, 1:2607).

`price_of` is on the ingest path: a dictionary look-up, and once a second one small query that asks whether the
catalog has changed. Catalog edits call `forget()`, so this process sees its own edits at once and other processes
within `settings.CACHE_SECONDS`. Call it from a thread (it may query), not from the event loop.
"""

from __future__ import annotations

import functools
import logging
import re
import secrets
import threading
import time
from bisect import bisect_right
from typing import NamedTuple

from django.conf import settings
from django.db import DatabaseError

from apps.core.models import InstanceSetting
from apps.core.times import to_ms
from apps.llm.models import ModelPrice

logger = logging.getLogger(__name__)

VERSION_KEY = "catalog.version"
_SNAPSHOT = re.compile(r"(.{1,200})-(?:20\d{2}-?[01]\d-?[0-3]\d)")


class Price(NamedTuple):
    """USD per million tokens; a cache rate the catalog leaves open is the input rate here (PROJ-047)."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class _Dated(NamedTuple):
    """The prices of one model: moments from which they hold, ascending, and the prices beside them."""

    starts_ms: list[int]
    prices: list[Price]


class _Table(NamedTuple):
    version: str | None
    shared: dict[str, _Dated]
    own: dict[tuple[str, str], _Dated]


_table: _Table | None = None
_fresh_until = 0.0
_generation = 0
_lock = threading.Lock()


def price_of(model: str | None, at_ms: int, organization_id: str | None = None) -> Price | None:
    """The price of a model at a moment (milliseconds since 1970); None when the catalog has none for it.

    An organization's own row wins over the shared one of the same id. Providers report dated snapshots
    (`gpt-4o-mini-2024-07-18`, `claude-haiku-4-5-20251001`); one without a row of its own costs what its base name does.
    """
    if not model:
        return None
    table = _table
    if table is None or time.monotonic() >= _fresh_until:
        table = _refresh()
    dated = _find(table, model, organization_id)
    if dated is None:
        base = _base_of(model)
        if base is None or (dated := _find(table, base, organization_id)) is None:
            return None
    if len(dated.prices) == 1:
        return dated.prices[0] if dated.starts_ms[0] <= at_ms else None
    index = bisect_right(dated.starts_ms, at_ms) - 1
    return dated.prices[index] if index >= 0 else None


def _find(table: _Table, model: str, organization_id: str | None) -> _Dated | None:
    if organization_id is not None and table.own:
        own = table.own.get((organization_id, model))
        if own is not None:
            return own
    return table.shared.get(model)


@functools.lru_cache(maxsize=4096)
def _base_of(model: str) -> str | None:
    """The name of a dated snapshot without its date; None for any other name."""
    match = _SNAPSHOT.fullmatch(model)
    return match.group(1) if match else None


def cost(price: Price, input_tokens: int, output_tokens: int, cache_read: int = 0, cache_write: int = 0) -> float:
    """USD of the counts: cached tokens at their rates, only the remaining input at the input rate (TRC-121).

    Cache counts are a subset of the input count; the remainder never goes below 0.
    """
    plain = input_tokens - cache_read - cache_write
    return (
        (plain * price.input if plain > 0 else 0.0)
        + cache_read * price.cache_read
        + cache_write * price.cache_write
        + output_tokens * price.output
    ) / 1_000_000


def forget() -> None:
    """Drop this process's table; the next look-up reads the catalog."""
    global _table, _fresh_until, _generation
    with _lock:
        _generation += 1
        _table = None
        _fresh_until = 0.0


def bump_version() -> None:
    """Tell every process that the catalog has changed; called inside the transaction of each catalog write."""
    InstanceSetting.objects.update_or_create(key=VERSION_KEY, defaults={"value": secrets.token_hex(8)})


def _refresh() -> _Table:
    """The table as of now; the old one for another second when the database cannot be asked."""
    global _table, _fresh_until
    with _lock:
        current, generation = _table, _generation
    try:
        version = InstanceSetting.objects.filter(key=VERSION_KEY).values_list("value", flat=True).first()
        table = current if current is not None and current.version == version else _load(version)
    except DatabaseError:
        if current is None:
            raise
        logger.warning("the catalog could not be read again; prices stay as they are", exc_info=True)
        table = current
    with _lock:
        # A catalog write that happened while we read has already asked for a newer table.
        if generation == _generation:
            _table = table
            _fresh_until = time.monotonic() + settings.CACHE_SECONDS
    return table


def _load(version: str | None) -> _Table:
    shared: dict[str, _Dated] = {}
    own: dict[tuple[str, str], _Dated] = {}
    rows = ModelPrice.objects.order_by("valid_from").values_list(
        "model__organization_id",
        "model__model_id",
        "valid_from",
        "input_per_m",
        "output_per_m",
        "cache_read_per_m",
        "cache_write_per_m",
    )
    for organization_id, model_id, valid_from, input_rate, output_rate, cache_read, cache_write in rows:
        if organization_id is None:
            dated = shared.setdefault(model_id, _Dated([], []))
        else:
            dated = own.setdefault((organization_id, model_id), _Dated([], []))
        dated.starts_ms.append(to_ms(valid_from))
        dated.prices.append(
            Price(
                input_rate,
                output_rate,
                input_rate if cache_read is None else cache_read,
                input_rate if cache_write is None else cache_write,
            )
        )
    return _Table(version, shared, own)
