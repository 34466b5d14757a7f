"""The call itself, through the providers' own clients behind pydantic-ai (imported on first use: 0.4 s).

Retries are ours, not the clients': bounded, with Retry-After honoured, inside the caller's deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apps.core.logs import mask_secrets
from apps.llm.gateway.errors import ModelUnavailable
from apps.llm.gateway.routing import Route

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

MAX_ATTEMPTS = 3
_RETRY_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_WAIT_S = 20.0
# Anthropic's wire demands a limit; a plain one keeps the answer unstreamed, so a deadline and an error are whole.
_ANTHROPIC_MAX_TOKENS = 8192


@dataclass(slots=True)
class RawAnswer:
    """What came back: text, token counts (cache counts are part of the input count) and why it ended."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    finish_reason: str | None
    attempts: int


async def ask(
    at: Route, *, system: str | None, prompt: str, temperature: float | None, max_tokens: int | None, timeout_s: float
) -> RawAnswer:
    """One answer of the model; raises ModelUnavailable with a text that names the provider and what it said."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior

    deadline = asyncio.get_running_loop().time() + timeout_s
    attempt = 0
    while True:
        attempt += 1
        try:
            response = await _request(at, system, prompt, temperature, max_tokens, deadline)
            return _answer(response, attempt)
        except ModelHTTPError as error:
            if error.status_code == 400 and temperature is not None and "temperature" in str(error.body).lower():
                # Reasoning models refuse the parameter; asked again without it.
                temperature = None
                continue
            problem = ModelUnavailable(
                _http_reason(at, error.status_code, error.body),
                "unknown_model" if error.status_code == 404 else "provider",
                retryable=error.status_code in _RETRY_STATUSES,
            )
            wait = _retry_after(error) or 0.5 * 2 ** (attempt - 1)
        except (UnexpectedModelBehavior, ValueError, TypeError, AttributeError, LookupError) as error:
            # The clients trip over JSON of another shape in ways of their own.
            raise ModelUnavailable(
                f"{at.label} answered {at.model} with something that is no model answer: {_short(str(error))}",
                "provider",
                retryable=True,
            ) from None
        except (ModelAPIError, OSError) as error:
            problem = ModelUnavailable(
                f"{at.label} could not be reached for {at.model}: {_short(str(error))}", "network", retryable=True
            )
            wait = 0.5 * 2 ** (attempt - 1)
        left = deadline - asyncio.get_running_loop().time()
        if not problem.retryable or attempt >= MAX_ATTEMPTS or wait > min(left, _MAX_WAIT_S):
            raise problem
        await asyncio.sleep(wait)


async def _request(
    at: Route, system: str | None, prompt: str, temperature: float | None, max_tokens: int | None, deadline: float
) -> ModelResponse:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
    from pydantic_ai.settings import ModelSettings

    parts: list[Any] = [SystemPromptPart(content=system)] if system else []
    parts.append(UserPromptPart(content=prompt))
    settings = ModelSettings(timeout=max(0.1, deadline - asyncio.get_running_loop().time()))
    if temperature is not None:
        settings["temperature"] = temperature
    if max_tokens is None and at.wire == "anthropic":
        max_tokens = _ANTHROPIC_MAX_TOKENS
    if max_tokens is not None:
        settings["max_tokens"] = max_tokens
    return await model_request(_model(at), [ModelRequest(parts=parts)], model_settings=settings)


@functools.lru_cache(maxsize=64)
def _model(at: Route) -> Model:
    """The client of a route; kept, because its connections are."""
    if at.wire == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = AsyncAnthropic(api_key=at.key, base_url=at.base_url, max_retries=0)
        return AnthropicModel(at.model, provider=AnthropicProvider(anthropic_client=client))
    if at.wire == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(at.model, provider=GoogleProvider(api_key=at.key, base_url=at.base_url))
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    openai = AsyncOpenAI(api_key=at.key, base_url=at.base_url, max_retries=0)
    return OpenAIChatModel(at.model, provider=OpenAIProvider(openai_client=openai))


def _answer(response: ModelResponse, attempts: int) -> RawAnswer:
    from pydantic_ai.messages import TextPart

    usage = response.usage
    counted = bool(usage.input_tokens or usage.output_tokens)
    return RawAnswer(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        input_tokens=usage.input_tokens if counted else None,
        output_tokens=usage.output_tokens if counted else None,
        cache_read_tokens=usage.cache_read_tokens if counted else None,
        cache_write_tokens=usage.cache_write_tokens if counted else None,
        finish_reason=response.finish_reason,
        attempts=attempts,
    )


def _retry_after(error: Exception) -> float | None:
    response = getattr(error.__cause__, "response", None)
    with contextlib.suppress(ValueError):
        return max(0.0, float(response.headers.get("retry-after", ""))) if response is not None else None
    return None


def _http_reason(at: Route, status: int, body: object) -> str:
    hint = {
        401: " The key is not accepted.",
        403: " The key may not use this model.",
        404: " The model or the address is not known there.",
        429: " Too many requests, or the account's budget is used up.",
    }.get(status, "")
    said = _short(_message(body))
    return f"{at.label} answered {status} for {at.model}.{hint}" + (f" It said: {said}" if said else "")


def _message(body: object) -> str:
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            return str(inner.get("message") or "")
        return str(inner)
    return str(body or "")


def _short(text: str) -> str:
    return mask_secrets(" ".join(text.split()))[:300]
