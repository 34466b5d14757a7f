"""GET /export and /export/{entity} (source 1:8086-8139)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.apps import apps

from apps.core import exports
from apps.projects.models import AuditEvent, Project

NAMES = {
    "traces",
    "signals",
    "signal-feedback",
    "events",
    "classifications",
    "runs",
    "run-results",
    "gate-results",
    "pairwise-comparisons",
    "datasets",
    "evaluation-settings",
    "dataset-versions",
    "evaluation-settings-versions",
    "evaluation-analyses",
    "review-queue",
    "feedback",
    "outcomes",
    "session-scores",
    "patterns",
    "online-evaluators",
    "custom-evaluators",
    "rules",
    "playground-profiles",
    "agents",
    "monitor-profiles",
    "scorer-groups",
    "alert-rules",
    "alert-events",
    "prompts",
    "tool-schemas",
    "improvement-groups",
    "improvement-reports",
    "improvement-proposals",
}


def rows_of(api: Any, entity: str, **query: str) -> list[dict[str, Any]]:
    """The parsed lines of one entity."""
    response = api.get(f"/export/{entity}", **query)
    assert response.status_code == 200
    assert response["content-type"] == "application/x-ndjson"
    text = b"".join(response.streaming_content).decode()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_manifest_lists_every_entity_with_live_counts(api, span):
    """Name, rows and path; parts of the product that have no rows are listed with 0 (OPS-040, OPS-043..045)."""
    span("root", span_id="a")
    span("child", parent_span_id="a")
    api.post("/agents", {"name": "x"})
    body = api.get("/export").json()
    assert set(body) == {"entities"}
    listed = {item["entity"]: item for item in body["entities"]}
    assert set(listed) >= NAMES
    assert len(listed) == len(body["entities"])
    assert (listed["traces"]["rows"], listed["agents"]["rows"], listed["signals"]["rows"]) == (2, 2, 0)
    for name, item in listed.items():
        assert set(item) == {"entity", "rows", "path"}
        assert item["path"] == f"/api/v1/export/{name}"


def test_every_listed_entity_streams_what_it_counts(api, span):
    """The counts equal the lines, so a dump of everything works (OPS-050)."""
    span("root", span_id="a")
    agent_id = api.post("/agents", {"name": "x"}).json()["agent"]["_id"]
    api.put(f"/monitor/profiles/{agent_id}", {"enabled": False})
    for item in api.get("/export").json()["entities"]:
        assert len(rows_of(api, item["entity"])) == item["rows"], item["entity"]


def test_traces_hold_every_span_in_the_stored_shape(api, span):
    """Parsed JSON where JSON was sent, null where there is nothing, ISO times (OPS-041, OPS-046)."""
    span(
        "root",
        span_id="a",
        session_id="s",
        input={"q": [1]},
        output="done",
        metadata={"k": "v"},
        start_ns=1_777_000_000_123_456_789,
        input_tokens=3,
    )
    span("child", parent_span_id="a", source="eval-run")
    root, child = rows_of(api, "traces")
    assert (root["name"], root["input"], root["output"], root["metadata"]) == ("root", {"q": [1]}, "done", {"k": "v"})
    assert root["createdAt"] == "2026-04-24T03:06:40.123Z"
    assert root["startedAtUnixNano"] == "1777000000123456789"
    assert (root["sessionId"], root["spanId"], root["inputTokens"]) == ("s", "a", 3)
    assert (child["parentSpanId"], child["trafficSource"], child["output"]) == ("a", "eval-run", None)
    assert set(root) == set(child)


@pytest.mark.parametrize(
    ("since", "names"),
    [
        ("2026-08-21", ["b", "c"]),
        ("2026-08-21T00:00:00.000Z", ["b", "c"]),
        ("2026-08-21T00:00:00.001Z", ["c"]),
        ("2026-08-21T02:00:00+02:00", ["b", "c"]),
        ("2026-08-22T00:00:01", []),
        ("", ["a", "b", "c"]),
    ],
)
def test_since_is_inclusive(api, span, since, names):
    """A date or a datetime on createdAt (OPS-042)."""
    base = 1_787_270_400_000  # 2026-08-21T00:00:00Z
    for name, offset in (("a", -1), ("b", 0), ("c", 86_400_000)):
        span(name, at_ms=base + offset)
    assert [row["name"] for row in rows_of(api, "traces", since=since)] == names


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "12", "2026-08-21T25:00"])
def test_unreadable_since_is_refused(api, since):
    """400, for entities without rows too."""
    for entity in ("traces", "signals"):
        response = api.get(f"/export/{entity}", since=since)
        assert response.status_code == 400
        assert set(response.json()) == {"error"}


def test_unknown_entity(api):
    """404 JSON (OPS-049)."""
    response = api.get("/export/nope")
    assert response.status_code == 404
    assert "error" in response.json()


@pytest.mark.parametrize("path", ["/export", "/export/traces"])
def test_there_is_no_import(api, path):
    """POST is no route (OPS-051)."""
    response = api.post(path, {})
    assert response.status_code == 405
    assert set(response.json()) == {"error"}


def test_projects_are_disjoint(api, other_api, span, other_project):
    """Only the rows of the key's project (OPS-047)."""
    span("ours")
    span("theirs", of=other_project)
    assert [row["name"] for row in rows_of(api, "traces")] == ["ours"]
    assert [row["name"] for row in rows_of(other_api, "traces")] == ["theirs"]


def test_no_secret_is_exported(api, project, span):
    """No key text in any entity."""
    span("t")
    for item in api.get("/export").json()["entities"]:
        assert project.key not in json.dumps(rows_of(api, item["entity"]))


def test_pages_are_read_by_keyset(api, span, django_assert_num_queries):
    """More rows than one page hold; nothing twice, nothing missing (OPS-048)."""
    for n in range(450):
        span(f"t{n}", at_ms=1_000 + n // 7)
    names = [row["name"] for row in rows_of(api, "traces")]
    assert sorted(names) == sorted(f"t{n}" for n in range(450))


def test_reading_an_export_is_audited(api):
    """Which entity was read."""
    rows_of(api, "traces", since="2026-01-01")
    event = AuditEvent.objects.get(action="export.read")
    assert (event.target_id, event.summary, event.actor_type) == ("traces", "since", "apiKey")


def test_every_project_scoped_table_is_exported_or_left_out_for_a_reason():
    """The model registry compared with the manifest (OPS-045)."""
    scoped = {
        model
        for model in apps.get_models()
        if any(
            field.remote_field and field.related_model is Project
            for field in model._meta.get_fields()
            if field.concrete
        )
    }
    assert scoped - exports.covered_models() == set()


def test_rows_of_other_tables_have_their_columns_in_camel_case(api, project):
    """One generic shape: id, projectId, columns, ISO times; `since` on the table's own time."""
    from apps.datasets.models import Dataset, DatasetVersion

    dataset = Dataset.objects.create(project=project, name="d", questions=[{"main_question": {"query": "q"}}])
    DatasetVersion.objects.create(dataset=dataset, version=1, snapshot={}, change_summary="made")
    [row] = rows_of(api, "datasets")
    assert (row["id"], row["projectId"], row["questions"]) == (dataset.pk, project.uid, dataset.questions)
    assert row["updatedAt"].endswith("Z")
    assert row["gradingId"] == dataset.grading_id
    [version] = rows_of(api, "dataset-versions")
    assert (version["datasetId"], version["changeSummary"]) == (dataset.pk, "made")
    assert rows_of(api, "datasets", since="2999-01-01") == []
    [defaults] = rows_of(api, "monitoring-defaults")
    assert defaults["projectId"] == project.uid


def test_only_a_few_exports_run_at_once(api, span, monkeypatch):
    """One more is refused after a wait; a stream that is closed half-way gives its place back."""
    from apps.operations.api import views

    monkeypatch.setattr(views, "WAIT_SECONDS", 0.05)
    span("t")
    held = [api.get("/export/traces") for _ in range(views.EXPORTS_AT_ONCE)]
    response = api.get("/export/traces")
    assert (response.status_code, response["retry-after"]) == (429, "10")
    assert "error" in response.json()
    for item in held:
        for close in item._resource_closers:  # response.close() would end the test's own database connection
            close()
    assert len(rows_of(api, "traces")) == 1
