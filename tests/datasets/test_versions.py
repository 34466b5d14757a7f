"""History of datasets (DATA-032..041)."""

from __future__ import annotations

import pytest

from apps.core.api.errors import APIError
from apps.datasets.models import DatasetVersion
from apps.datasets.services.datasets import update_dataset
from apps.datasets.wire import restoring_body
from tests.datasets.conftest import PAGES, SDK


def test_create_is_the_first_entry(api, make):
    """v0, `Created`, with the whole content as snapshot (DATA-033, DATA-037)."""
    body = make("q", acceptanceCriteria="a")
    for mount in (PAGES, SDK):
        [entry] = api.get(f"{mount}/datasets/{body['_id']}/versions").json()
        assert set(entry) == {"_id", "version", "snapshot", "createdAt", "changeSummary", "creator"}
        assert (entry["version"], entry["changeSummary"]) == (0, "Created")
        assert entry["snapshot"] == {key: body[key] for key in body if key not in ("_id", "createdAt")}


@pytest.mark.parametrize(
    ("changes", "summary"),
    [
        ({"name": "Other"}, "Updated name"),
        ({"description": "d"}, "Updated description"),
        ({"questions": [{"main_question": {"query": "other"}}]}, "Updated questions"),
        ({"numberOfRequests": 3}, "Updated number of requests"),
        ({"judgeModel": "m", "acceptanceCriteria": "a"}, "Updated acceptance criteria, judge model"),
        ({"bleuScore": {"enabled": True}}, "Updated BLEU score"),
        ({"codeScorers": [{"code": "return 1"}]}, "Updated code scorers"),
        ({"ci": {"enabled": True}}, "Updated CI settings"),
    ],
)
def test_a_change_adds_an_entry_and_the_same_again_adds_none(api, make, changes, summary):
    """The summary names what changed (DATA-034, DATA-036, EVAL-106)."""
    path = f"{PAGES}/datasets/{make('q')['_id']}"
    saved = api.put(path, changes).json()
    api.put(path, saved)
    api.put(path, {})
    entries = api.get(f"{path}/versions").json()
    assert [(item["version"], item["changeSummary"]) for item in entries] == [(1, summary), (0, "Created")]
    assert entries[0]["snapshot"] == {key: saved[key] for key in saved if key not in ("_id", "createdAt")}


def test_logs_are_separate_and_numbers_stay(api, make):
    """Deleting an older entry renumbers nothing; the current one stays (DATA-035, DATA-039)."""
    one, two = make("q"), make("q")
    path = f"{PAGES}/datasets/{one['_id']}"
    for name in ("a", "b"):
        api.put(path, {"name": name})
    newest, middle, oldest = api.get(f"{path}/versions").json()
    response = api.delete(f"{path}/versions/{newest['_id']}")
    assert response.status_code == 409
    [foreign] = api.get(f"{PAGES}/datasets/{two['_id']}/versions").json()
    for unknown in (foreign["_id"], "x" * 21, "nope"):
        assert api.delete(f"{path}/versions/{unknown}").status_code == 404
    response = api.delete(f"{path}/versions/{middle['_id']}")
    assert (response.status_code, response.json()) == (200, {"deleted": True})
    api.put(path, {"name": "c"})
    assert [item["version"] for item in api.get(f"{path}/versions").json()] == [3, 2, 0]
    assert oldest["_id"] in [item["_id"] for item in api.get(f"{path}/versions").json()]


def test_counts(api, other_api, make):
    """`batch` is no id; foreign and unknown ids are left out (DATA-040)."""
    one, two = make("q"), make("q")
    api.put(f"{PAGES}/datasets/{one['_id']}", {"name": "a"})
    ids = f"{one['_id']},{two['_id']},nope"
    for mount in (PAGES, SDK):
        counts = api.get(f"{mount}/datasets/batch/versions", ids=ids).json()
        assert counts == {"versionCounts": {one["_id"]: 2, two["_id"]: 1}}
    assert other_api.get(f"{PAGES}/datasets/batch/versions", ids=ids).json() == {"versionCounts": {}}
    assert api.get(f"{PAGES}/datasets/batch/versions").json() == {"versionCounts": {}}


def test_an_editor_that_is_behind_is_told(api, make, project):
    """`baseVersion` of an older state: 409 and nothing changes."""
    body = make("q")
    path = f"{PAGES}/datasets/{body['_id']}"
    assert api.put(path, {"name": "a", "baseVersion": 0}).status_code == 200
    response = api.put(path, {"name": "b", "baseVersion": 0})
    assert response.status_code == 409
    assert "reload" in response.json()["error"]
    assert api.get(path).json()["name"] == "a"
    assert api.put(path, {"name": "b", "baseVersion": "0"}).status_code == 400
    with pytest.raises(APIError):
        update_dataset(project=project, dataset_id=body["_id"], body={"name": "c"}, base_version=0)


def test_a_snapshot_brings_everything_back(api, make, project):
    """A state with less than the present one clears what came since (DATA-038)."""
    body = make("q", description="d")
    path = f"{PAGES}/datasets/{body['_id']}"
    later = {"questions": [], "judgeModel": "m", "ci": {"enabled": True}, "description": None, "numberOfRequests": 4}
    assert api.put(path, later).json() != body
    oldest = api.get(f"{path}/versions").json()[-1]
    assert api.put(path, restoring_body(oldest["snapshot"])).json() == body
    assert api.get(f"{path}/versions").json()[0]["version"] == 2


@pytest.mark.django_db(transaction=True)
def test_snapshots_survive_the_migration(project):
    """History of before is there afterwards, whatever is in it."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    snapshot = {"name": "n", "questions": [{"main_question": {"query": "😀 \u2028"}}], "status": "published"}
    MigrationExecutor(connection).migrate([("datasets", "0001_initial")])
    then = MigrationExecutor(connection).loader.project_state([("datasets", "0001_initial")]).apps
    dataset = then.get_model("datasets", "Dataset").objects.create(project_id=project.pk, name="n")
    then.get_model("datasets", "DatasetVersion").objects.create(
        dataset=dataset, version=0, snapshot=snapshot, change_summary="Created"
    )
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    assert DatasetVersion.objects.get().snapshot == snapshot
