"""The CI gate over HTTP: a verdict on a run, the history of recorded ones, and a preview."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.evaluations import selectors, wire
from apps.evaluations.api import serializers
from apps.evaluations.services import gates
from apps.projects.api.authentication import project_of

TAGS = ["evaluations"]
_CHECKS = [
    OpenApiParameter("failUnder", float, description="Fails when the average rating is below this floor."),
    OpenApiParameter("noRegression", bool, description="Fails when the average fell below the dataset's last run."),
    OpenApiParameter("tolerance", float, description="How far it may fall.", default=0.5),
    OpenApiParameter("scorer", str, description="Gate this additional judge scorer, by id or name."),
]
_RECORDING = [
    OpenApiParameter("record", bool, description="Keep the verdict in the project's gate history."),
    OpenApiParameter("caller", str, description="Label of a recorded verdict, cut to 60 characters."),
]


class GateView(APIView):
    """The gate of one run."""

    @extend_schema(parameters=[*_CHECKS, *_RECORDING], responses=serializers.GateSerializer, tags=TAGS)
    def get(self, request: Request, run_id: str) -> Response:
        """Pass or fail a run; 200 for both."""
        query = gates.GateQuery.from_query(request.query_params)
        return Response(gates.gate(project=project_of(request), run_id=run_id, query=query))


class GateHistoryView(APIView):
    """Recorded gates."""

    @extend_schema(responses=serializers.GateListSerializer, tags=TAGS)
    def get(self, request: Request) -> Response:
        """The 50 newest recorded verdicts."""
        rows = selectors.gates_of(project_of(request))[: selectors.LISTED_GATES]
        return Response({"gates": [wire.gate_verdict(row) for row in rows]})


class GatePreviewView(APIView):
    """What a gate would say now."""

    @extend_schema(
        parameters=[OpenApiParameter("datasetId", str, required=True), *_CHECKS],
        responses=serializers.GateSerializer,
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        """The verdict on the dataset's newest completed run; never recorded."""
        dataset_id = request.query_params.get("datasetId") or ""
        query = gates.GateQuery.from_query(request.query_params) if dataset_id else gates.GateQuery()
        return Response(gates.preview(project=project_of(request), dataset_id=dataset_id, query=query))
