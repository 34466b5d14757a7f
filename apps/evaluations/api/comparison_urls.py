"""Routes of comparisons and trace evaluation. Fixed words stand before ids (SDK-008)."""

from django.urls import path

from apps.evaluations.api import comparisons

urlpatterns = [
    path("evaluate/runs/pairwise", comparisons.PairwiseView.as_view()),
    path("evaluate/runs/pairwise/<str:batch_id>", comparisons.PairwiseBatchView.as_view()),
    path("evaluate/runs/compare", comparisons.RunComparisonView.as_view()),
    path("evaluate/datasets/<str:dataset_id>/run-comparison", comparisons.VersionComparisonView.as_view()),
    path("ingest/traces/<str:trace_id>/evaluate", comparisons.TraceEvaluationView.as_view()),
]
