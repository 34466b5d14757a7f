"""Judge scorers, their history, and their flat view as grading configs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import APIError, NotFound
from apps.projects.api.authentication import project_of
from apps.projects.models import Project
from apps.scorers import selectors, wire
from apps.scorers.api import serializers
from apps.scorers.models import JudgeScorer
from apps.scorers.services import judge_scorers as service
from apps.tracing.api.serializers import ErrorSerializer

# Whoever saves through a key is named so in the history.
CREATOR = "API"
REFUSALS: dict[int, Any] = {401: ErrorSerializer}
TAG = "Judge scorers"
_MAX_BATCH = 500


class JudgeScorerListView(APIView):
    """`GET` and `POST /agent-monitoring/judge-scorers` (sdk monitor/judge_scorers.py)."""

    @extend_schema(
        operation_id="listJudgeScorers",
        tags=[TAG],
        summary="List judge scorers",
        responses={200: serializers.JudgeScorerListSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        rows = selectors.list_judge_scorers(project_of(request))
        return Response({"judgeScorers": [wire.judge_scorer(row) for row in rows]})

    @extend_schema(
        operation_id="createJudgeScorer",
        tags=[TAG],
        summary="Create a judge scorer",
        description="Only `name` is needed. Its `_id` can grade any run at once, as `evaluationSettingsId`.",
        request=serializers.JudgeScorerBodySerializer,
        responses={
            201: serializers.OneJudgeScorerSerializer,
            400: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        row = service.create_judge_scorer(
            project=project_of(request), body=object_body(request), creator=CREATOR, request=request
        )
        return Response({"judgeScorer": wire.judge_scorer(row)}, status=201)


class JudgeScorerView(APIView):
    """`GET`, `PUT` and `DELETE /agent-monitoring/judge-scorers/{id}`."""

    @extend_schema(
        operation_id="getJudgeScorer",
        tags=[TAG],
        summary="Read a judge scorer",
        responses={200: serializers.OneJudgeScorerSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, scorer_id: str) -> Response:
        return Response({"judgeScorer": wire.judge_scorer(known(project_of(request), scorer_id))})

    @extend_schema(
        operation_id="updateJudgeScorer",
        tags=[TAG],
        summary="Change a judge scorer",
        description="Only what is sent changes; keys inside a section merge over the stored ones. `online: null` takes "
        "the live profile away. 409 for live scoring of a scorer that needs a reference answer, and for what the "
        "built-in Session Baseline Judge does not allow.",
        request=serializers.JudgeScorerEditSerializer,
        responses={
            200: serializers.OneJudgeScorerSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def put(self, request: Request, scorer_id: str) -> Response:
        body = object_body(request)
        base = body.get("baseVersion")
        if base is not None and (isinstance(base, bool) or not isinstance(base, int)):
            raise APIError("baseVersion must be a whole number")
        row = service.update_judge_scorer(
            project=project_of(request),
            scorer_id=scorer_id,
            body=body,
            base_version=base,
            creator=CREATOR,
            request=request,
        )
        return Response({"judgeScorer": wire.judge_scorer(row)})

    @extend_schema(
        operation_id="deleteJudgeScorer",
        tags=[TAG],
        summary="Delete a judge scorer",
        description="Rubric, history and live profile together; runs it graded keep their verdicts.",
        responses={
            204: OpenApiResponse(description="Gone."),
            404: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def delete(self, request: Request, scorer_id: str) -> Response:
        service.delete_judge_scorer(project=project_of(request), scorer_id=scorer_id, request=request)
        return Response(status=204)


class CloneView(APIView):
    """`POST /agent-monitoring/judge-scorers/{id}/clone`."""

    @extend_schema(
        operation_id="cloneJudgeScorer",
        tags=[TAG],
        summary="Copy a judge scorer or template into an own one",
        description="The copy has no live profile and is not the default for runs; the source stays.",
        request=serializers.CloneSerializer,
        responses={
            201: serializers.OneJudgeScorerSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            **REFUSALS,
        },
    )
    def post(self, request: Request, scorer_id: str) -> Response:
        row = service.clone_judge_scorer(
            project=project_of(request),
            scorer_id=scorer_id,
            name=object_body(request).get("name"),
            creator=CREATOR,
            request=request,
        )
        return Response({"judgeScorer": wire.judge_scorer(row)}, status=201)


class VersionListView(APIView):
    """A scorer's history, under both spellings."""

    @extend_schema(
        operation_id="listJudgeScorerVersions",
        tags=[TAG],
        summary="List a judge scorer's versions",
        description="Newest first; numbers are never given twice.",
        responses={200: serializers.ScorerVersionSerializer(many=True), 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, scorer_id: str) -> Response:
        row = known(project_of(request), scorer_id)
        return Response([wire.version(entry) for entry in selectors.versions(row)])


class VersionView(APIView):
    """One entry of a scorer's history, under both spellings."""

    @extend_schema(
        operation_id="deleteJudgeScorerVersion",
        tags=[TAG],
        summary="Delete an older version of a judge scorer",
        responses={
            200: serializers.ScorerVersionDeletedSerializer,
            404: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def delete(self, request: Request, scorer_id: str, version_id: str) -> Response:
        service.delete_version(project=project_of(request), scorer_id=scorer_id, version_id=version_id, request=request)
        return Response({"deleted": True})


@extend_schema_view(get=extend_schema(operation_id="listEvaluationSettingsVersions"))
class SettingsVersionListView(VersionListView):
    """`GET /evaluate/evaluationSettings/{id}/versions`."""


@extend_schema_view(delete=extend_schema(operation_id="deleteEvaluationSettingsVersion"))
class SettingsVersionView(VersionView):
    """`DELETE /evaluate/evaluationSettings/{id}/versions/{versionId}`."""


class VersionCountsView(APIView):
    """`GET /evaluate/evaluationSettings/batch/versions`."""

    @extend_schema(
        operation_id="countJudgeScorerVersions",
        tags=[TAG],
        summary="Count the versions of several judge scorers",
        parameters=[OpenApiParameter("ids", str, description="Scorer ids, separated by commas; at most 500.")],
        responses={200: serializers.ScorerVersionCountsSerializer, 400: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        ids = [item.strip() for value in request.query_params.getlist("ids") for item in value.split(",")]
        if len(ids) > _MAX_BATCH:
            raise APIError(f"ids must be at most {_MAX_BATCH}")
        return Response({"versionCounts": selectors.version_counts(project_of(request), ids)})


class SettingsListView(APIView):
    """`GET` and `POST /custom-agent-evaluations/evaluation-settings` (sdk evaluations/client.py:288-304)."""

    @extend_schema(
        operation_id="listEvaluationSettings",
        tags=[TAG],
        summary="List grading configs",
        description="The flat view of every judge scorer; a dataset's own grading is not among them.",
        responses={200: serializers.GradingConfigListSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        rows = selectors.list_judge_scorers(project_of(request))
        return Response({"evaluationSettings": [wire.settings_document(row) for row in rows]})

    @extend_schema(
        operation_id="createEvaluationSettings",
        tags=[TAG],
        summary="Create a grading config",
        description="A judge scorer without live profile, reusable with any dataset.",
        request=serializers.GradingConfigBodySerializer,
        responses={201: serializers.GradingConfigSerializer, 400: ErrorSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        row = service.create_from_settings(
            project=project_of(request), body=object_body(request), creator=CREATOR, request=request
        )
        return Response(wire.settings_document(row), status=201)


class SettingsView(APIView):
    """`GET /custom-agent-evaluations/evaluation-settings/{id}` (sdk evaluations/client.py:306-312)."""

    @extend_schema(
        operation_id="getEvaluationSettings",
        tags=[TAG],
        summary="Read a grading config",
        description="Any judge scorer's id.",
        responses={200: serializers.GradingConfigSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, scorer_id: str) -> Response:
        row = known(project_of(request), scorer_id, missing="Evaluation settings not found")
        return Response(wire.settings_document(row))


def known(project: Project, scorer_id: str, *, missing: str = "Judge scorer not found") -> JudgeScorer:
    """The scorer; raises 404."""
    row = selectors.get_judge_scorer(project, scorer_id)
    if row is None:
        raise NotFound(missing)
    return row
