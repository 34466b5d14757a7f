"""The hosted-style CI family over HTTP; keys are snake_case on these routes alone (source 1:4431-4573)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import NotFound
from apps.evaluations.services import ci_runs
from apps.projects.api.authentication import project_of

TAGS = ["hosted-style CI"]


class CIRunRequestSerializer(serializers.Serializer[Any]):
    """What to test."""

    dataset_id = serializers.CharField(help_text="A dataset with ci.enabled, or its grading config.")
    agent_name = serializers.CharField(required=False)
    pass_rate_threshold = serializers.FloatField(required=False, min_value=0, max_value=1)
    git_context = serializers.DictField(required=False)


class CIRunCreatedSerializer(serializers.Serializer[Any]):
    """An open CI run."""

    run_id = serializers.CharField()
    dataset_id = serializers.CharField()
    total_questions = serializers.IntegerField()
    test_cases = serializers.ListField(child=serializers.DictField())
    expires_at = serializers.DateTimeField()


class CIResultRequestSerializer(serializers.Serializer[Any]):
    """One answer."""

    question_index = serializers.IntegerField(min_value=0)
    output = serializers.JSONField()
    input = serializers.JSONField(required=False)
    latency_ms = serializers.FloatField(required=False)


class CIResultSerializer(serializers.Serializer[Any]):
    """The verdict on one answer."""

    question_index = serializers.IntegerField()
    rating = serializers.IntegerField()
    justification = serializers.CharField()
    passed = serializers.BooleanField()
    gate_fired = serializers.BooleanField()


class CIRunResultSerializer(serializers.Serializer[Any]):
    """The gate of a finalized run."""

    run_id = serializers.CharField()
    gate = serializers.CharField()
    pass_rate = serializers.FloatField()
    total_questions = serializers.IntegerField()
    passed_questions = serializers.IntegerField()
    scores = serializers.ListField(child=serializers.DictField())
    violations = serializers.ListField(child=serializers.DictField())
    finalized_at = serializers.DateTimeField()


class CIRunStateSerializer(serializers.Serializer[Any]):
    """Where a run stands."""

    run_id = serializers.CharField()
    status = serializers.CharField()
    gate = serializers.CharField(allow_null=True)
    results_submitted = serializers.IntegerField()
    total_questions = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    finalized_at = serializers.DateTimeField(allow_null=True)
    git_context = serializers.DictField(allow_null=True)


class TestCasesSerializer(serializers.Serializer[Any]):
    """The questions of a dataset for a CI harness."""

    dataset_id = serializers.CharField()
    total_questions = serializers.IntegerField()
    test_cases = serializers.ListField(child=serializers.DictField())


class HostedCIView(APIView):
    """A route of the family; AGENTX_HOSTED_CI=false turns all of them into a 404."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse everything when the family is off; the key is checked first."""
        super().initial(request, *args, **kwargs)
        if not settings.HOSTED_CI:
            raise NotFound


class CIRunListView(HostedCIView):
    """Opens CI runs."""

    @extend_schema(request=CIRunRequestSerializer, responses={201: CIRunCreatedSerializer}, tags=TAGS)
    def post(self, request: Request) -> Response:
        """Start a CI run over a dataset whose CI is enabled."""
        row, dataset = ci_runs.create(project=project_of(request), body=object_body(request))
        cases = ci_runs.test_cases(dataset)
        return Response(
            {
                "run_id": row.pk,
                "dataset_id": dataset.pk,
                "total_questions": len(cases),
                "test_cases": cases,
                "expires_at": row.expires_at,
            },
            status=201,
        )


class CIRunView(HostedCIView):
    """One CI run."""

    @extend_schema(responses=CIRunStateSerializer, tags=TAGS)
    def get(self, request: Request, run_id: str) -> Response:
        """Status, gate and counts."""
        return Response(ci_runs.state(ci_runs.get(project=project_of(request), run_id=run_id)))


class CIResultsView(HostedCIView):
    """Answers of a CI run."""

    @extend_schema(request=CIResultRequestSerializer, responses={200: CIResultSerializer}, tags=TAGS)
    def post(self, request: Request, run_id: str) -> Response:
        """Judge one answer; a violation with fail-fast closes the run at once."""
        return Response(ci_runs.submit(project=project_of(request), run_id=run_id, body=object_body(request)))


class CIFinalizeView(HostedCIView):
    """The gate of a CI run."""

    @extend_schema(request=None, responses={200: CIRunResultSerializer}, tags=TAGS)
    def post(self, request: Request, run_id: str) -> Response:
        """Close the run and answer with its gate."""
        return Response(ci_runs.finalize(project=project_of(request), run_id=run_id))


class DatasetTestCasesView(HostedCIView):
    """Questions without a run."""

    @extend_schema(responses=TestCasesSerializer, tags=TAGS)
    def get(self, request: Request, dataset_id: str) -> Response:
        """The questions a CI run of this dataset would ask."""
        dataset = ci_runs.dataset_for(project_of(request), dataset_id)
        cases = ci_runs.test_cases(dataset)
        return Response({"dataset_id": dataset.pk, "total_questions": len(cases), "test_cases": cases})
