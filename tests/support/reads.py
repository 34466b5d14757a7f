"""Fixtures of read tests: `span` stores rows, `api` speaks JSON with the project key. Imported by their conftest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from apps.core.ids import new_id
from apps.core.times import now_ms
from apps.tracing.models import Grain, Rollup, Session, Span, Status, Traffic

_JSON = ("input", "output", "tool_calls", "metadata", "performance_summary")


@pytest.fixture
def span(project):
    """Stores one row with the given columns; payloads are given as values."""

    def make(name: str = "agent", *, of: Any = None, **columns: Any) -> Span:
        owner = of or project
        for key in _JSON:
            if key in columns:
                columns[key] = json.dumps(columns[key], ensure_ascii=False)
        created = columns.setdefault("created_ms", now_ms())
        columns.setdefault("received_ms", created)
        columns.setdefault("id", new_id(created))
        columns.setdefault("kind", "chain")
        columns.setdefault("status", Status.ERROR if columns.get("error") else Status.OK)
        row = Span.objects.create(project=owner, name=name, **columns)
        key = {
            "project": owner,
            "grain": Grain.ALL_TIME,
            "bucket": 0,
            "is_root": row.parent_span_id is None,
            "traffic": row.traffic,
            "agent_id": row.agent_id or "",
            "framework": row.framework or "",
            "model": row.model or "",
            "kind": row.kind,
            "status": row.status,
        }
        Rollup.objects.get_or_create(**key)
        Rollup.objects.filter(**key).update(spans=F("spans") + 1)
        if row.session_id and row.traffic != Traffic.EVAL_RUN:
            Session.objects.get_or_create(
                project=owner,
                session_id=row.session_id,
                defaults={"first_ms": created, "last_ms": created, "stored_ms": created},
            )
            Session.objects.filter(project=owner, session_id=row.session_id).update(
                span_count=F("span_count") + 1, turn_count=F("turn_count") + (row.parent_span_id is None)
            )
        return row

    return make


class Api:
    """GET, POST and PUT of JSON under /api/v1."""

    def __init__(self, key: str) -> None:
        self.client = Client(headers={"x-api-key": key})

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v1{path}", query)

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(f"/api/v1{path}", json.dumps(body), content_type="application/json")

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
