"""Routes of analyses. The one-segment route of the dashboard's router takes ids only, so that it hides no word."""

from django.urls import path, re_path

from apps.evaluations.api import analysis

_RUN = "custom-agent-evaluations/runs/<str:run_id>"

urlpatterns = [
    path(f"{_RUN}/analyze", analysis.AnalyzeView.as_view()),
    path(f"{_RUN}/analyze-status", analysis.AnalysisStatusView.as_view()),
    path(f"{_RUN}/report", analysis.ReportView.as_view()),
    path("evaluate/analyze/<str:run_id>", analysis.AnalyzeView.as_view()),
    path("evaluate/analyze/<str:run_id>/status", analysis.AnalysisStatusView.as_view()),
    re_path(r"^evaluate/(?P<run_id>[A-Za-z0-9_-]{21})$", analysis.EvaluationRecordView.as_view()),
]
