"""Who is asking: the project key in `x-api-key` selects the project and nothing else does (source 1:1996-2000)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.core.api.errors import InvalidKey
from apps.projects.models import Project
from apps.projects.services.keys import project_for_key

if TYPE_CHECKING:
    # Not at run time: rest_framework.views loads the settings, which name the classes of this module.
    from rest_framework.views import APIView


class ProjectKeyAuthentication(BaseAuthentication):
    """Sets `request.auth` to the Project of the key; raises 401 for a key that opens none."""

    def authenticate(self, request: Request) -> tuple[Any, Project] | None:
        key = request.headers.get("x-api-key")
        project = project_for_key(key) if key else None
        if project is None:
            raise InvalidKey
        return (None, project)

    def authenticate_header(self, request: Request) -> str:
        return "x-api-key"


class HasProject(BasePermission):
    """Lets through what ProjectKeyAuthentication has tied to a project."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return isinstance(request.auth, Project)


def project_of(request: Request) -> Project:
    """The project a data route works on: the one shared path by which every query is scoped."""
    project = request.auth
    if not isinstance(project, Project):
        raise InvalidKey
    return project
