"""Routes of the model catalog."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body, one_line, secret_or_none
from apps.core.api.errors import APIError, NotFound
from apps.llm.api import bodies, serializers
from apps.llm.selectors import catalog_rows
from apps.llm.services import catalog, connection, usage
from apps.projects.api.authentication import project_of

# What people call a provider elsewhere.
_PROVIDER_ALIASES = {"google": "gemini"}


class ModelsView(APIView):
    """The one catalog behind judge pickers, trace cost, portability and playground (PROJ-030)."""

    @extend_schema(summary="List the model catalog", responses=serializers.ModelList, tags=["Models"])
    def get(self, request: Request) -> Response:
        """`{ models: [...] }`, the default row first."""
        return Response({"models": [serializers.wire_model(row) for row in catalog_rows()]})

    @extend_schema(
        summary="Add a model", request=serializers.ModelBody, responses={201: serializers.OneModel}, tags=["Models"]
    )
    def post(self, request: Request) -> Response:
        """201 `{ model }`; 400 naming the field, 409 for an id that is taken."""
        body = object_body(request)
        model = catalog.create_model(
            model_id=bodies.model_id(body),
            fields=bodies.fields(body, new=True),
            rates=bodies.rates(body, new=True),
            effective_from=bodies.effective_from(body),
            project=project_of(request),
            request=request,
        )
        return Response({"model": _wire(model.model_id)}, status=201)


class ModelView(APIView):
    """One model; its id may contain slashes."""

    @extend_schema(
        summary="Change a model", request=serializers.ModelBody, responses=serializers.OneModel, tags=["Models"]
    )
    def put(self, request: Request, model_id: str) -> Response:
        """200 `{ model }`; what is absent stays, an absent `apiKey` keeps the stored one (PROJ-036)."""
        body = object_body(request)
        if "id" in body and body["id"] != model_id:
            raise APIError("id cannot be changed; add a new model instead")
        catalog.update_model(
            model_id=model_id,
            fields=bodies.fields(body, new=False),
            rates=bodies.rates(body, new=False),
            effective_from=bodies.effective_from(body),
            project=project_of(request),
            request=request,
        )
        return Response({"model": _wire(model_id)})

    @extend_schema(summary="Remove a model", responses=serializers.Success, tags=["Models"])
    def delete(self, request: Request, model_id: str) -> Response:
        """200 `{ success: true }`; costs that are stored stay."""
        catalog.delete_model(model_id=model_id, project=project_of(request), request=request)
        return Response({"success": True})


class ConnectionView(APIView):
    """Whether a custom endpoint answers."""

    @extend_schema(
        summary="Try a custom endpoint",
        request=serializers.ConnectionBody,
        responses=serializers.ConnectionAnswer,
        tags=["Models"],
    )
    def post(self, request: Request) -> Response:
        """Always 200 `{ live, error?, availableModelIds? }`, 400 only for missing fields (PROJ-041)."""
        body = object_body(request)
        state = connection.try_connection(
            base_url=one_line(body.get("baseUrl"), "baseUrl", limit=500),
            model_id=one_line(body.get("modelId"), "modelId", limit=bodies.MODEL_ID_LIMIT),
            api_key=secret_or_none(body.get("apiKey"), "apiKey"),
        )
        return Response(state)


class UnpricedModelsView(APIView):
    """Spend that nobody sees: models in use without a price."""

    @extend_schema(summary="List models in use that have no price", responses=serializers.ModelNames, tags=["Models"])
    def get(self, request: Request) -> Response:
        """`{ models: [name, …] }`: on token-bearing rows of the last 30 days, most tokens first (PROJ-042)."""
        return Response({"models": usage.unpriced_models(project=project_of(request))})


class ListedModelsView(APIView):
    """The catalog as the SDK's `list_models` reads it."""

    @extend_schema(
        summary="List models (SDK)",
        parameters=[OpenApiParameter("provider", str, description="Only this provider, without regard to case.")],
        responses={200: dict},
        tags=["Models"],
    )
    def get(self, request: Request) -> Response:
        """`{ models: [{ name, display, provider, … }] }` (sdk evaluations/client.py:234-250).

        404 when AGENTX_HOSTED_CI turns the hosted-style routes off.
        """
        if not settings.HOSTED_CI:
            raise NotFound
        provider = request.query_params.get("provider", "").strip().lower()
        provider = _PROVIDER_ALIASES.get(provider, provider)
        rows = [row for row in catalog_rows() if not provider or row.model.provider == provider]
        return Response({"models": [serializers.wire_listed_model(row) for row in rows]})


def _wire(model_id: str) -> dict[str, object]:
    return serializers.wire_model(catalog_rows(model_id=model_id)[0])
