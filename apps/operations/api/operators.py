"""Routes for who runs the instance: /api/v1/admin/* with the operator token (source 1:2094-2096, 1:8277).

Without AGENTX_ADMIN_TOKEN they do not exist: 404, whatever headers are sent.
"""

from __future__ import annotations

import hmac
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.errors import APIError, NotFound
from apps.core.times import datetime_to_iso
from apps.operations.api.views import since_of
from apps.operations.overview import overview
from apps.projects.models import AuditEvent
from apps.projects.selectors import audit_events

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


class OperatorToken(BaseAuthentication):
    """Compares `x-admin-token` in constant time; 404 when the instance has no operator token, 401 for a wrong one."""

    def authenticate(self, request: Request) -> tuple[Any, Any]:
        expected = settings.ADMIN_TOKEN
        if not expected:
            raise NotFound
        given = request.headers.get("x-admin-token", "")
        if not hmac.compare_digest(given.encode(), expected.encode()):
            raise APIError("Invalid admin token", 401)
        return (None, "operator")


class OperatorView(APIView):
    """Base of the operator routes."""

    authentication_classes = (OperatorToken,)
    permission_classes = ()


def wire_event(event: AuditEvent) -> dict[str, Any]:
    """A row of the audit trail (AUTH-093)."""
    return {
        "_id": event.id,
        "createdAt": datetime_to_iso(event.created_at),
        "action": event.action,
        "actor": {"type": event.actor_type, "id": event.actor_id or None, "email": event.actor_email or None},
        "projectId": event.project_uid or None,
        "organizationId": event.organization_uid or None,
        "ip": event.ip or None,
        "targetType": event.target_type or None,
        "targetId": event.target_id or None,
        "summary": event.summary,
        "status": event.status,
    }


class OverviewView(OperatorView):
    """`GET /admin/overview`."""

    @extend_schema(tags=["Operators"], summary="Organizations and their last 24 hours", responses={200: dict}, auth=[])
    def get(self, request: Request) -> Response:
        """`{ organizations, unassigned }`."""
        return Response(overview())


class AuditView(OperatorView):
    """`GET /admin/audit`."""

    @extend_schema(
        tags=["Operators"],
        summary="The audit trail",
        parameters=[
            OpenApiParameter("since", str, description="ISO 8601 date or datetime, inclusive."),
            OpenApiParameter("action", str, description="Exact name, e.g. project.create."),
            OpenApiParameter("limit", int, description="1 to 1000, by default 100."),
        ],
        responses={200: dict},
        auth=[],
    )
    def get(self, request: Request) -> Response:
        """`{ events: [...] }`, newest first."""
        events = audit_events(
            since_ms=since_of(request),
            action=request.query_params.get("action", "").strip(),
            limit=_limit_of(request),
        )
        return Response({"events": [wire_event(event) for event in events]})


def _limit_of(request: Request) -> int:
    text = request.query_params.get("limit", "").strip()
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal() or not text.isascii() or int(text[:9]) < 1:
        raise APIError("limit must be a whole number from 1 to 1000")
    return min(int(text[:9]), MAX_LIMIT)
