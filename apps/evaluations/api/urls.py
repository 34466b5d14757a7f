"""Routes under /api/v1 that this app answers: one module an area, each with its own `urlpatterns`."""

from django.urls import URLPattern

from apps.evaluations.api import analysis_urls, ci_urls, comparison_urls, gate_urls, run_urls

urlpatterns: list[URLPattern] = [
    *run_urls.urlpatterns,
    *gate_urls.urlpatterns,
    *comparison_urls.urlpatterns,
    *ci_urls.urlpatterns,
    *analysis_urls.urlpatterns,
]
