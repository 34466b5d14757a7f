"""The URL table of everything that goes through Django; the raw doors stand in config/asgi.py."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("", include("apps.dashboard.urls")),
]

handler404 = "apps.dashboard.views.shell.page_not_found"
handler500 = "apps.dashboard.views.shell.server_error"
