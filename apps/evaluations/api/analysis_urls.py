"""Routes of analyses. The one-segment route of the dashboard's router takes ids only, so that it hides no word."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from apps.evaluations.api import analysis

_RUN = "custom-agent-evaluations/runs/<str:run_id>"


class RunIdConverter(StringConverter):
    """Only what can be an id, so that the other words after `evaluate/` stay free."""

    regex = "[A-Za-z0-9_-]{21}"


register_converter(RunIdConverter, "run_id")

urlpatterns = [
    path(f"{_RUN}/analyze", analysis.AnalyzeView.as_view()),
    path(f"{_RUN}/analyze-status", analysis.AnalysisStatusView.as_view()),
    path(f"{_RUN}/report", analysis.ReportView.as_view()),
    path("evaluate/analyze/<str:run_id>", analysis.AnalyzeView.as_view()),
    path("evaluate/analyze/<str:run_id>/status", analysis.AnalysisStatusView.as_view()),
    path("evaluate/<run_id:run_id>", analysis.EvaluationRecordView.as_view()),
]
