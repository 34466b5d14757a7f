"""Routes under /api/v1."""

from django.urls import path

from apps.operations.api import operators, views

urlpatterns = [
    path("export", views.ManifestView.as_view()),
    path("export/<str:entity>", views.EntityView.as_view()),
    path("admin/overview", operators.OverviewView.as_view()),
    path("admin/audit", operators.AuditView.as_view()),
]
