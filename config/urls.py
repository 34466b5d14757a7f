"""The URL table of everything that goes through Django; the raw doors stand in config/asgi.py."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from apps.core import views as core
from apps.operations.api import schema
from config.admin import lazy_admin

urlpatterns: list[URLPattern | URLResolver] = [
    lazy_admin("admin/"),
    path("api/v1/", include("apps.accounts.api.urls")),
    path("api/v1/", include("apps.projects.api.urls")),
    path("api/v1/", include("apps.llm.api.urls")),
    path("api/v1/", include("apps.tracing.api.urls")),
    path("api/v1/", include("apps.datasets.api.urls")),
    path("api/v1/", include("apps.scorers.api.urls")),
    path("api/v1/", include("apps.evaluations.api.urls")),
    path("api/v1/", include("apps.monitoring.api.urls")),
    path("api/v1/", include("apps.analytics.api.urls")),
    path("api/v1/", include("apps.operations.api.urls")),
    re_path(r"^api/schema/?$", schema.schema_view, name="schema"),
    re_path(r"^api/docs/?$", schema.DocsView.as_view(url_name="schema"), name="docs"),
    # Last of /api: whatever is unknown there is JSON. Add routes above.
    re_path(r"^api(/.*)?$", core.api_not_found),
    path("", include("apps.dashboard.urls")),
]

handler400 = "apps.core.views.bad_request"
handler403 = "apps.core.views.forbidden"
handler404 = "apps.dashboard.views.shell.page_not_found"
handler500 = "apps.dashboard.views.shell.server_error"
