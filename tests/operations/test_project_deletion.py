"""Deleting a project leaves nothing of it behind, and everything of its neighbour (PROJ-003)."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection, models
from rest_framework.test import APIClient

from apps.datasets.models import CaseEmbedding, DatasetVersion
from apps.datasets.services.datasets import create_dataset, update_dataset
from apps.projects.models import AuditEvent, Project, QuotaUsage
from apps.projects.services.projects import create_project
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Agent, AgentProfile
from apps.tracing.rollups.fold import settle


def _fill(project: Project, marker: str) -> None:
    """Something of everything that traffic leaves behind."""
    store_spans(
        project,
        [
            SpanIn(
                name="checkout",
                span_id="root",
                session_id="s",
                agent_ref="shop",
                model="gpt-4o-mini",
                input_tokens=10,
                output_tokens=5,
                input=f'"{marker}"'.encode(),
                tool_calls=b'[{"name": "charge", "success": false}]',
                monitor=True,
            ),
            SpanIn(name="child", span_id="child", parent_span_id="root", session_id="s", error="boom"),
            SpanIn(name="orphan", span_id="lost", parent_span_id="never-sent"),
        ],
    )
    settle()
    dataset = create_dataset(project=project, body={"name": marker, "questions": [{"main_question": {"query": "q"}}]})
    update_dataset(project=project, dataset_id=dataset.pk, body={"description": marker})
    CaseEmbedding.objects.create(project=project, model="m", text_hash="h", vector=b"1234")
    AgentProfile.objects.get_or_create(agent=Agent.objects.get(project=project))
    QuotaUsage.objects.create(project=project, day="2026-11-29", kind="traces", used=1)


def _tables_with_rows(project_pk: int) -> set[str]:
    """Tables of the database, known to the models or not, that hold rows of the project."""
    found = set()
    with connection.cursor() as cursor:
        for info in connection.introspection.get_table_list(cursor):
            if info.type not in {"t", "p"}:
                continue
            columns = {column.name for column in connection.introspection.get_table_description(cursor, info.name)}
            if "project_id" in columns:
                cursor.execute(f'SELECT count(*) FROM "{info.name}" WHERE project_id = %s', [project_pk])
                if cursor.fetchone()[0]:
                    found.add(info.name)
    return found


@pytest.mark.django_db
def test_zero_rows_remain_and_the_neighbour_is_whole(project):
    doomed, doomed_key = create_project(name="Doomed")
    _fill(project, "neighbour words")
    _fill(doomed, "doomed words")
    before = _tables_with_rows(project.pk)
    assert {
        "tracing_span",
        "tracing_session",
        "tracing_rollup",
        "tracing_toolrollup",
        "tracing_agent",
        "datasets_dataset",
    } <= before
    assert _tables_with_rows(doomed.pk) == before
    pk = doomed.pk
    api = APIClient(headers={"x-api-key": project.key})
    assert api.delete(f"/api/v1/projects/{doomed.uid}").status_code == 204
    assert _tables_with_rows(pk) == set()
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if isinstance(field, models.ForeignKey) and field.related_model is Project:
                assert not model.objects.filter(**{field.attname: pk}).exists(), model
    assert not AgentProfile.objects.exclude(agent__project=project).exists()
    assert not DatasetVersion.objects.exclude(dataset__project=project).exists()
    assert _tables_with_rows(project.pk) == before
    assert APIClient(headers={"x-api-key": doomed_key}).get("/api/v1/projects").status_code == 401
    assert AuditEvent.objects.filter(action="project.delete", project_uid=doomed.uid).count() == 1


@pytest.mark.django_db
def test_its_words_are_found_no_more(project):
    doomed, _ = create_project(name="Doomed")
    _fill(project, "zebra crossing")
    _fill(doomed, "zebra stable")
    api = APIClient(headers={"x-api-key": project.key})
    api.delete(f"/api/v1/projects/{doomed.uid}")
    found = api.get("/api/v1/ingest/traces", {"search": "zebra"}).json()["traces"]
    assert [trace["input"] for trace in found] == ["zebra crossing"]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM tracing_spansearch('stable')")
            assert cursor.fetchone()[0] == 0
