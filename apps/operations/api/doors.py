"""Descriptions of the routes that answer in config/asgi.py, before Django. These views exist for the document only."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.views import APIView

from apps.tracing.api.serializers import AnyJSON, ErrorSerializer


class SpanBodySerializer(serializers.Serializer):
    """One span. The snake_case spellings of the documented names are taken too and win over camelCase."""

    name = serializers.CharField()
    input = AnyJSON(required=False)
    output = AnyJSON(required=False)
    error = serializers.CharField(required=False, allow_null=True)
    latencyMs = serializers.FloatField(required=False, allow_null=True)
    framework = serializers.CharField(required=False, allow_null=True)
    model = serializers.CharField(required=False, allow_null=True)
    toolCalls = serializers.ListField(child=serializers.DictField(), required=False, allow_null=True)
    spanKind = serializers.CharField(required=False, allow_null=True)
    source = serializers.CharField(required=False, allow_null=True)  # type: ignore[assignment]
    sessionId = serializers.CharField(required=False, allow_null=True)
    metadata = serializers.DictField(required=False, allow_null=True)
    performanceSummary = serializers.DictField(required=False, allow_null=True)
    inputTokens = serializers.FloatField(required=False, allow_null=True)
    outputTokens = serializers.FloatField(required=False, allow_null=True)
    cacheReadTokens = serializers.FloatField(required=False, allow_null=True)
    cacheWriteTokens = serializers.FloatField(required=False, allow_null=True)
    spanId = serializers.CharField(required=False, allow_null=True)
    parentSpanId = serializers.CharField(required=False, allow_null=True)
    startedAtUnixNano = serializers.CharField(required=False, allow_null=True)
    agentId = serializers.CharField(required=False, allow_null=True)
    monitor = serializers.BooleanField(required=False, allow_null=True)
    patternIds = serializers.ListField(child=serializers.CharField(), required=False, allow_null=True)


_STORED = inline_serializer(
    "StoredSpan",
    {"traceId": serializers.CharField(), "trace_id": serializers.CharField(), "deduped": serializers.BooleanField()},
)
_INVALID = inline_serializer(
    "InvalidTrace",
    {
        "error": serializers.CharField(),
        "details": inline_serializer(
            "InvalidTraceDetails",
            {
                "fieldErrors": serializers.DictField(child=serializers.ListField(child=serializers.CharField())),
                "formErrors": serializers.ListField(child=serializers.CharField()),
            },
        ),
    },
)
_PARTIAL = inline_serializer(
    "OtlpAnswer",
    {
        "partialSuccess": inline_serializer(
            "OtlpPartialSuccess",
            {"rejectedSpans": serializers.IntegerField(), "errorMessage": serializers.CharField()},
            required=False,
        )
    },
)
_BUSY = {429: ErrorSerializer, 503: ErrorSerializer}


class IngestDoor(APIView):
    """`POST /ingest/traces`, see apps.tracing.ingest.http."""

    @extend_schema(
        operation_id="submitTrace",
        tags=["Tracing"],
        summary="Store one span",
        description=(
            "Answers once the span is stored. A `spanId` that the project has already stores nothing and answers"
            " the first id with `deduped: true`."
        ),
        request=SpanBodySerializer,
        responses={
            200: _STORED,
            400: ErrorSerializer,
            401: ErrorSerializer,
            413: ErrorSerializer,
            422: _INVALID,
            **_BUSY,
        },
    )
    def post(self) -> None:
        """Described here, answered elsewhere."""


class OtlpDoor(APIView):
    """`POST /otel/v1/traces`, see apps.tracing.otlp.http."""

    @extend_schema(
        operation_id="exportOtlpTraces",
        tags=["OpenTelemetry"],
        summary="OTLP/HTTP receiver",
        description="An ExportTraceServiceRequest as protobuf or JSON, plain or gzip; answers in the same encoding.",
        request={"application/x-protobuf": OpenApiTypes.BINARY, "application/json": OpenApiTypes.OBJECT},
        responses={
            (200, "application/json"): _PARTIAL,
            (200, "application/x-protobuf"): OpenApiTypes.BINARY,
            400: ErrorSerializer,
            401: ErrorSerializer,
            413: ErrorSerializer,
            415: ErrorSerializer,
            **_BUSY,
        },
    )
    def post(self) -> None:
        """Described here, answered elsewhere."""


ENDPOINTS = [
    ("/api/v1/ingest/traces", "POST", IngestDoor.as_view()),
    ("/api/v1/otel/v1/traces", "POST", OtlpDoor.as_view()),
]
