"""Routes of CI gates."""

from django.urls import path

from apps.evaluations.api import gates

urlpatterns = [
    path("custom-agent-evaluations/runs/<str:run_id>/gate", gates.GateView.as_view()),
    path("evaluate/ci/gates", gates.GateHistoryView.as_view()),
    path("evaluate/ci/gates/preview", gates.GatePreviewView.as_view()),
]
