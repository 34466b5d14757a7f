"""Keys of model providers: from the environment, or saved in Settings; a saved one wins and acts at once (PROJ-020).

A key leaves this module in clear only through `provider_key`, for the call it is meant for; everything that is shown
is masked.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from cryptography.fernet import InvalidToken
from django.db import transaction

from apps.core.encryption import decrypt, encrypt, mask
from apps.llm.models import ProviderKey
from apps.projects.models import Project
from apps.projects.services import audit
from config import env

logger = logging.getLogger(__name__)


class Provider(NamedTuple):
    """A provider: the field of PUT …/settings/llm-keys and the variable that hold its key."""

    field: str
    variable: str


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openaiApiKey", "OPENAI_API_KEY"),
    "anthropic": Provider("anthropicApiKey", "ANTHROPIC_API_KEY"),
    "gemini": Provider("geminiApiKey", "GEMINI_API_KEY"),
    "openrouter": Provider("openrouterApiKey", "OPENROUTER_API_KEY"),
}


def provider_key(provider: str) -> str | None:
    """The key to call a provider with, in clear; None when there is none. Read fresh, so a save acts at once."""
    row = ProviderKey.objects.filter(organization=None, provider=provider).first()
    if row is not None:
        try:
            return decrypt(row.key_encrypted)
        except InvalidToken:
            logger.warning("a saved provider key was encrypted with another instance secret; save it again")
    return env.text(PROVIDERS[provider].variable)


def masked_keys() -> dict[str, dict[str, Any]]:
    """`{ provider: { configured, masked } }` for every provider; `masked` is null without a key."""
    saved = dict(ProviderKey.objects.filter(organization=None).values_list("provider", "masked"))
    state: dict[str, dict[str, Any]] = {}
    for name, provider in PROVIDERS.items():
        from_environment = env.text(provider.variable)
        masked = saved.get(name) or (mask(from_environment) if from_environment else None)
        state[name] = {"configured": masked is not None, "masked": masked}
    return state


def key_source(provider: str) -> str | None:
    """Where the key in use comes from: "saved", "environment" or None; for the Settings page."""
    if ProviderKey.objects.filter(organization=None, provider=provider).exists():
        return "saved"
    return "environment" if env.text(PROVIDERS[provider].variable) else None


@transaction.atomic
def save_provider_keys(*, keys: dict[str, str | None], project: Project | None = None, request: Any = None) -> None:
    """Save keys by provider; None removes the saved one (the environment's, if any, then serves again)."""
    for provider, key in keys.items():
        if key is None:
            ProviderKey.objects.filter(organization=None, provider=provider).delete()
        else:
            ProviderKey.objects.update_or_create(
                organization=None,
                provider=provider,
                defaults={"key_encrypted": encrypt(key), "masked": mask(key)},
            )
    if keys:
        audit.record(
            action="settings.update",
            project=project,
            request=request,
            summary_fields=[PROVIDERS[provider].field for provider in keys],
            target_type="llm-keys",
        )
