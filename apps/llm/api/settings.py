"""The settings page's reads and the settings that concern models."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers as rest_serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body, one_line, secret_or_none
from apps.llm.api import serializers
from apps.llm.api.bodies import MODEL_ID_LIMIT
from apps.llm.services.platform_model import platform_model, set_platform_model
from apps.llm.services.provider_keys import PROVIDERS, masked_keys, save_provider_keys
from apps.projects.api.authentication import project_of
from apps.projects.api.serializers import MonitoringDefaultsSerializer
from apps.projects.models import Project
from apps.projects.services.keys import primary_key_of
from apps.projects.services.settings import monitoring_defaults_of, wire_monitoring_defaults


def wire_settings(project: Project) -> dict[str, Any]:
    """Everything GET …/settings answers; provider keys masked only."""
    return {
        "apiKey": primary_key_of(project),
        "monitoringDefaults": wire_monitoring_defaults(monitoring_defaults_of(project)),
        "llm": masked_keys(),
        "platformModel": platform_model(),
    }


class SettingsView(APIView):
    """The calling project's settings."""

    @extend_schema(
        summary="Read settings",
        responses=inline_serializer(
            "Settings",
            {
                "apiKey": rest_serializers.CharField(allow_null=True),
                "monitoringDefaults": MonitoringDefaultsSerializer(),
                "llm": serializers.KeyStates(),
                "platformModel": rest_serializers.CharField(),
            },
        ),
        tags=["Settings"],
    )
    def get(self, request: Request) -> Response:
        """`{ apiKey, monitoringDefaults, llm, platformModel }` (PROJ-013)."""
        return Response(wire_settings(project_of(request)), headers={"Cache-Control": "no-store"})


class ProviderKeysView(APIView):
    """Keys of model providers."""

    @extend_schema(
        summary="Save provider keys", request=serializers.KeyBody, responses=serializers.KeyAnswer, tags=["Settings"]
    )
    def put(self, request: Request) -> Response:
        """`{ llm: {...} }` masked; an absent key is left, null or empty clears (PROJ-021)."""
        body = object_body(request)
        keys = {
            name: secret_or_none(body[provider.field], provider.field)
            for name, provider in PROVIDERS.items()
            if provider.field in body
        }
        save_provider_keys(keys=keys, project=project_of(request), request=request)
        return Response({"llm": masked_keys()})


class PlatformModelView(APIView):
    """The model of the server's own LLM work."""

    @extend_schema(
        summary="Choose the platform model",
        request=serializers.PlatformModelBody,
        responses=serializers.PlatformModelBody,
        tags=["Settings"],
    )
    def put(self, request: Request) -> Response:
        """`{ platformModel }`; any model id is accepted, as OpenRouter's are not in the catalog."""
        body = object_body(request)
        model_id = one_line(body.get("platformModel", body.get("model")), "platformModel", limit=MODEL_ID_LIMIT)
        chosen = set_platform_model(model_id=model_id, project=project_of(request), request=request)
        return Response({"platformModel": chosen})
