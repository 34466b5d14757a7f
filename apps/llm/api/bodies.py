"""Checks of catalog bodies; each failure is a 400 that names the field."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apps.core.api.bodies import is_number, one_line, secret_or_none
from apps.core.api.errors import APIError
from apps.core.outbound import OutboundRefused, check_url
from apps.core.times import from_ms, parse_iso_ms
from apps.llm.models import CatalogModel
from apps.llm.services.catalog import ModelFields, Rates

MODEL_ID_LIMIT = 200
LABEL_LIMIT = 200
# Path words of the catalog routes, which no model can be called.
RESERVED_IDS = frozenset({"test-connection", "unpriced"})
# A thousand dollars a token: beyond it somebody mixed up the unit.
_MAX_PRICE = 1e9

_REQUIRED = {"pricePerMInputTokens": "input_per_m", "pricePerMOutputTokens": "output_per_m"}
_OPTIONAL = {"pricePerMCacheReadTokens": "cache_read_per_m", "pricePerMCacheWriteTokens": "cache_write_per_m"}


def model_id(body: dict[str, Any]) -> str:
    """The `id` of a new model."""
    text = one_line(body.get("id"), "id", limit=MODEL_ID_LIMIT)
    if text in RESERVED_IDS or text.startswith("/") or text.endswith("/"):
        raise APIError("id is not a valid model id")
    return text


def fields(body: dict[str, Any], *, new: bool) -> ModelFields:
    """Everything but id and prices; on an update what is absent is left alone."""
    said: dict[str, Any] = {}
    if new or "provider" in body:
        if body.get("provider") not in CatalogModel.Provider.values:
            raise APIError(f"provider must be one of {', '.join(CatalogModel.Provider.values)}")
        said["provider"] = body["provider"]
    if new or "label" in body:
        said["label"] = one_line(body.get("label"), "label", limit=LABEL_LIMIT)
    if "baseUrl" in body or (new and said["provider"] == CatalogModel.Provider.CUSTOM):
        said["base_url"] = base_url(body.get("baseUrl")) if body.get("baseUrl") else None
    if "apiKey" in body:
        said["api_key"] = secret_or_none(body["apiKey"], "apiKey")
    if body.get("isDefault") is not None:
        if not isinstance(body["isDefault"], bool):
            raise APIError("isDefault must be true or false")
        said["is_default"] = body["isDefault"]
    return ModelFields(**said)


def rates(body: dict[str, Any], *, new: bool) -> Rates:
    """The prices that are said, each a number of 0 or more; null cache prices mean the input price."""
    found: dict[str, float | None] = {}
    for name, column in _REQUIRED.items():
        if new or name in body:
            found[column] = _price(body.get(name), name)
    for name, column in _OPTIONAL.items():
        if name in body or new:
            value = body.get(name)
            found[column] = None if value is None else _price(value, name)
    return Rates(**found)  # type: ignore[typeddict-item]


def effective_from(body: dict[str, Any]) -> datetime | None:
    """`effectiveFrom`: the moment from which the prices hold, ISO 8601; None when absent."""
    value = body.get("effectiveFrom")
    if value is None:
        return None
    try:
        return from_ms(parse_iso_ms(value))
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise APIError("effectiveFrom must be an ISO 8601 date") from None


def base_url(value: Any) -> str:
    """The address of an OpenAI-compatible endpoint."""
    text = one_line(value, "baseUrl", limit=500)
    try:
        check_url(text)
    except OutboundRefused as error:
        raise APIError(f"baseUrl is not usable: {error}") from None
    return text


def _price(value: Any, name: str) -> float:
    if not is_number(value) or not 0 <= value <= _MAX_PRICE:
        raise APIError(f"{name} must be a number of 0 or more (USD per million tokens)")
    return float(value)
