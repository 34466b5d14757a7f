"""GET and POST /projects, DELETE /projects/:id (PROJ-001 … 012)."""

from __future__ import annotations

import json
import re

import pytest
from cryptography.fernet import InvalidToken
from django.apps import apps
from django.db import connection, models
from rest_framework.test import APIClient

from apps.projects.models import ApiKey, AuditEvent, MonitoringDefaults, Project, QuotaUsage
from apps.projects.services import purgers, starter
from apps.projects.services.keys import project_for_key
from apps.projects.services.projects import create_project, ensure_default_project, finish_deletions

URL = "/api/v1/projects"


def keyed(key: str) -> APIClient:
    client = APIClient(headers={"x-api-key": key})
    client.default_format = "json"
    return client


def test_a_new_project_has_a_key_that_works(api):
    answer = api.post(URL, {"name": "  Shop  "})
    assert answer.status_code == 201
    project = answer.json()["project"]
    assert set(project) == {"_id", "name", "apiKey", "isDefault", "createdAt"}
    assert project["name"] == "Shop"
    assert project["isDefault"] is False
    assert re.fullmatch(r"agtx_local_[0-9a-f]{48}", project["apiKey"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", project["createdAt"])
    assert keyed(project["apiKey"]).get(URL).status_code == 200


def test_the_list_shows_keys_default_first(api, project):
    made = api.post(URL, {"name": "Aardvark"}).json()["project"]
    listed = api.get(URL).json()["projects"]
    assert [row["isDefault"] for row in listed] == [True, False]
    assert listed[0]["apiKey"] == project.key
    assert listed[1] == made


def test_the_list_costs_the_same_for_any_number(api, django_assert_num_queries):
    for number in range(8):
        api.post(URL, {"name": f"p{number}"})
    api.get(URL)
    with django_assert_num_queries(2):
        assert len(api.get(URL).json()["projects"]) == 9


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "   "}, {"name": None}, {"name": 5}, {"name": ["x"]}])
def test_a_name_is_required(api, body):
    answer = api.post(URL, body)
    assert answer.status_code == 400
    assert answer.json() == {"error": "name is required"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"name": "x" * 201}, "name must be at most 200 characters"),
        ({"name": "a\x00b"}, "name must not contain control characters"),
        ([], "Request body must be a JSON object"),
    ],
)
def test_names_that_cannot_be_stored(api, body, error):
    answer = api.post(URL, body)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_no_body_at_all_is_a_missing_name(api):
    answer = api.generic("POST", URL, b"", content_type="application/json")
    assert (answer.status_code, answer.json()) == (400, {"error": "name is required"})


@pytest.mark.django_db
@pytest.mark.parametrize(
    "headers", [{}, {"x-api-key": ""}, {"x-api-key": "nope"}, {"x-api-key": "agtx_local_" + "0" * 48}]
)
@pytest.mark.parametrize(("method", "path"), [("get", URL), ("post", URL), ("delete", f"{URL}/x")])
def test_without_a_key_every_call_is_401(project, headers, method, path):
    answer = getattr(APIClient(headers=headers), method)(path)
    assert answer.status_code == 401
    assert answer.json() == {"error": "Invalid or missing API key"}


def test_workspace_id_selects_nothing(api, project):
    other = api.post(URL, {"name": "B", "workspaceId": "elsewhere"}).json()["project"]
    answer = api.get(f"/api/v1/agent-monitoring/settings?workspaceId={other['_id']}")
    assert answer.json()["apiKey"] == project.key


def test_refusals_of_delete(api, project):
    assert (api.delete(f"{URL}/{project.uid}").status_code, api.delete(f"{URL}/{project.uid}").json()) == (
        400,
        {"error": "The default project cannot be deleted"},
    )
    unknown = api.delete(f"{URL}/no-such-project")
    assert (unknown.status_code, unknown.json()) == (404, {"error": "Project not found"})


@pytest.mark.parametrize("uid", ["a%00b", "%F0%9F%92%A9", "..%2f..", "x" * 5000])
def test_odd_ids_are_unknown_ids(api, uid):
    answer = api.delete(f"{URL}/{uid}")
    assert answer.status_code == 404
    assert answer.json()["error"] in {"Project not found", "Not found"}


def test_the_last_project_stays(api, project):
    """Only an instance whose default mark was lost can come to this."""
    Project.objects.filter(pk=project.pk).update(is_default=False)
    answer = api.delete(f"{URL}/{project.uid}")
    assert (answer.status_code, answer.json()) == (400, {"error": "Cannot delete the only remaining project"})


def test_a_deleted_project_is_gone_for_good(api):
    doomed = api.post(URL, {"name": "Doomed"}).json()["project"]
    assert project_for_key(doomed["apiKey"]) is not None
    answer = api.delete(f"{URL}/{doomed['_id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert keyed(doomed["apiKey"]).get(URL).status_code == 401
    assert len(api.get(URL).json()["projects"]) == 1
    assert api.delete(f"{URL}/{doomed['_id']}").status_code == 404


def _project_columns() -> list[tuple[type[models.Model], str]]:
    """Every column of every table that points at a project."""
    return [
        (model, field.attname)
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.ForeignKey) and field.related_model is Project
    ]


def test_no_row_of_any_table_remains(api, django_assert_max_num_queries):
    """Rows are put into every table that hangs on a project by cascade; telemetry is tested with its purger."""
    doomed = Project.objects.get(uid=api.post(URL, {"name": "Doomed"}).json()["project"]["_id"])
    QuotaUsage.objects.create(project=doomed, day="2026-11-29", kind="traces", used=3)
    pk = doomed.pk
    owned = {model for model, column in _project_columns() if model.objects.filter(**{column: pk}).exists()}
    assert {ApiKey, MonitoringDefaults, QuotaUsage} <= owned
    assert api.delete(f"{URL}/{doomed.uid}").status_code == 204
    for model, column in _project_columns():
        assert not model.objects.filter(**{column: pk}).exists(), model
    assert AuditEvent.objects.filter(action="project.delete", project_uid=doomed.uid).count() == 1


def test_purgers_run_with_dead_keys_and_once_more_after_the_row_is_gone(api):
    doomed = api.post(URL, {"name": "Doomed"}).json()["project"]
    seen: list[tuple[bool, bool]] = []

    def purge(pk: int) -> None:
        seen.append((project_for_key(doomed["apiKey"]) is None, Project.objects.filter(pk=pk).exists()))

    purgers.hooks.register("test", purge)
    try:
        assert api.delete(f"{URL}/{doomed['_id']}").status_code == 204
    finally:
        purgers.hooks.unregister("test")
    assert seen == [(True, True), (True, False)]


def test_a_deletion_that_was_cut_short_is_hidden_and_can_be_finished(api):
    doomed = api.post(URL, {"name": "Doomed"}).json()["project"]

    def fail(pk: int) -> None:
        raise OSError("disk full")

    purgers.hooks.register("test", fail)
    try:
        api.raise_request_exception = False
        answer = api.delete(f"{URL}/{doomed['_id']}")
        assert (answer.status_code, answer.json()) == (500, {"error": "Internal server error"})
    finally:
        purgers.hooks.unregister("test")
    assert keyed(doomed["apiKey"]).get(URL).status_code == 401
    assert len(api.get(URL).json()["projects"]) == 1
    assert finish_deletions() == 1
    assert not Project.objects.filter(uid=doomed["_id"]).exists()
    assert finish_deletions() == 0


@pytest.mark.django_db
def test_starter_content_joins_in_the_projects_transaction():
    def broken(project: Project) -> None:
        raise RuntimeError("no starter today")

    ensure_default_project()
    starter.hooks.register("test", broken)
    try:
        with pytest.raises(RuntimeError):
            create_project(name="Half")
    finally:
        starter.hooks.unregister("test")
    assert not Project.objects.filter(name="Half").exists()


@pytest.mark.django_db
def test_the_default_project_is_made_once_with_the_key_of_the_file():
    kept = "agtx_local_" + "ab" * 24
    project, key = ensure_default_project(key=kept)
    assert key == kept
    assert ensure_default_project(key="agtx_local_" + "cd" * 24) == (project, kept)
    assert ensure_default_project() == (project, kept)


@pytest.mark.django_db
def test_a_lost_instance_secret_costs_no_client_its_key(settings):
    project, key = ensure_default_project()
    settings.SECRET_KEY = "another-secret-" * 4
    # The file still holds the key: it is stored again, readable.
    assert ensure_default_project(key=key) == (project, key)
    assert ensure_default_project() == (project, key)
    settings.SECRET_KEY = "a-third-secret-" * 4
    # Nothing here knows the key any more; it still opens the project, and the start says what is wrong.
    with pytest.raises(InvalidToken):
        ensure_default_project(key="agtx_local_" + "cd" * 24)
    assert project_for_key(key) == project
    assert keyed(key).get(URL).json()["projects"][0]["apiKey"] is None


@pytest.mark.django_db
def test_a_revoked_default_key_is_replaced_at_the_next_start(project):
    from apps.projects.services.keys import revoke_key

    revoke_key(key=ApiKey.objects.get())
    assert project_for_key(project.key) is None
    _, fresh = ensure_default_project(key=project.key)
    assert fresh != project.key
    assert project_for_key(fresh) == project


@pytest.mark.skipif(connection.vendor != "sqlite", reason="one representation is enough")
def test_keys_are_not_stored_in_clear(api, project):
    key = api.post(URL, {"name": "B"}).json()["project"]["apiKey"]
    stored = json.dumps(list(ApiKey.objects.values()), default=str)
    assert key not in stored
    assert project.key not in stored
