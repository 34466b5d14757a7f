"""Fixtures of read tests: `span` stores rows, `api` speaks JSON with the project key. Imported by their conftest."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.test import Client

from apps.core.times import now_ms
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Span

_JSON = ("input", "output", "tool_calls", "metadata", "performance_summary")


@pytest.fixture
def span(project):
    """Stores one span through the ingest pipeline; payloads are values, `at_ms` is its start in milliseconds.

    Lists are in the order of milliseconds: each span without a start of its own gets a millisecond of its own.
    """
    last_ms = 0

    def make(name: str = "agent", *, of: Any = None, at_ms: float | None = None, **fields: Any) -> Span:
        for key in _JSON:
            if key in fields:
                fields[key] = json.dumps(fields[key], ensure_ascii=False).encode()
        nonlocal last_ms
        if at_ms is not None:
            fields["start_ns"] = int(at_ms * 1_000_000)
        else:
            while now_ms() <= last_ms:
                time.sleep(0.0002)
        [stored] = store_spans(of or project, [SpanIn(name=name, **fields)])
        last_ms = now_ms()
        return Span.objects.get(id=stored.id)

    return make


class Api:
    """GET, POST, PUT and DELETE of JSON under /api/v1."""

    def __init__(self, key: str) -> None:
        self.client = Client(headers={"x-api-key": key})

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v1{path}", query)

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(f"/api/v1{path}", json.dumps(body), content_type="application/json")

    def delete(self, path: str) -> Any:
        return self.client.delete(f"/api/v1{path}")

    def put(self, path: str, body: Any) -> Any:
        return self.client.put(f"/api/v1{path}", json.dumps(body), content_type="application/json")


@pytest.fixture
def api(project):
    """A client with the default project's key."""
    return Api(project.key)


@pytest.fixture
def other_project(project):
    """A second project with its own key."""
    from apps.projects.models import Project
    from apps.projects.services.keys import create_key

    other = Project.objects.create(organization=project.organization, name="Other")
    other.key = create_key(project=other)
    return other


@pytest.fixture
def other_api(other_project):
    """A client with the other project's key."""
    return Api(other_project.key)
