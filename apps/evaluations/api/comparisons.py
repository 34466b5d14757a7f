"""Head to head, versions, two runs case by case, and the evaluation of a recorded trace, over HTTP."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import NotFound
from apps.core.ids import is_id
from apps.core.times import datetime_to_iso
from apps.evaluations.models import PairwiseComparison
from apps.evaluations.services import comparison, pairwise, trace_evaluation
from apps.projects.api.authentication import project_of

TAGS = ["evaluations"]
LISTED = 100


class PairwiseRequestSerializer(serializers.Serializer[Any]):
    """The two runs to compare; A is the candidate, B the baseline."""

    runAId = serializers.CharField()
    runBId = serializers.CharField()
    criteria = serializers.CharField(required=False, help_text="Replaces the dataset's criteria for this comparison.")
    judgeModel = serializers.CharField(required=False)
    bothOrders = serializers.BooleanField(required=False, help_text="Judge each pair twice with the sides swapped.")


class PairwiseSerializer(serializers.Serializer[Any]):
    """A stored comparison."""

    comparison = serializers.DictField(
        help_text="batchId, runAId, runBId, summary, cases, skipped and how it was judged."
    )


class PairwiseListSerializer(serializers.Serializer[Any]):
    """Comparisons without their cases, newest first."""

    comparisons = serializers.ListField(child=serializers.DictField())


class VersionsSerializer(serializers.Serializer[Any]):
    """Versions of a dataset's runs and the comparison of the newest two."""

    versions = serializers.ListField(child=serializers.DictField())
    comparison = serializers.DictField(allow_null=True)


class RunComparisonSerializer(serializers.Serializer[Any]):
    """Two runs case by case."""

    baselineRun = serializers.DictField()
    candidateRun = serializers.DictField()
    cases = serializers.ListField(child=serializers.DictField())
    confidence = serializers.DictField()


class TraceEvaluationRequestSerializer(serializers.Serializer[Any]):
    """What to grade a trace by."""

    datasetId = serializers.CharField(help_text="A dataset, its grading config, or a judge scorer.")


class TraceEvaluationSerializer(serializers.Serializer[Any]):
    """The verdict on a trace; `rating` is null when the judge could not score."""

    run_id = serializers.CharField()
    trace_id = serializers.CharField()
    rating = serializers.FloatField(allow_null=True)
    justification = serializers.CharField(allow_null=True)
    status = serializers.CharField()


def comparison_document(row: PairwiseComparison, *, cases: bool = True) -> dict[str, Any]:
    """A comparison as the wire has it (sdk evaluations/models.py:837-856)."""
    document = {
        "batchId": row.pk,
        "runAId": row.run_a_id,
        "runBId": row.run_b_id,
        "bothOrders": row.both_orders,
        "judgeModel": row.judge_model,
        "summary": row.summary,
        "cases": row.cases,
        "skipped": row.skipped,
        "createdAt": datetime_to_iso(row.created_at),
    }
    if not cases:
        del document["cases"]
    return document


class PairwiseView(APIView):
    """Head-to-head comparisons of the project."""

    @extend_schema(request=PairwiseRequestSerializer, responses={200: PairwiseSerializer}, tags=TAGS)
    def post(self, request: Request) -> Response:
        """Judge two runs of one dataset against each other, case by case and blind."""
        row = pairwise.compare(project=project_of(request), body=object_body(request))
        return Response({"comparison": comparison_document(row)})

    @extend_schema(
        parameters=[OpenApiParameter("runAId", str), OpenApiParameter("runBId", str)],
        responses=PairwiseListSerializer,
        tags=TAGS,
        operation_id="evaluate_runs_pairwise_list",
    )
    def get(self, request: Request) -> Response:
        """Stored comparisons without their cases; nothing is judged."""
        rows = PairwiseComparison.objects.filter(project=project_of(request)).defer("cases").order_by("-id")
        for key, column in (("runAId", "run_a_id"), ("runBId", "run_b_id")):
            if value := request.query_params.get(key):
                rows = rows.filter(**{column: value}) if is_id(value) else rows.none()
        return Response({"comparisons": [comparison_document(row, cases=False) for row in rows[:LISTED]]})


class PairwiseBatchView(APIView):
    """One stored comparison."""

    @extend_schema(responses=PairwiseSerializer, tags=TAGS, operation_id="evaluate_runs_pairwise_read")
    def get(self, request: Request, batch_id: str) -> Response:
        """The comparison as it was answered when it was made."""
        row = (
            PairwiseComparison.objects.filter(project=project_of(request), pk=batch_id).first()
            if is_id(batch_id)
            else None
        )
        if row is None:
            raise NotFound("Comparison not found")
        return Response({"comparison": comparison_document(row)})


class RunComparisonView(APIView):
    """Two runs case by case."""

    @extend_schema(
        parameters=[
            OpenApiParameter("baseline", str, required=True),
            OpenApiParameter("candidate", str, required=True),
        ],
        responses=RunComparisonSerializer,
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        """Rating and answer of each case in both runs, and how sure the difference is."""
        return Response(
            comparison.compare_runs(
                project=project_of(request),
                baseline_id=request.query_params.get("baseline"),
                candidate_id=request.query_params.get("candidate"),
            )
        )


class VersionComparisonView(APIView):
    """Versions of the agent over one dataset."""

    @extend_schema(responses=VersionsSerializer, tags=TAGS)
    def get(self, request: Request, dataset_id: str) -> Response:
        """Averages by version label, and the newest version against the one before."""
        return Response(comparison.versions_of(project=project_of(request), dataset_id=dataset_id))


class TraceEvaluationView(APIView):
    """Grading of a recorded trace."""

    @extend_schema(request=TraceEvaluationRequestSerializer, responses={200: TraceEvaluationSerializer}, tags=TAGS)
    def post(self, request: Request, trace_id: str) -> Response:
        """Judge a trace's recorded input and output without calling the agent."""
        verdict = trace_evaluation.evaluate_trace(
            project=project_of(request), trace_id=trace_id, body=object_body(request)
        )
        return Response(
            {
                "run_id": verdict.run_id,
                "trace_id": verdict.trace_id,
                "rating": verdict.rating,
                "justification": verdict.justification,
                "status": "completed",
            }
        )
