"""Live profiles of judge scorers by themselves: the older surface (sdk monitor/online_evaluators.py)."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.api.bodies import object_body
from apps.core.api.errors import NotFound
from apps.projects.api.authentication import project_of
from apps.scorers import selectors, wire
from apps.scorers.api import serializers
from apps.scorers.api.judge_scorers import CREATOR, REFUSALS
from apps.scorers.services import evaluators as service
from apps.tracing.api.serializers import ErrorSerializer

TAG = "Online evaluators"


class EvaluatorListView(APIView):
    """`GET` and `POST /monitor/online-evaluators`."""

    @extend_schema(
        operation_id="listOnlineEvaluators",
        tags=[TAG],
        summary="List online evaluators",
        description="Every judge scorer that has a live profile, the built-in Session Baseline Judge included.",
        responses={200: serializers.EvaluatorListSerializer, **REFUSALS},
    )
    def get(self, request: Request) -> Response:
        rows = selectors.list_evaluators(project_of(request))
        return Response({"evaluators": [wire.evaluator(row) for row in rows]})

    @extend_schema(
        operation_id="createOnlineEvaluator",
        tags=[TAG],
        summary="Create an online evaluator",
        description="Gives a grading config a live profile. A config that already has one is copied; the answer's "
        "`evaluationSettingsId` is then the copy.",
        request=serializers.EvaluatorBodySerializer,
        responses={201: serializers.OneEvaluatorSerializer, 400: ErrorSerializer, 409: ErrorSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        row = service.create_evaluator(
            project=project_of(request), body=object_body(request), creator=CREATOR, request=request
        )
        return Response({"evaluator": wire.evaluator(row)}, status=201)


class EvaluatorView(APIView):
    """`GET`, `PUT` and `DELETE /monitor/online-evaluators/{profileId}`."""

    @extend_schema(
        operation_id="getOnlineEvaluator",
        tags=[TAG],
        summary="Read an online evaluator",
        responses={200: serializers.OneEvaluatorSerializer, 404: ErrorSerializer, **REFUSALS},
    )
    def get(self, request: Request, profile_id: str) -> Response:
        row = selectors.get_evaluator(project_of(request), profile_id)
        if row is None:
            raise NotFound("Online evaluator not found")
        return Response({"evaluator": wire.evaluator(row)})

    @extend_schema(
        operation_id="updateOnlineEvaluator",
        tags=[TAG],
        summary="Change an online evaluator",
        description="Only what is sent changes; `alertThreshold: null` scores without ever raising a signal.",
        request=serializers.EvaluatorEditSerializer,
        responses={
            200: serializers.OneEvaluatorSerializer,
            400: ErrorSerializer,
            404: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def put(self, request: Request, profile_id: str) -> Response:
        row = service.update_evaluator(
            project=project_of(request),
            profile_id=profile_id,
            body=object_body(request),
            creator=CREATOR,
            request=request,
        )
        return Response({"evaluator": wire.evaluator(row)})

    @extend_schema(
        operation_id="deleteOnlineEvaluator",
        tags=[TAG],
        summary="Delete an online evaluator",
        description="Takes the live profile away; the rubric stays.",
        responses={
            204: OpenApiResponse(description="Gone."),
            404: ErrorSerializer,
            409: ErrorSerializer,
            **REFUSALS,
        },
    )
    def delete(self, request: Request, profile_id: str) -> Response:
        service.delete_evaluator(project=project_of(request), profile_id=profile_id, request=request)
        return Response(status=204)
