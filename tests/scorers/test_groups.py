"""/agent-monitoring/scorer-groups over HTTP (SCORE-155..160)."""

from __future__ import annotations

import pytest

from apps.core.ids import new_id
from apps.projects.models import AuditEvent
from apps.scorers.services import references

ROOT = "/agent-monitoring/scorer-groups"
JUDGES = "/agent-monitoring/judge-scorers"
FULL = {"enabled": True, "sampleRate": 0.2, "alertThreshold": 6, "severity": "high"}


@pytest.fixture
def judge(api):
    """The id of a judge scorer."""
    return api.post(JUDGES, {"name": "j"}).json()["judgeScorer"]["_id"]


@pytest.fixture
def make(api, judge):
    """Creates a group and gives its document."""

    def make(**body):
        response = api.post(ROOT, {"name": "Bar", "members": [{"kind": "judge", "refId": judge}], **body})
        assert response.status_code == 201, response.content
        return response.json()["scorerGroup"]

    return make


def test_exact_shape(api, judge, make):
    """Weight 1, gate false, no live profile (SCORE-157, SCORE-158)."""
    group = make()
    assert api.get(f"{ROOT}/{group['_id']}").json() == {"scorerGroup": group}
    assert group.pop("createdAt").endswith("Z") and len(group.pop("_id")) == 21
    assert group == {
        "name": "Bar",
        "description": None,
        "members": [{"kind": "judge", "refId": judge, "weight": 1, "gate": False}],
        "online": None,
    }
    live = make(online={"enabled": True})
    assert live["online"] == {
        "enabled": True,
        "sampleRate": 0.1,
        "alertThreshold": 5,
        "severity": "medium",
        "scope": "trace",
        "idleSeconds": 120,
        "scopeMode": "all",
        "agentIds": [],
    }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"name": ""}, "name is required"),
        ({"members": []}, "members must be a non-empty list"),
        ({"members": None}, "members must be a non-empty list"),
        ({"members": ["x"]}, "members must be objects: { kind, refId, weight, gate }"),
        ({"members": [{"kind": "code", "refId": "x"}]}, "kind must be one of: judge, pattern, custom"),
        ({"members": [{"kind": ["judge"], "refId": "x"}]}, "kind must be one of: judge, pattern, custom"),
        ({"members": [{"kind": "judge"}]}, "refId is required"),
        ({"members": [{"kind": "judge", "refId": "nope"}]}, "Unknown judge scorer: nope"),
        ({"members": [{"kind": "pattern", "refId": "nope"}]}, "Unknown pattern scorer: nope"),
        ({"members": [{"kind": "judge", "refId": "x", "weight": -1}]}, "weight must be a number of at least 0"),
        ({"members": [{"kind": "judge", "refId": "x", "weight": "2"}]}, "weight must be a number of at least 0"),
        ({"members": [{"kind": "judge", "refId": "x", "gate": 1}]}, "gate must be true or false"),
        ({"online": {**FULL, "severity": "urgent"}}, "severity must be one of: low, medium, high, critical"),
        ({"online": []}, "online must be an object or null"),
    ],
)
def test_bad_groups(api, make, body, text):
    """400 on create and edit; nothing is stored."""
    group = make()
    full = {"name": "x", "members": group["members"]}
    for response in (api.post(ROOT, {**full, **body}), api.put(f"{ROOT}/{group['_id']}", body)):
        assert (response.status_code, response.json()["error"]) == (400, text)
    assert api.get(ROOT).json() == {"scorerGroups": [group]}


def test_members_of_other_projects_are_unknown(api, other_api, judge):
    """And so are their groups."""
    body = {"name": "x", "members": [{"kind": "judge", "refId": judge}]}
    assert other_api.post(ROOT, body).status_code == 400
    group = api.post(ROOT, body).json()["scorerGroup"]["_id"]
    for response in (other_api.get(f"{ROOT}/{group}"), other_api.delete(f"{ROOT}/{group}")):
        assert (response.status_code, response.json()) == (404, {"error": "Scorer group not found"})
    assert other_api.get(ROOT).json() == {"scorerGroups": []}


def test_a_scorer_is_in_a_group_once(api, judge):
    """Twice the same would count it twice under one name."""
    members = [{"kind": "judge", "refId": judge}] * 2
    assert api.post(ROOT, {"name": "x", "members": members}).status_code == 400


def test_a_deleted_member_may_stay(api, judge, make):
    """An edit of other members is not refused for it; a new group cannot name it."""
    group = make()
    other = api.post(JUDGES, {"name": "o"}).json()["judgeScorer"]["_id"]
    api.delete(f"{JUDGES}/{judge}")
    members = [*group["members"], {"kind": "judge", "refId": other, "weight": 0, "gate": True}]
    assert api.put(f"{ROOT}/{group['_id']}", {"members": members}).json()["scorerGroup"]["members"] == members
    assert api.post(ROOT, {"name": "x", "members": members}).status_code == 400


def test_kinds_that_other_apps_register(api, make, monkeypatch):
    """Patterns and custom scorers join through a look-up of their own."""
    monkeypatch.setitem(references.kinds, "pattern", lambda project, ids: {pk: "PII" for pk in ids if pk == "pii"})
    members = [{"kind": "pattern", "refId": "pii", "weight": 0, "gate": True}]
    assert make(members=members)["members"] == members


def test_the_first_live_profile_must_be_full(api, make):
    """Then partial ones merge, null detaches (SCORE-159)."""
    path = f"{ROOT}/{make()['_id']}"
    response = api.put(path, {"online": {"enabled": True}})
    assert response.status_code == 400
    assert "sampleRate" in response.json()["error"]
    online = api.put(path, {"online": FULL}).json()["scorerGroup"]["online"]
    assert online == {**FULL, "scope": "trace", "idleSeconds": 120, "scopeMode": "all", "agentIds": []}
    paused = api.put(path, {"online": {"enabled": False}}).json()["scorerGroup"]["online"]
    assert paused == {**online, "enabled": False}
    assert api.put(path, {"online": {"alertThreshold": None}}).json()["scorerGroup"]["online"]["alertThreshold"] is None
    assert api.put(path, {"online": None}).json()["scorerGroup"]["online"] is None
    assert api.put(path, {"online": {"enabled": True}}).status_code == 400


def test_sparse_edits_and_deletion(api, make):
    """What is not sent stays; DELETE answers 204 with no body (SCORE-156)."""
    group = make(description="d")
    path = f"{ROOT}/{group['_id']}"
    assert api.put(path, {"name": "New"}).json()["scorerGroup"] == {**group, "name": "New"}
    response = api.delete(path)
    assert (response.status_code, response.content) == (204, b"")
    for response in (api.get(path), api.put(path, {}), api.delete(path), api.get(f"{ROOT}/{new_id()}")):
        assert (response.status_code, response.json()) == (404, {"error": "Scorer group not found"})


def test_list_in_one_query_and_audit(api, make, django_assert_num_queries):
    """Newest first; the same PUT again is no second event."""
    groups = [make(name=f"g{n}") for n in range(3)]
    with django_assert_num_queries(1):
        rows = api.get("/monitor/scorer-groups").json()["scorerGroups"]
    assert sorted(row["name"] for row in rows) == ["g0", "g1", "g2"]
    assert [row["_id"] for row in rows] == sorted((row["_id"] for row in rows), reverse=True)
    for _ in range(2):
        api.put(f"{ROOT}/{groups[0]['_id']}", {"name": "x"})
    api.delete(f"{ROOT}/{groups[0]['_id']}")
    actions = AuditEvent.objects.filter(action__startswith="group.").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["group.create"] * 3 + ["group.update", "group.delete"]
