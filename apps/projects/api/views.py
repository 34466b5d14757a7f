"""Routes of projects and of their settings that no other app takes part in."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body, one_line
from apps.projects.api import serializers
from apps.projects.api.authentication import project_of
from apps.projects.selectors import list_projects
from apps.projects.services.keys import regenerate_key
from apps.projects.services.projects import create_project, delete_project
from apps.projects.services.settings import update_monitoring_defaults, wire_monitoring_defaults

PROJECT_NAME_LIMIT = 200


class ProjectsView(APIView):
    """All projects of the instance, and a new one. Any valid project key may ask (PROJ-006, disabled mode)."""

    @extend_schema(summary="List projects", responses=serializers.ProjectList, tags=["Projects"])
    def get(self, request: Request) -> Response:
        """`{ projects: [...] }` with each project's key (sdk projects.py:55-57)."""
        return Response({"projects": [serializers.wire_project(project) for project in list_projects()]})

    @extend_schema(
        summary="Create a project",
        request=serializers.ProjectBody,
        responses={201: serializers.OneProject},
        tags=["Projects"],
    )
    def post(self, request: Request) -> Response:
        """201 `{ project }` with the new project's key (sdk projects.py:51-53)."""
        name = one_line(object_body(request).get("name"), "name", limit=PROJECT_NAME_LIMIT)
        project, key = create_project(name=name, request=request)
        return Response({"project": serializers.wire_project(project, key)}, status=201)


class ProjectView(APIView):
    """One project."""

    @extend_schema(
        summary="Delete a project and everything in it",
        responses={204: OpenApiResponse(description="Gone.")},
        tags=["Projects"],
    )
    def delete(self, request: Request, uid: str) -> Response:
        """204; irreversible (sdk projects.py:58-62)."""
        delete_project(uid=uid, request=request)
        return Response(status=204)


class MonitoringDefaultsView(APIView):
    """The calling project's monitoring settings."""

    @extend_schema(
        summary="Change monitoring settings",
        request=serializers.MonitoringDefaultsSerializer,
        responses=serializers.MonitoringDefaultsAnswer,
        tags=["Settings"],
    )
    def put(self, request: Request) -> Response:
        """Sparse update; answers the whole (PROJ-014)."""
        row = update_monitoring_defaults(project=project_of(request), changes=object_body(request), request=request)
        return Response({"monitoringDefaults": wire_monitoring_defaults(row)})


class RegenerateKeyView(APIView):
    """The calling project's key."""

    @extend_schema(
        summary="Replace the project's key", request=None, responses=serializers.ApiKeyAnswer, tags=["Settings"]
    )
    def post(self, request: Request) -> Response:
        """`{ apiKey }`: the new key; the calling one is dead from now on (PROJ-019)."""
        return Response({"apiKey": regenerate_key(project=project_of(request), request=request)})
