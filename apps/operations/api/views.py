"""Bulk export as NDJSON (source 1:8086-8139). There is no import of rows: traces are replayed through ingest."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import msgspec
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core import exports
from apps.core.api.errors import APIError, NotFound
from apps.core.times import parse_iso_ms
from apps.projects.api.authentication import project_of
from apps.projects.models import Project
from apps.projects.services import audit
from apps.tracing.api.serializers import ErrorSerializer

# Rows are joined into pieces of about this size, so that a row is not a write of its own.
PIECE_BYTES = 64 * 1024
# Exports that run at the same time in one process, and how long another one waits for its turn.
EXPORTS_AT_ONCE = 3
WAIT_SECONDS = 10.0
_slots = threading.BoundedSemaphore(EXPORTS_AT_ONCE)

_MANIFEST = inline_serializer(
    "ExportManifest",
    {
        "entities": inline_serializer(
            "ExportEntity",
            {"entity": serializers.CharField(), "rows": serializers.IntegerField(), "path": serializers.CharField()},
            many=True,
        )
    },
)


class ManifestView(APIView):
    """`GET /export`: what can be exported, with live row counts."""

    @extend_schema(
        operation_id="getExportManifest",
        tags=["Export"],
        summary="List exportable entities",
        responses={200: _MANIFEST, 401: ErrorSerializer},
    )
    def get(self, request: Request) -> Response:
        project = project_of(request)
        return Response(
            {
                "entities": [
                    {"entity": item.name, "rows": item.count(project), "path": f"/api/v1/export/{item.name}"}
                    for item in exports.entities()
                ]
            }
        )


def since_of(request: Request) -> int | None:
    """The `since` parameter in milliseconds since 1970; None when it is not given. Raises 400 for other text."""
    text = request.query_params.get("since")
    if text is None or not text.strip():
        return None
    # A "+" of a time zone that was not percent-encoded arrives as a space.
    text = re.sub(r" (\d\d:?\d\d)$", r"+\1", text.strip())
    try:
        return parse_iso_ms(text)
    except (ValueError, OverflowError):
        raise APIError("since must be an ISO 8601 date or datetime") from None


def ndjson(entity: exports.Entity, project: Project, since_ms: int | None) -> Iterator[bytes]:
    """The rows of an entity, one JSON object a line, joined into pieces."""
    encoder = msgspec.json.Encoder()
    piece = bytearray()
    for row in entity.rows(project, since_ms):
        piece += encoder.encode(row)
        piece += b"\n"
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


class Stream:
    """The pieces of one export. It holds one of the few slots until it is read to its end or closed, so that slow
    readers cannot take every thread of the server."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the slot back; called by the server also when the client has gone."""
        if self._open:
            self._open = False
            _slots.release()


class EntityView(APIView):
    """`GET /export/{entity}`: the rows, one JSON object a line."""

    @extend_schema(
        operation_id="exportEntity",
        tags=["Export"],
        summary="Stream the rows of one entity",
        description="NDJSON in the stored shape, oldest first. `since` is inclusive and filters on the entity's own time.",
        parameters=[OpenApiParameter("since", str, description="ISO 8601 date or datetime.")],
        responses={
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            400: ErrorSerializer,
            401: ErrorSerializer,
            404: ErrorSerializer,
            429: ErrorSerializer,
        },
    )
    def get(self, request: Request, entity: str) -> StreamingHttpResponse:
        project = project_of(request)
        found = exports.entity(entity)
        if found is None:
            raise NotFound(f"Unknown export entity: {entity[:60]}")
        since_ms = since_of(request)
        audit.record(
            action="export.read",
            project=project,
            request=request,
            summary_fields=["since"] if since_ms is not None else [],
            target_type="export",
            target_id=found.name,
        )
        if not _slots.acquire(timeout=WAIT_SECONDS):
            raise APIError("Too many exports are running - retry later.", 429, {"Retry-After": "10"})
        return StreamingHttpResponse(Stream(ndjson(found, project, since_ms)), content_type="application/x-ndjson")
