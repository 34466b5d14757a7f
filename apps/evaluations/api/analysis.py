"""Analysis, its status and the report, under both routers."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.evaluations.services import analysis, report
from apps.projects.api.authentication import project_of

TAGS = ["evaluations"]


class AnalyzeRequestSerializer(serializers.Serializer[Any]):
    """How to analyse; everything is optional."""

    mode = serializers.CharField(required=False, help_text="Ignored: an analysis is always made before the answer.")
    qualityMode = serializers.ChoiceField(choices=["balanced", "quality_first"], required=False)
    judges = serializers.ListField(child=serializers.DictField(), required=False)


class AnalyzedSerializer(serializers.Serializer[Any]):
    """The outcome of an analysis."""

    evaluationId = serializers.CharField()
    jobId = serializers.CharField()
    status = serializers.CharField()
    mode = serializers.CharField()
    qualityMode = serializers.CharField()


class AnalysisStatusSerializer(serializers.Serializer[Any]):
    """Where an analysis stands."""

    evaluationId = serializers.CharField()
    jobId = serializers.CharField()
    status = serializers.CharField()
    progress = serializers.DictField()
    failureReason = serializers.DictField(allow_null=True)
    warnings = serializers.ListField(child=serializers.DictField())
    cost = serializers.FloatField(allow_null=True)
    etaUpdatedAt = serializers.DateTimeField(allow_null=True)
    overflowStats = serializers.DictField(allow_null=True)


class AnalyzeView(APIView):
    """Analysis of a run."""

    @extend_schema(request=AnalyzeRequestSerializer, responses={200: AnalyzedSerializer}, tags=TAGS)
    def post(self, request: Request, run_id: str) -> Response:
        """Judge a sample again, write the analysis, and answer when it is stored."""
        stored = analysis.analyze(project=project_of(request), run_id=run_id, body=object_body(request))
        return Response(
            {
                "evaluationId": run_id,
                "jobId": run_id,
                "status": stored.status,
                "mode": "sync",
                "qualityMode": stored.quality_mode,
            }
        )


class AnalysisStatusView(APIView):
    """State of the analysis of a run."""

    @extend_schema(responses=AnalysisStatusSerializer, tags=TAGS)
    def get(self, request: Request, run_id: str) -> Response:
        """Status and, after a failure, the reason."""
        return Response(report.status_document(*report.analysis_of(project_of(request), run_id)))


class ReportView(APIView):
    """Report of a run."""

    @extend_schema(responses={200: dict}, tags=TAGS)
    def get(self, request: Request, run_id: str) -> Response:
        """Narrative, statistics and low-scoring cases in one object."""
        base = settings.AGENTX_PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
        return Response(report.report_document(project_of(request), run_id, f"{base}/runs/{run_id}"))


class EvaluationRecordView(APIView):
    """An evaluation as the dashboard's router spells it."""

    @extend_schema(responses={200: dict}, tags=TAGS)
    def get(self, request: Request, run_id: str) -> Response:
        """The run's id and dataset with its analysis nested, null when there is none."""
        return Response(report.record_document(project_of(request), run_id))
