"""The OpenAPI document at /api/schema/ and the page that shows it at /api/docs/."""

from __future__ import annotations

from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView


class SchemaView(SpectacularJSONAPIView):
    """The document as JSON."""


class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI from the installed package, with its script in a request of its own (no inline code)."""
