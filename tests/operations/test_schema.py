"""The OpenAPI document and its page."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.urls import get_resolver


def api_routes() -> set[str]:
    """Every route under /api/v1 in the URL table."""
    found = set()
    for include in get_resolver().url_patterns:
        if str(include.pattern) == "api/v1/":
            found |= {f"/api/v1/{pattern.pattern}" for pattern in include.url_patterns}
    return found


def test_document_is_valid_and_complete(client, db, tmp_path):
    """No warnings; every route is in it, or its twin under the other prefix."""
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))
    response = client.get("/api/schema/")
    assert response.status_code == 200
    document = response.json()
    documented = {path.replace("{", "<").replace("}", ">") for path in document["paths"]}

    def plain(route: str) -> str:
        return "/".join("<" + part.split(":")[-1] if part.startswith("<") else part for part in route.split("/"))

    for route in api_routes():
        twin = route.replace("/agent-monitoring/", "/monitor/", 1)
        twin = twin.replace("/evaluate/", "/custom-agent-evaluations/", 1)
        assert {plain(route), plain(twin)} & documented, route
    assert {"/api/v1/otel/v1/traces", "/api/v1/ingest/traces"} <= set(document["paths"])
    assert document["components"]["securitySchemes"]["projectKey"]["name"] == "x-api-key"


@pytest.mark.parametrize("path", ["/api/docs/", "/api/docs", "/api/schema"])
def test_pages_answer_with_and_without_slash(client, db, path):
    """No redirect."""
    assert client.get(path).status_code == 200


def test_docs_need_nothing_inline(client, db):
    """The script comes in a request of its own, from this server."""
    html = client.get("/api/docs/").content.decode()
    assert "<script>" not in html
    assert "https://" not in html


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
@pytest.mark.parametrize("path", ["/api/v1/nope", "/api/nope/", "/api/", "/api", "/api/v1/ingest/traces/"])
def test_unknown_paths_are_json(client, db, method, path):
    """404 JSON for every method, no redirect to a slash, no HTML (OPS-020)."""
    response = getattr(client, method)(path)
    assert (response.status_code, response.json()) == (404, {"error": "Not found"})
    assert response["content-type"] == "application/json"
