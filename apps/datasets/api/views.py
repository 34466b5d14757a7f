"""Datasets and their history. The routes answer alike under /custom-agent-evaluations and /evaluate."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import APIError, NotFound
from apps.datasets import selectors, wire
from apps.datasets.api import serializers
from apps.datasets.models import Dataset
from apps.datasets.services import datasets
from apps.projects.api.authentication import project_of
from apps.projects.models import Project
from apps.tracing.api.serializers import ErrorSerializer

# Whoever saves through a key is named so in the history.
CREATOR = "API"
REFUSALS: dict[int, Any] = {401: ErrorSerializer}
_MAX_BATCH = 500


class DatasetListView(APIView):
    """`GET` and `POST /datasets`."""

    @extend_schema(
        operation_id="listDatasets",
        tags=["Datasets"],
        summary="List datasets",
        description="Full documents with their questions, newest first.",
        responses={200: serializers.DatasetListSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        rows = selectors.documents(project_of(request))
        return Response({"datasets": [wire.document(row) for row in rows]})

    @extend_schema(
        operation_id="createDataset",
        tags=["Datasets"],
        summary="Create a dataset",
        description="Questions are not validated: a malformed entry keeps its position as a blank case.",
        request=serializers.DatasetBodySerializer,
        responses={201: serializers.DatasetSerializer, 400: ErrorSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        dataset = datasets.create_dataset(
            project=project_of(request), body=object_body(request), creator=CREATOR, request=request
        )
        return Response(wire.document(dataset), status=201)


class DatasetView(APIView):
    """`GET` and `DELETE /datasets/{id}`."""

    @extend_schema(
        operation_id="getDataset",
        tags=["Datasets"],
        summary="Read a dataset",
        responses={200: serializers.DatasetSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, dataset_id: str) -> Response:
        dataset = selectors.get_document(project_of(request), dataset_id)
        if dataset is None:
            raise NotFound("Dataset not found")
        return Response(wire.document(dataset))

    @extend_schema(
        operation_id="deleteDataset",
        tags=["Datasets"],
        summary="Delete a dataset",
        description="Removes its grading config and history too; past runs stay readable. "
        "409 while the grading config is attached to a live scorer.",
        responses={200: serializers.SuccessSerializer, 404: ErrorSerializer, 409: ErrorSerializer, **REFUSALS},
    )
    def delete(self, request: Request, dataset_id: str) -> Response:
        datasets.delete_dataset(project=project_of(request), dataset_id=dataset_id, request=request)
        return Response({"success": True})


class EditableDatasetView(DatasetView):
    """The dashboard's mount can also edit."""

    @extend_schema(
        operation_id="updateDataset",
        tags=["Datasets"],
        summary="Edit a dataset",
        description="Any subset of the create keys; null clears an optional one. A change adds a version.",
        request=serializers.DatasetEditSerializer,
        responses={
            200: serializers.DatasetSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def put(self, request: Request, dataset_id: str) -> Response:
        body = object_body(request)
        base = body.get("baseVersion")
        if base is not None and (isinstance(base, bool) or not isinstance(base, int)):
            raise APIError("baseVersion must be a whole number")
        dataset = datasets.update_dataset(
            project=project_of(request),
            dataset_id=dataset_id,
            body=body,
            base_version=base,
            creator=CREATOR,
            request=request,
        )
        return Response(wire.document(dataset))


class ImportView(APIView):
    """`POST /datasets/import`."""

    @extend_schema(
        operation_id="importDataset",
        tags=["Datasets"],
        summary="Import a dataset",
        description="Takes one row of the `datasets` export, or a fetched document, and makes a copy with fresh ids.",
        request=serializers.DatasetBodySerializer,
        responses={201: serializers.DatasetSerializer, 400: ErrorSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        dataset = datasets.import_dataset(
            project=project_of(request), row=object_body(request), creator=CREATOR, request=request
        )
        return Response(wire.document(dataset), status=201)


class VersionCountsView(APIView):
    """`GET /datasets/batch/versions`."""

    @extend_schema(
        operation_id="countDatasetVersions",
        tags=["Datasets"],
        summary="Count the versions of several datasets",
        parameters=[OpenApiParameter("ids", str, description="Dataset ids, separated by commas; at most 500.")],
        responses={200: serializers.VersionCountsSerializer, 400: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        ids = [item.strip() for value in request.query_params.getlist("ids") for item in value.split(",")]
        if len(ids) > _MAX_BATCH:
            raise APIError(f"ids must be at most {_MAX_BATCH}")
        return Response({"versionCounts": selectors.version_counts(project_of(request), ids)})


class VersionListView(APIView):
    """`GET /datasets/{id}/versions`."""

    @extend_schema(
        operation_id="listDatasetVersions",
        tags=["Datasets"],
        summary="List a dataset's versions",
        description="Newest first; numbers are never given twice.",
        responses={200: serializers.VersionSerializer(many=True), 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, dataset_id: str) -> Response:
        dataset = known_dataset(project_of(request), dataset_id)
        return Response([wire.version(row) for row in selectors.versions(dataset, snapshots=True)])


class VersionView(APIView):
    """`DELETE /datasets/{id}/versions/{versionId}`."""

    @extend_schema(
        operation_id="deleteDatasetVersion",
        tags=["Datasets"],
        summary="Delete an older version",
        responses={200: serializers.DeletedSerializer, 404: ErrorSerializer, 409: ErrorSerializer, **REFUSALS},
    )
    def delete(self, request: Request, dataset_id: str, version_id: str) -> Response:
        datasets.delete_version(
            project=project_of(request), dataset_id=dataset_id, version_id=version_id, request=request
        )
        return Response({"deleted": True})


def known_dataset(project: Project, dataset_id: str) -> Dataset:
    """The dataset without its questions; raises 404."""
    dataset = selectors.list_datasets(project).filter(pk=dataset_id).first() if selectors.is_id(dataset_id) else None
    if dataset is None:
        raise NotFound("Dataset not found")
    return dataset
