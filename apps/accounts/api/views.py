"""How a dashboard or a script finds out how to connect."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.projects.selectors import default_key
from apps.projects.services.projects import ensure_default_project


class AuthConfigView(APIView):
    """GET /auth/config needs no credential in any mode (source 1:2004-2008)."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(
        summary="How to connect",
        responses=inline_serializer(
            "AuthConfig",
            {
                "mode": serializers.CharField(),
                "needsSetup": serializers.BooleanField(),
                "apiKey": serializers.CharField(),
            },
        ),
        auth=[],
        tags=["Connection"],
    )
    def get(self, request: Request) -> Response:
        """Disabled mode: `{ mode, needsSetup, apiKey }` with the default project's key (AUTH-015, AUTH-016)."""
        key = default_key() or ensure_default_project()[1]
        body = {"mode": "disabled", "needsSetup": False, "apiKey": key}
        return Response(body, headers={"Cache-Control": "no-store"})
