"""Addresses of the pages. No trailing slashes; what a page shows stands in its query."""

from django.urls import URLPattern, path

from apps.dashboard.views import shell

app_name = "dashboard"

urlpatterns: list[URLPattern] = [
    # `home` is where a person lands; Overview takes this address with the same name and an alias `overview`.
    path("", shell.home, name="home"),
    path("connect", shell.connect, name="connect"),
    path("disconnect", shell.disconnect, name="disconnect"),
    path("projects/switch", shell.switch_project, name="project_switch"),
    path("preferences", shell.preferences, name="preferences"),
    path("palette", shell.palette, name="palette"),
]
