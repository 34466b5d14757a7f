"""Routes under /api/v1; clients write the first part as `monitor` or `agent-monitoring`."""

from django.urls import path

from apps.monitoring.api import views

urlpatterns = [
    path(f"{prefix}/{route}", view)
    for prefix in ("monitor", "agent-monitoring")
    for route, view in (
        ("patterns", views.PatternListView.as_view()),
        ("profiles/<str:agent_id>", views.ProfileView.as_view()),
    )
]
