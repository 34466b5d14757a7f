"""Read routes of traces and sessions, and the agent registry."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core import windows
from apps.core.api.errors import APIError, NotFound
from apps.projects.api.authentication import project_of
from apps.tracing import selectors
from apps.tracing.api import serializers, wire
from apps.tracing.services.agents import create_agent

_REFUSALS = {401: serializers.ErrorSerializer}


def query_limit(request: Request, default: int, most: int) -> int:
    """The `limit` of a list, clamped to 1..most. Raises 400 for text that is no whole number."""
    text = request.query_params.get("limit")
    if text is None or not text.strip():
        return default
    try:
        return min(max(int(text), 1), most)
    except ValueError:
        raise APIError("limit must be a number") from None


def trace_filters(request: Request) -> selectors.TraceFilters:
    """The filters of the trace list from its query; labels are folded as at ingest. Raises 400 for odd ones."""
    query = request.query_params
    source = (query.get("source") or "all").strip()
    if source not in selectors.SOURCES:
        raise APIError('source must be "production", "eval" or "all"')
    labels = dict.fromkeys(label for value in query.getlist("framework") if (label := value.strip().lower()[:64]))
    search = (query.get("search") or query.get("q") or "").strip()
    return selectors.TraceFilters(search=search, frameworks=tuple(labels), source=source)


class TraceListView(APIView):
    """`GET /ingest/traces`: the project's roots, newest first."""

    @extend_schema(
        operation_id="listTraces",
        tags=["Tracing"],
        summary="List traces",
        parameters=[
            OpenApiParameter("limit", int, description="Page size, 1 to 100 (default 50); clamped."),
            OpenApiParameter("cursor", str, description="`nextCursor` of the previous page."),
            OpenApiParameter(
                "framework", str, many=True, description='Platform label; repeat for a union, "other" finds unlabelled.'
            ),
            OpenApiParameter("search", str, description="Text search over name, input, output, error and ids."),
            OpenApiParameter("source", str, enum=selectors.SOURCES, description="Which traffic (default all)."),
        ],
        responses={200: serializers.TraceListSerializer, 400: serializers.ErrorSerializer, **_REFUSALS},
    )
    def get(self, request: Request) -> HttpResponse:
        limit = query_limit(request, selectors.PAGE_DEFAULT, selectors.PAGE_MAX)
        filters = trace_filters(request)
        cursor = request.query_params.get("cursor") or None
        try:
            page = selectors.list_traces(project_of(request), filters, cursor, limit)
        except selectors.UnknownCursor:
            raise APIError("Unknown cursor") from None
        return wire.json_response(
            wire.TraceList(
                total_count=page.total,
                traces=[wire.listed_trace(row) for row in page.rows],
                has_next_page=page.next_cursor is not None,
                next_cursor=page.next_cursor,
            )
        )


class TraceView(APIView):
    """`GET /ingest/traces/{id}`: one span, root or child, in full."""

    @extend_schema(
        operation_id="getTrace",
        tags=["Tracing"],
        summary="Read one trace or span",
        responses={200: serializers.SpanSerializer, 404: serializers.ErrorSerializer, **_REFUSALS},
    )
    def get(self, request: Request, trace_id: str) -> HttpResponse:
        project = project_of(request)
        row = selectors.get_span(project, trace_id)
        if row is None:
            raise NotFound("Trace not found")
        return wire.json_response(wire.full_span(project, row))


class SessionSpansView(APIView):
    """`GET /ingest/sessions/{id}/spans`: every row of a session, oldest start first, never paged."""

    @extend_schema(
        operation_id="listSessionSpans",
        tags=["Tracing"],
        summary="Read every span of a session",
        responses={200: serializers.SpansSerializer, **_REFUSALS},
    )
    def get(self, request: Request, session_id: str) -> HttpResponse:
        project = project_of(request)
        rows = selectors.session_spans(project, session_id)
        return wire.json_response({"spans": [wire.full_span(project, row) for row in rows]})


class SessionListView(APIView):
    """`GET /agent-monitoring/sessions`: sessions, most recently active first."""

    DEFAULT = 100
    MOST = 500

    @extend_schema(
        operation_id="listSessions",
        tags=["Tracing"],
        summary="List sessions",
        parameters=[
            OpenApiParameter("window", str, enum=list(windows.NAMED), description="Default 7d; unknown reads as 7d."),
            OpenApiParameter("limit", int, description="Page size, 1 to 500 (default 100); clamped."),
            OpenApiParameter("cursor", str, description="`nextCursor` of the previous page."),
            OpenApiParameter("search", str, description="Text inside the session id."),
        ],
        responses={200: serializers.SessionListSerializer, 400: serializers.ErrorSerializer, **_REFUSALS},
    )
    def get(self, request: Request) -> HttpResponse:
        query = request.query_params
        window = windows.parse_named(query.get("window"))
        limit = query_limit(request, self.DEFAULT, self.MOST)
        try:
            page = selectors.list_sessions(
                project_of(request),
                window.start_ms,
                limit,
                query.get("cursor") or None,
                (query.get("search") or "").strip(),
                count=False,
            )
        except selectors.UnknownCursor:
            raise APIError("Unknown cursor") from None
        return wire.json_response(
            {
                "window": window.name,
                "sessions": [wire.session(row) for row in page.rows],
                "hasNextPage": page.next_cursor is not None,
                "nextCursor": page.next_cursor,
            }
        )


class AgentListView(APIView):
    """`GET /agents` and `POST /agents`."""

    @extend_schema(
        operation_id="listAgents",
        tags=["Agents"],
        summary="List agents",
        responses={200: serializers.AgentListSerializer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        agents = selectors.list_agents(project_of(request))
        return Response({"agents": [wire.listed_agent(row) for row in agents]})

    @extend_schema(
        operation_id="registerAgent",
        tags=["Agents"],
        summary="Register an agent",
        description="Always makes a new row, also when an agent of that name exists.",
        request=serializers.NewAgentSerializer,
        responses={201: serializers.OneAgentSerializer, 400: serializers.ErrorSerializer, **_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        body = request.data
        name = body.get("name") if isinstance(body, dict) else None
        if not isinstance(name, str) or not name.strip():
            raise APIError("name is required")
        created = create_agent(project=project_of(request), name=name)
        return Response({"agent": wire.agent(created)}, status=201)


class AgentView(APIView):
    """`GET /agents/{id}`. Agents cannot be deleted: traces, profiles and signals hang on the row."""

    @extend_schema(
        operation_id="getAgent",
        tags=["Agents"],
        summary="Read one agent",
        responses={200: serializers.OneAgentSerializer, 404: serializers.ErrorSerializer, **_REFUSALS},
    )
    def get(self, request: Request, agent_id: str) -> Response:
        found = selectors.get_agent(project_of(request), agent_id)
        if found is None:
            raise NotFound("Agent not found")
        return Response({"agent": wire.agent(found)})

    @extend_schema(exclude=True)
    def delete(self, request: Request, agent_id: str) -> Response:
        raise NotFound
