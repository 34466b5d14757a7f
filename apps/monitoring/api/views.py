"""Patterns (none yet) and the monitoring profiles of agents."""

from __future__ import annotations

import math
from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.errors import APIError, NotFound
from apps.projects.api.authentication import project_of
from apps.projects.services import audit
from apps.tracing import selectors
from apps.tracing.api import wire
from apps.tracing.api.serializers import ErrorSerializer, ProfileSerializer
from apps.tracing.models import Agent
from apps.tracing.services.agents import save_profile

_PATTERNS = inline_serializer("PatternList", {"patterns": serializers.ListField(child=serializers.DictField())})
_PROFILE = inline_serializer("OneProfile", {"profile": ProfileSerializer(allow_null=True)})


class PatternListView(APIView):
    """`GET /monitor/patterns`; also what `client.ping()` asks (SDK-011)."""

    @extend_schema(
        operation_id="listPatterns",
        tags=["Monitoring"],
        summary="List patterns",
        responses={200: _PATTERNS, 401: ErrorSerializer},
    )
    def get(self, request: Request) -> Response:
        project_of(request)
        return Response({"patterns": []})


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 50 or "\x00" in value:
        raise ValueError("must be text of at most 50 characters")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1")
    return float(value)


def _days(value: Any) -> int:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= 100_000:
        raise ValueError("must be a whole number of days")
    return value


def _channels(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > 50 or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of texts")
    return [item.replace("\x00", "\ufffd") for item in value]


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    return value


def _optional_object(value: Any) -> dict[str, Any] | None:
    return None if value is None else _object(value)


# Wire name: field of AgentProfile, and what its value must be.
_FIELDS = {
    "enabled": ("enabled", _boolean),
    "failureDetectionEnabled": ("failure_detection_enabled", _boolean),
    "infoDetectionEnabled": ("info_detection_enabled", _boolean),
    "topicsEnabled": ("topics_enabled", _boolean),
    "coverageMode": ("coverage_mode", _text),
    "sampleRate": ("sample_rate", _rate),
    "channels": ("channels", _channels),
    "datasetId": ("dataset_id", _optional_text),
    "thresholdOverrides": ("threshold_overrides", _object),
    "retentionDays": ("retention_days", _days),
    "approvalPolicy": ("approval_policy", _optional_object),
}


def profile_changes(body: Any) -> dict[str, Any]:
    """The fields of AgentProfile that a body changes; unknown keys are ignored. Raises 400 naming the bad key."""
    if not isinstance(body, dict):
        raise APIError("Request body must be an object")
    changes = {}
    for key, (name, check) in _FIELDS.items():
        if key not in body:
            continue
        try:
            changes[name] = check(body[key])
        except ValueError as error:
            raise APIError(f"{key} {error}") from None
    return changes


class ProfileView(APIView):
    """`GET` and `PUT /monitor/profiles/{agentId}` (source 1:7347-7364)."""

    @extend_schema(
        operation_id="getMonitoringProfile",
        tags=["Monitoring"],
        summary="Read an agent's monitoring profile",
        description="`profile` is null until it has been configured.",
        responses={200: _PROFILE, 401: ErrorSerializer, 404: ErrorSerializer},
    )
    def get(self, request: Request, agent_id: str) -> Response:
        profile = getattr(self._agent(request, agent_id), "profile", None)
        return Response({"profile": None if profile is None else wire.profile(profile)})

    @extend_schema(
        operation_id="putMonitoringProfile",
        tags=["Monitoring"],
        summary="Change an agent's monitoring profile",
        description="Creates the profile when there is none; only the keys sent are changed.",
        request=ProfileSerializer(partial=True),
        responses={200: _PROFILE, 400: ErrorSerializer, 401: ErrorSerializer, 404: ErrorSerializer},
    )
    def put(self, request: Request, agent_id: str) -> Response:
        agent = self._agent(request, agent_id)
        changes = profile_changes(request.data)
        profile = save_profile(agent=agent, changes=changes)
        audit.record(
            action="monitorProfile.update",
            project=project_of(request),
            request=request,
            summary_fields=[key for key, (name, _) in _FIELDS.items() if name in changes],
            target_type="agent",
            target_id=agent.pk,
        )
        return Response({"profile": wire.profile(profile)})

    def _agent(self, request: Request, agent_id: str) -> Agent:
        agent = selectors.get_agent(project_of(request), agent_id)
        if agent is None:
            raise NotFound("Agent not found")
        return agent
