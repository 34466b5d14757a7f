"""From a model id to where it is asked: provider, address and key (PROJ-020..024, PROJ-033, PROJ-039).

A `custom` catalog row goes to its own address. With an OpenRouter key an id containing "/" goes to OpenRouter. Any other
id goes to the provider of its catalog row, else to the provider its name shows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from cryptography.fernet import InvalidToken

from apps.core.encryption import decrypt
from apps.core.outbound import OutboundRefused, check_url
from apps.llm.gateway.errors import ModelUnavailable
from apps.llm.models import CatalogModel
from apps.llm.services.provider_keys import PROVIDERS, provider_key

Wire = Literal["openai", "anthropic", "gemini"]

# The variables that the providers' own clients read: a proxy, or a server of one's own.
BASE_URLS: dict[str, tuple[str, str]] = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
    "openrouter": ("OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"),
}
_NAMES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Gemini", "openrouter": "OpenRouter"}
_PREFIXES = (("claude", "anthropic"), ("gemini", "gemini"), ("gemma", "gemini"))


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model is asked. `label` names the place for people; `key` never leaves the call."""

    model: str
    provider: str
    wire: Wire
    base_url: str
    key: str
    label: str


def base_url(provider: str) -> str:
    """The provider's address: its variable, else the public one."""
    variable, public = BASE_URLS[provider]
    return (os.environ.get(variable, "").strip() or public).rstrip("/")


def route(model: str) -> Route:
    """Where to ask `model`. Raises ModelUnavailable when the key is missing; the text names its variable."""
    row = CatalogModel.objects.filter(organization=None, model_id=model).first()
    if row is not None and row.provider == CatalogModel.Provider.CUSTOM:
        return _custom(row)
    if "/" in model and (key := provider_key("openrouter")):
        return Route(model, "openrouter", "openai", base_url("openrouter"), key, _NAMES["openrouter"])
    if row is None and "/" in model:
        raise ModelUnavailable(
            f"No key for {model}: save an OpenRouter key in Settings or set OPENROUTER_API_KEY, "
            "or add the model to the catalog.",
            "no_key",
        )
    provider = row.provider if row is not None else _provider_of(model)
    key = provider_key(provider)
    if not key:
        raise ModelUnavailable(
            f"No key for {model}: save a {_NAMES[provider]} key in Settings or set {PROVIDERS[provider].variable}.",
            "no_key",
        )
    wire: Wire = "anthropic" if provider == "anthropic" else "gemini" if provider == "gemini" else "openai"
    return Route(model, provider, wire, base_url(provider), key, _NAMES[provider])


def _provider_of(model: str) -> str:
    lowered = model.lower()
    return next((provider for prefix, provider in _PREFIXES if lowered.startswith(prefix)), "openai")


def _custom(row: CatalogModel) -> Route:
    try:
        check_url(row.base_url)
        key = decrypt(row.api_key_encrypted) if row.api_key_encrypted else "none"
    except OutboundRefused as error:
        raise ModelUnavailable(f"The address of {row.model_id} is refused: {error}", "provider") from None
    except InvalidToken:
        raise ModelUnavailable(
            f"The key of {row.model_id} was saved under another instance secret. Save it again.", "no_key"
        ) from None
    return Route(row.model_id, "custom", "openai", row.base_url.rstrip("/"), key, row.label)
