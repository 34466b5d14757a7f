"""The audit trail: who, from where, names only, for ever (AUTH-088 … 096)."""

from __future__ import annotations

import pytest

from apps.projects.models import AuditEvent
from apps.projects.services import audit


def test_rows_cannot_be_changed_or_deleted(project):
    event = audit.record(action="scorer.create", project=project, summary_fields=["script"])
    event.action = "scorer.delete"
    with pytest.raises(TypeError):
        event.save()
    with pytest.raises(TypeError):
        event.delete()
    with pytest.raises(TypeError):
        AuditEvent.objects.all().delete()
    with pytest.raises(TypeError):
        AuditEvent.objects.update(action="x")


def test_what_is_no_name_stays_out_of_the_summary(project):
    event = audit.record(
        action="settings.update",
        project=project,
        summary_fields=["script", "a name with spaces", "x" * 70, project.key, "items[].weight"],
    )
    assert event.summary == "script, items[].weight"


def test_the_server_itself_is_the_system(project):
    event = audit.record(action="project.delete", project=project)
    assert (event.actor_type, event.actor_id, event.ip) == ("system", "", "")


def test_the_row_names_the_key_that_acted_and_its_address(api, project, settings):
    settings.TRUST_PROXY = "1"
    api.post("/api/v1/projects", {"name": "B"}, headers={"x-forwarded-for": "9.9.9.9, 203.0.113.7"})
    event = AuditEvent.objects.get(action="project.create")
    assert event.actor_type == "apiKey"
    assert event.actor_id == project.api_keys.get().id
    assert event.ip == "203.0.113.7"


def test_a_forged_header_counts_for_nothing(api, settings):
    settings.TRUST_PROXY = None
    api.post("/api/v1/projects", {"name": "B"}, headers={"x-forwarded-for": "203.0.113.7"})
    assert AuditEvent.objects.get(action="project.create").ip == "127.0.0.1"


def test_rows_outlive_their_project(api):
    made = api.post("/api/v1/projects", {"name": "B"}).json()["project"]
    api.delete(f"/api/v1/projects/{made['_id']}")
    actions = AuditEvent.objects.filter(project_uid=made["_id"]).values_list("action", flat=True)
    assert sorted(actions) == ["project.create", "project.delete"]
