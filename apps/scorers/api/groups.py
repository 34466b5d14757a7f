"""Scorer groups (sdk monitor/scorer_groups.py)."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import NotFound
from apps.projects.api.authentication import project_of
from apps.scorers import selectors, wire
from apps.scorers.api import serializers
from apps.scorers.api.judge_scorers import REFUSALS
from apps.scorers.services import groups as service
from apps.tracing.api.serializers import ErrorSerializer

TAG = "Scorer groups"


class GroupListView(APIView):
    """`GET` and `POST /agent-monitoring/scorer-groups`."""

    @extend_schema(
        operation_id="listScorerGroups",
        tags=[TAG],
        summary="List scorer groups",
        responses={200: serializers.GroupListSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        rows = selectors.list_groups(project_of(request))
        return Response({"scorerGroups": [wire.group(row) for row in rows]})

    @extend_schema(
        operation_id="createScorerGroup",
        tags=[TAG],
        summary="Create a scorer group",
        description="Members are references; each must name a scorer of the project.",
        request=serializers.GroupBodySerializer,
        responses={201: serializers.OneGroupSerializer, 400: ErrorSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        row = service.create_group(project=project_of(request), body=object_body(request), request=request)
        return Response({"scorerGroup": wire.group(row)}, status=201)


class GroupView(APIView):
    """`GET`, `PUT` and `DELETE /agent-monitoring/scorer-groups/{id}`."""

    @extend_schema(
        operation_id="getScorerGroup",
        tags=[TAG],
        summary="Read a scorer group",
        responses={200: serializers.OneGroupSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, group_id: str) -> Response:
        row = selectors.get_group(project_of(request), group_id)
        if row is None:
            raise NotFound("Scorer group not found")
        return Response({"scorerGroup": wire.group(row)})

    @extend_schema(
        operation_id="updateScorerGroup",
        tags=[TAG],
        summary="Change a scorer group",
        description="Only what is sent changes; `online` merges over the stored profile, null takes it away. The first "
        "live profile must be full: `enabled`, `sampleRate`, `alertThreshold`, `severity`.",
        request=serializers.GroupEditSerializer,
        responses={200: serializers.OneGroupSerializer, 400: ErrorSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def put(self, request: Request, group_id: str) -> Response:
        row = service.update_group(
            project=project_of(request), group_id=group_id, body=object_body(request), request=request
        )
        return Response({"scorerGroup": wire.group(row)})

    @extend_schema(
        operation_id="deleteScorerGroup",
        tags=[TAG],
        summary="Delete a scorer group",
        responses={204: OpenApiResponse(description="Gone."), 404: ErrorSerializer, **REFUSALS},
    )
    def delete(self, request: Request, group_id: str) -> Response:
        service.delete_group(project=project_of(request), group_id=group_id, request=request)
        return Response(status=204)
