"""The operators' site under /admin, loaded with the first request to it.

Its modules cost a fifth of a second and 20 MB in every process, which a server that nobody administrates, and the
worker, can do without. So the app configuration below does not look for admin modules at start; config/admin_urls.py
does, and the URL table names that module without importing it.
"""

from __future__ import annotations

from django.contrib.admin.apps import SimpleAdminConfig
from django.urls import URLResolver
from django.urls.resolvers import RoutePattern


class OperatorAdminConfig(SimpleAdminConfig):
    """django.contrib.admin with django-unfold's site and without discovery at start."""

    default_site = "unfold.sites.UnfoldAdminSite"


def lazy_admin(route: str) -> URLResolver:
    """What `path(route, admin.site.urls)` is, but imported when the first request or reverse asks for it."""
    return URLResolver(RoutePattern(route), "config.admin_urls", app_name="admin", namespace="admin")
