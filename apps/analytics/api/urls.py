"""Routes of analytics; each answers the same under `/monitor` and `/agent-monitoring` (MON, preamble)."""

from django.urls import URLPattern, path

from apps.analytics.api import views

_ROUTES = {
    "kpis": views.KpisView,
    "metrics": views.MetricsView,
    "cost-trend": views.CostTrendView,
    "model-comparison": views.ModelComparisonView,
    "trend": views.TrendView,
    "top-failing": views.TopFailingView,
    "scorer-activity": views.ScorerActivityView,
    "traces/<str:trace_id>/evaluations": views.TraceEvaluationsView,
}

urlpatterns: list[URLPattern] = [
    path(f"{prefix}/{route}", view.as_view())
    for prefix in ("monitor", "agent-monitoring")
    for route, view in _ROUTES.items()
]
