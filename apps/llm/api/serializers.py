"""The catalog on the wire."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.llm.models import CatalogModel
from apps.llm.selectors import CatalogRow


def wire_model(row: CatalogRow) -> dict[str, Any]:
    """A model with exactly the keys of source 1:1170-1181; prices are those that hold now."""
    model, price = row.model, row.price
    return {
        "id": model.model_id,
        "provider": model.provider,
        "label": model.label,
        "pricePerMInputTokens": price.input_per_m if price else 0.0,
        "pricePerMOutputTokens": price.output_per_m if price else 0.0,
        "pricePerMCacheReadTokens": price.cache_read_per_m if price else None,
        "pricePerMCacheWriteTokens": price.cache_write_per_m if price else None,
        "isDefault": model.is_default,
        "baseUrl": model.base_url or None,
        "apiKeyMasked": model.api_key_masked or None,
    }


def wire_listed_model(row: CatalogRow) -> dict[str, Any]:
    """A model as `client.evaluations.list_models()` reads it; what the catalog does not know is null (PROJ-049)."""
    model, price = row.model, row.price
    return {
        "name": model.model_id,
        "display": model.label,
        "provider": model.provider,
        "contextWindow": None,
        "maxOutputTokens": None,
        "inputCost": price.input_per_m if price else None,
        "outputCost": price.output_per_m if price else None,
        "knowledgeCutOff": None,
        "legacy": None,
    }


class ModelSerializer(serializers.Serializer[Any]):
    """Shape of a catalog model."""

    id = serializers.CharField(help_text="The exact string sent to the provider.")
    provider = serializers.ChoiceField(choices=CatalogModel.Provider.choices)
    label = serializers.CharField()  # type: ignore[assignment]
    pricePerMInputTokens = serializers.FloatField(help_text="USD per million tokens, as are all prices.")
    pricePerMOutputTokens = serializers.FloatField()
    pricePerMCacheReadTokens = serializers.FloatField(allow_null=True, help_text="Null: the input price.")
    pricePerMCacheWriteTokens = serializers.FloatField(allow_null=True, help_text="Null: the input price.")
    isDefault = serializers.BooleanField()
    baseUrl = serializers.CharField(allow_null=True)
    apiKeyMasked = serializers.CharField(allow_null=True)


class ModelBody(serializers.Serializer[Any]):
    """Body of POST and PUT; PUT takes any part of it."""

    id = serializers.CharField()
    provider = serializers.ChoiceField(choices=CatalogModel.Provider.choices)
    label = serializers.CharField()  # type: ignore[assignment]
    pricePerMInputTokens = serializers.FloatField(min_value=0)
    pricePerMOutputTokens = serializers.FloatField(min_value=0)
    pricePerMCacheReadTokens = serializers.FloatField(min_value=0, required=False, allow_null=True)
    pricePerMCacheWriteTokens = serializers.FloatField(min_value=0, required=False, allow_null=True)
    isDefault = serializers.BooleanField(required=False)
    baseUrl = serializers.CharField(required=False, allow_null=True, help_text="Required for a custom model.")
    apiKey = serializers.CharField(required=False, allow_null=True, help_text="Absent keeps the stored key.")
    effectiveFrom = serializers.DateTimeField(required=False, help_text="From when the prices hold; default: now.")


class ModelList(serializers.Serializer[Any]):
    """`{ models: [...] }`."""

    models = ModelSerializer(many=True)


class ModelNames(serializers.Serializer[Any]):
    """Names of models."""

    models = serializers.ListField(child=serializers.CharField())


class OneModel(serializers.Serializer[Any]):
    """`{ model }`."""

    model = ModelSerializer()


class Success(serializers.Serializer[Any]):
    """`{ success: true }`."""

    success = serializers.BooleanField()


class ConnectionBody(serializers.Serializer[Any]):
    """Body of test-connection."""

    baseUrl = serializers.CharField()
    modelId = serializers.CharField()
    apiKey = serializers.CharField(required=False, allow_null=True)


class ConnectionAnswer(serializers.Serializer[Any]):
    """Whether an endpoint answers, and with which models."""

    live = serializers.BooleanField()
    error = serializers.CharField(required=False)
    availableModelIds = serializers.ListField(child=serializers.CharField(), required=False)


class KeyState(serializers.Serializer[Any]):
    """A provider key, masked."""

    configured = serializers.BooleanField()
    masked = serializers.CharField(allow_null=True)


class KeyStates(serializers.Serializer[Any]):
    """Every provider's key, masked."""

    openai = KeyState()
    anthropic = KeyState()
    gemini = KeyState()
    openrouter = KeyState()


class KeyAnswer(serializers.Serializer[Any]):
    """Answer of PUT …/settings/llm-keys."""

    llm = KeyStates()


class KeyBody(serializers.Serializer[Any]):
    """Body of PUT …/settings/llm-keys: an absent key is left alone, null or empty clears."""

    openaiApiKey = serializers.CharField(required=False, allow_null=True)
    anthropicApiKey = serializers.CharField(required=False, allow_null=True)
    geminiApiKey = serializers.CharField(required=False, allow_null=True)
    openrouterApiKey = serializers.CharField(required=False, allow_null=True)


class PlatformModelBody(serializers.Serializer[Any]):
    """The platform model."""

    platformModel = serializers.CharField()
