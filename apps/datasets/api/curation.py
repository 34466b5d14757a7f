"""Cases from production and from texts: preview, draft, add, synthesize."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import APIError
from apps.datasets.api import serializers
from apps.datasets.api.views import CREATOR, REFUSALS
from apps.datasets.services import cases, drafting
from apps.projects.api.authentication import project_of
from apps.tracing.api.serializers import ErrorSerializer


class CasePreviewView(APIView):
    """`POST /datasets/case-preview`."""

    @extend_schema(
        operation_id="previewCase",
        tags=["Datasets"],
        summary="Draft a case from a trace or session",
        description="Stores nothing. With both ids the trace is taken; expected results are null for a person to write.",
        request=serializers.CasePreviewBodySerializer,
        responses={200: serializers.CasePreviewSerializer, 400: ErrorSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        body = object_body(request)
        return Response(
            cases.case_preview(
                project=project_of(request),
                trace_id=_optional(body, "traceId"),
                session_id=_optional(body, "sessionId"),
            )
        )


class SuggestExpectedView(APIView):
    """`POST /datasets/suggest-expected`."""

    @extend_schema(
        operation_id="suggestExpected",
        tags=["Datasets"],
        summary="Draft an expected answer",
        description="One judge call; saves nothing. 422 without a judge, or when its quota is used up.",
        request=serializers.SuggestBodySerializer,
        responses={
            200: serializers.SuggestionSerializer,
            400: ErrorSerializer,
            422: ErrorSerializer,
            502: ErrorSerializer,
            **REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        body = object_body(request)
        query = _optional(body, "query")
        if query is None:
            raise APIError("query is required")
        return Response(
            drafting.suggest_expected(
                project=project_of(request),
                query=query,
                actual_output=_optional(body, "actualOutput"),
                error=_optional(body, "error"),
            )
        )


class CaseListView(APIView):
    """`POST /datasets/{id}/cases`."""

    @extend_schema(
        operation_id="addCase",
        tags=["Datasets"],
        summary="Add a case",
        description="409 with `duplicate` when the dataset has the case already (same-source, same-query, "
        "similar-query, in this order); `dedupe: false` stores it regardless.",
        request=serializers.AddCaseBodySerializer,
        responses={
            201: serializers.AddedCaseSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            409: serializers.DuplicateSerializer,
            **REFUSALS,
        },
    )
    def post(self, request: Request, dataset_id: str) -> Response:
        body = object_body(request)
        try:
            count = cases.add_case(
                project=project_of(request),
                dataset_id=dataset_id,
                case=body.get("case"),
                dedupe=body.get("dedupe") is not False,
                creator=CREATOR,
                request=request,
            )
        except cases.DuplicateCase as error:
            return Response({"error": error.message, "duplicate": error.duplicate.wire()}, status=409)
        return Response({"ok": True, "caseCount": count}, status=201)


class SynthesizeView(APIView):
    """`POST /evaluate/synthesize-cases`."""

    @extend_schema(
        operation_id="synthesizeCases",
        tags=["Datasets"],
        summary="Draft cases from a text",
        description="Plain text or Markdown; stores nothing. `count` is clamped to 1..20 (default 5).",
        request=serializers.SynthesizeBodySerializer,
        responses={
            200: serializers.SynthesizedSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            422: ErrorSerializer,
            502: ErrorSerializer,
            **REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        body = object_body(request)
        text = _optional(body, "sourceText")
        if text is None:
            raise APIError("sourceText is required")
        return Response(
            drafting.synthesize_cases(
                project=project_of(request),
                source_text=text,
                count=body.get("count"),
                guidance=_optional(body, "guidance") or "",
                dataset_id=_optional(body, "datasetId"),
            )
        )


def _optional(body: dict[str, Any], key: str) -> str | None:
    """A text of the body, None when it is absent, null or blank; raises 400 for any other kind of value."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise APIError(f"{key} must be text")
    return value if value.strip() else None
