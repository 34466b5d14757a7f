"""The OpenAPI document at /api/schema/ and the page that shows it at /api/docs/."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularSwaggerSplitView

from apps.operations.api import doors

# Mounts whose routes are documented under another one when they answer there too.
TWINS = {"agent-monitoring": "monitor", "evaluate": "custom-agent-evaluations"}

Endpoint = tuple[str, str, str, Callable[..., Any]]


class ProjectKeyScheme(OpenApiAuthenticationExtension):
    """The project key in the `x-api-key` header."""

    target_class = "apps.projects.api.authentication.ProjectKeyAuthentication"
    name = "projectKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """How the key is sent."""
        return {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The project key"}


def add_doors_and_drop_twins(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Preprocessing hook: adds the routes that answer before Django, and leaves one of each pair of twins.

    Everything under /agent-monitoring answers under /monitor as well, most of /evaluate under
    /custom-agent-evaluations; only one of the two can carry the operation id.
    """
    known = {(path, method) for path, _, method, _ in endpoints}

    def is_twin(path: str, method: str) -> bool:
        return any(
            path.startswith(f"/api/v1/{twin}/") and (path.replace(f"/{twin}/", f"/{kept}/", 1), method) in known
            for twin, kept in TWINS.items()
        )

    kept = [item for item in endpoints if not is_twin(item[0], item[2])]
    return kept + [(path, path, method, view) for path, method, view in doors.ENDPOINTS]


_REFUSAL = {
    "description": "Refused; the text says why.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "error": {"type": "string"},
                    "statusCode": {"type": "integer", "description": "Rate limiter only."},
                    "message": {"type": "string", "description": "Rate limiter only."},
                },
            }
        }
    },
}


def describe_refusals(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Postprocessing hook: what every route may answer besides its own (a bad key, the rate limit, a bad query)."""
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"].setdefault("4XX", _REFUSAL)
    return result


@lru_cache(maxsize=1)
def document() -> bytes:
    """The OpenAPI document as JSON; made once in a process."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    rendered: bytes = OpenApiJsonRenderer().render(schema, renderer_context={})
    return rendered


def schema_view(request: HttpRequest) -> HttpResponse:
    """`GET /api/schema/`."""
    return HttpResponse(document(), content_type="application/json")


class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI from the installed package, with its script in a request of its own (no inline code)."""
