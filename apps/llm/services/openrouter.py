"""OpenRouter's live catalog, for model pickers of an instance that has its key (PROJ-025). Prices are not read."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from apps.core import outbound
from apps.llm.services.provider_keys import provider_key

logger = logging.getLogger(__name__)

BASE_URL = "https://openrouter.ai/api/v1"
_TIMEOUT_SECONDS = 5.0
_MAX_BYTES = 8_000_000
_MAX_MODELS = 2000
# A list is good for ten minutes; after a failure the next try waits a minute.
_KEEP_SECONDS = 600.0
_RETRY_SECONDS = 60.0
_known: tuple[float, list[str]] | None = None


def openrouter_models() -> list[str]:
    """Ids of OpenRouter's models in alphabetical order; empty without a key or while it does not answer."""
    global _known
    key = provider_key("openrouter")
    if not key:
        return []
    now = time.monotonic()
    if _known is not None and now < _known[0]:
        return _known[1]
    models = _fetch(key)
    _known = (now + (_KEEP_SECONDS if models else _RETRY_SECONDS), models)
    return models


def forget() -> None:
    """Ask again next time; called when the key changes, and by tests."""
    global _known
    _known = None


def _fetch(key: str) -> list[str]:
    try:
        answer = outbound.request(
            "GET",
            f"{BASE_URL}/models",
            headers={"Authorization": f"Bearer {key}"},
            timeout=_TIMEOUT_SECONDS,
            max_bytes=_MAX_BYTES,
        )
        if answer.status != 200:
            logger.warning("OpenRouter answered its model list with HTTP %d", answer.status)
            return []
        body: Any = msgspec.json.decode(answer.body)
    except (outbound.OutboundError, msgspec.DecodeError, UnicodeDecodeError) as error:
        logger.warning("OpenRouter's model list could not be read: %s", error)
        return []
    items = body.get("data") if isinstance(body, dict) else None
    ids = {item.get("id") for item in items if isinstance(item, dict)} if isinstance(items, list) else set()
    return sorted(text[:200] for text in ids if isinstance(text, str) and text)[:_MAX_MODELS]
