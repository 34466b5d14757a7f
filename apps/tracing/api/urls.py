"""Read routes under /api/v1. The two doors of ingest answer in config/asgi.py, before Django."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from apps.tracing.api import views


class AnyTextConverter(StringConverter):
    """Everything, slashes and line breaks too; what follows in the route is matched from the right (TRC-049)."""

    regex = r"(?s:.+)"


register_converter(AnyTextConverter, "anytext")

urlpatterns = [
    path("ingest/traces", views.TraceListView.as_view()),
    path("ingest/traces/<str:trace_id>", views.TraceView.as_view()),
    path("ingest/sessions/<anytext:session_id>/spans", views.SessionSpansView.as_view()),
    path("agent-monitoring/sessions", views.SessionListView.as_view()),
    path("monitor/sessions", views.SessionListView.as_view()),
    path("agents", views.AgentListView.as_view()),
    path("agents/<str:agent_id>", views.AgentView.as_view()),
]
