"""Runs over HTTP: create, submit results, resume, finalize, read."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import NotFound
from apps.core.ids import is_id
from apps.evaluations import selectors, wire
from apps.evaluations.api import serializers
from apps.evaluations.services import finalize, results, runs
from apps.projects.api.authentication import project_of

TAGS = ["evaluations"]
# With more results than this in all, the list of runs is sent run by run.
STREAMED_FROM = 5_000


class RunListView(APIView):
    """All runs of the project."""

    @extend_schema(
        request=serializers.RunCreateSerializer,
        responses={201: serializers.RunCreatedSerializer},
        tags=TAGS,
        operation_id="evaluation_runs_create",
    )
    def post(self, request: Request) -> Response:
        """Start a run over a dataset."""
        run = runs.create_from_body(project=project_of(request), body=object_body(request))
        return Response(
            {
                "runId": run.pk,
                "datasetId": run.dataset_id,
                "status": run.status,
                "smokeTestVariants": run.smoke_variants,
            },
            status=201,
        )

    @extend_schema(responses=serializers.RunListSerializer, tags=TAGS, operation_id="evaluation_runs_list")
    def get(self, request: Request) -> Response | StreamingHttpResponse:
        """The 50 newest runs, each in full."""
        found = list(selectors.documents(project_of(request))[: selectors.LISTED_RUNS])
        if sum(run.result_count for run in found) > STREAMED_FROM:
            return StreamingHttpResponse(wire.run_list_chunks(found), content_type="application/json")
        return Response({"runs": list(wire.run_documents(found))})


class RunView(APIView):
    """One run."""

    @extend_schema(responses=serializers.RunSerializer, tags=TAGS, operation_id="evaluation_runs_read")
    def get(self, request: Request, run_id: str) -> Response:
        """A run with its statistics and every result."""
        found: list[Any] = []
        if is_id(run_id):
            found = list(selectors.documents(project_of(request)).filter(pk=run_id))
        if not found:
            raise NotFound("Run not found")
        return Response(next(wire.run_documents(found)))


class ResultsView(APIView):
    """Results of a run."""

    @extend_schema(
        request=serializers.ResultBatchSerializer, responses={200: serializers.ResultBatchReplySerializer}, tags=TAGS
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Submit up to ten answers; each new one is judged before the reply."""
        batch_id, given = results.check_body(object_body(request))
        return Response(results.submit(project=project_of(request), run_id=run_id, batch_id=batch_id, results=given))


class MissingResultsView(APIView):
    """What a run has accepted."""

    @extend_schema(responses=serializers.MissingResultsSerializer, tags=TAGS)
    def get(self, request: Request, run_id: str) -> Response:
        """The keys that need not be sent again."""
        run = selectors.get_run(project_of(request), run_id)
        if run is None:
            raise NotFound("Run not found")
        keys = selectors.submitted_keys(run.pk)
        return Response({"runId": run.pk, "submittedKeys": keys, "submittedCount": len(keys), "missing": []})


class FinalizeView(APIView):
    """The end of a run."""

    @extend_schema(request=None, responses={200: serializers.FinalizedSerializer}, tags=TAGS)
    def post(self, request: Request, run_id: str) -> Response:
        """Close a run; its statistics are counted again from the stored results."""
        run = finalize.finalize(project=project_of(request), run_id=run_id)
        return Response({"runId": run.pk, "status": run.status, "liveStatistics": wire.live_statistics(run)})
