"""Routes of the hosted-style CI family."""

from django.urls import path

from apps.evaluations.api import ci_runs

urlpatterns = [
    path("ingest/ci-runs", ci_runs.CIRunListView.as_view()),
    path("ingest/ci-runs/<str:run_id>", ci_runs.CIRunView.as_view()),
    path("ingest/ci-runs/<str:run_id>/results", ci_runs.CIResultsView.as_view()),
    path("ingest/ci-runs/<str:run_id>/finalize", ci_runs.CIFinalizeView.as_view()),
    path("ingest/datasets/<str:dataset_id>/test-cases", ci_runs.DatasetTestCasesView.as_view()),
]
