"""Routes of runs and their results."""

from django.urls import path

from apps.evaluations.api import runs

urlpatterns = [
    path("custom-agent-evaluations/runs", runs.RunListView.as_view()),
    path("custom-agent-evaluations/runs/<str:run_id>", runs.RunView.as_view()),
    path("custom-agent-evaluations/runs/<str:run_id>/results", runs.ResultsView.as_view()),
    path("custom-agent-evaluations/runs/<str:run_id>/missing-results", runs.MissingResultsView.as_view()),
    path("custom-agent-evaluations/runs/<str:run_id>/finalize", runs.FinalizeView.as_view()),
]
