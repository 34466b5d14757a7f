"""Routes under /api/v1 that this app answers."""

from django.urls import path

from apps.core.api.routes import monitoring_paths
from apps.projects.api import views

urlpatterns = [
    path("projects", views.ProjectsView.as_view(), name="projects"),
    path("projects/<str:uid>", views.ProjectView.as_view(), name="project"),
    *monitoring_paths(
        "settings/monitoring-defaults", views.MonitoringDefaultsView.as_view(), "settings-monitoring-defaults"
    ),
    *monitoring_paths("settings/api-key/regenerate", views.RegenerateKeyView.as_view(), "settings-regenerate-key"),
]
