"""Routes under /api/v1 that this app answers; every other /auth route is a 404 in disabled mode (AUTH-023)."""

from django.urls import path

from apps.accounts.api.views import AuthConfigView

urlpatterns = [path("auth/config", AuthConfigView.as_view(), name="auth-config")]
