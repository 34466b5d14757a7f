"""Analytics over HTTP: thin views, one a route; what they answer is in apps.analytics.selectors."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.analytics import selectors
from apps.analytics.api import serializers
from apps.analytics.filters import FILTER_NAMES, MetricFilters
from apps.projects.api.authentication import project_of

_WINDOW = OpenApiParameter("window", str, description="24h, 7d or 30d; anything else reads as 7d.", default="7d")
_FREE_WINDOW = OpenApiParameter(
    "window", str, description="1h to 90d, in hours or days; anything else reads as 1d.", default="1d"
)
_FILTERS = [OpenApiParameter(name, str, description=f"Only this {name}.") for name in FILTER_NAMES]


class KpisView(APIView):
    """The KPI strip of a window, with changes against the window before."""

    @extend_schema(parameters=[_WINDOW], responses=serializers.KpisSerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """KPIs of checked production traces."""
        return Response(selectors.kpis(project_of(request), request.query_params.get("window")))


class MetricsView(APIView):
    """The metrics grid under its filters."""

    @extend_schema(parameters=[_FREE_WINDOW, *_FILTERS], responses=serializers.MetricsSerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """Spans by kind, latency, tokens, cost, tools and platforms over time."""
        filters = MetricFilters.from_query(request.query_params)
        return Response(selectors.metrics(project_of(request), request.query_params.get("window"), filters))


class CostTrendView(APIView):
    """Spend over time."""

    @extend_schema(parameters=[_WINDOW], responses=serializers.CostTrendSerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """Priced spend by point, stacked by model."""
        return Response(selectors.cost_trend(project_of(request), request.query_params.get("window")))


class ModelComparisonView(APIView):
    """Models side by side."""

    @extend_schema(parameters=[_WINDOW], responses=serializers.ModelComparisonSerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """Trace count, health, latency and cost of every model in real traffic."""
        return Response(selectors.model_comparison(project_of(request), request.query_params.get("window")))


class TrendView(APIView):
    """Health over time."""

    @extend_schema(parameters=[_WINDOW], responses=serializers.TrendSerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """Healthy and failing runs by point."""
        return Response(selectors.trend(project_of(request), request.query_params.get("window")))


class TopFailingView(APIView):
    """What failed most."""

    @extend_schema(parameters=[_WINDOW], responses=serializers.TopFailingSerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """Agents, tools and failure patterns with the most failures."""
        return Response(selectors.top_failing(project_of(request), request.query_params.get("window")))


class ScorerActivityView(APIView):
    """Signals by scorer."""

    @extend_schema(parameters=[_WINDOW], responses=serializers.ScorerActivitySerializer, tags=["monitor"])
    def get(self, request: Request) -> Response:
        """How often each scorer raised a signal, by day."""
        return Response(selectors.scorer_activity(project_of(request), request.query_params.get("window")))


class TraceEvaluationsView(APIView):
    """Verdicts on one trace."""

    @extend_schema(responses=serializers.EvaluationsSerializer, tags=["monitor"])
    def get(self, request: Request, trace_id: str) -> Response:
        """Verdicts of all evaluators on the trace, newest first. 404 for an unknown trace."""
        return Response(selectors.trace_evaluations(project_of(request), trace_id))
