"""A judge scorer's history, under both spellings (DATA-035..037, DATA-039..041, SCORE-106)."""

from __future__ import annotations

import pytest

from apps.core.ids import new_id

ROOT = "/agent-monitoring/judge-scorers"


@pytest.fixture
def scorer(api):
    """The id of a fresh scorer."""
    return api.post(ROOT, {"name": "s"}).json()["judgeScorer"]["_id"]


def history(api, scorer):
    """The entries, equal under both spellings."""
    rows = api.get(f"{ROOT}/{scorer}/versions").json()
    assert api.get(f"/evaluate/evaluationSettings/{scorer}/versions").json() == rows
    return rows


def test_creation_is_the_first_entry(api, scorer):
    """v0, `Created`, with rubric and offline profile in its snapshot."""
    [entry] = history(api, scorer)
    assert set(entry) == {"_id", "version", "snapshot", "createdAt", "changeSummary", "creator"}
    assert (entry["version"], entry["changeSummary"], entry["creator"]) == (0, "Created", "API")
    assert entry["snapshot"]["judge"]["toolContext"] == "simple"
    assert entry["snapshot"]["offline"]["numberOfRequests"] == 1


def test_a_change_of_rubric_or_offline_profile_adds_one(api, scorer):
    """The summary names what changed; the same PUT again adds nothing (SCORE-011)."""
    body = {"judge": {"acceptanceCriteria": "a", "judgeModel": "m"}, "offline": {"numberOfRequests": 2}}
    for _ in range(2):
        api.put(f"{ROOT}/{scorer}", body)
    api.put(f"{ROOT}/{scorer}", {"offline": {"codeScorers": [{"id": "c", "code": "return 1"}]}})
    assert [(row["version"], row["changeSummary"]) for row in history(api, scorer)] == [
        (2, "Updated code scorers"),
        (1, "Updated acceptance criteria, judge model, number of requests"),
        (0, "Created"),
    ]


def test_code_scorers_without_ids_are_recognised(api, scorer):
    """Their ids are made once; an edit of one leaves the ids of the others."""
    one, two = {"name": "a", "code": "return 1"}, {"name": "b", "code": "return 1"}
    path = f"{ROOT}/{scorer}"
    first = api.put(path, {"offline": {"codeScorers": [one, two]}}).json()["judgeScorer"]["offline"]["codeScorers"]
    again = api.put(path, {"offline": {"codeScorers": [one, two]}}).json()["judgeScorer"]["offline"]["codeScorers"]
    assert again == first
    assert len(history(api, scorer)) == 2
    edited = [{**one, "code": "return 0"}, two]
    after = api.put(path, {"offline": {"codeScorers": edited}}).json()["judgeScorer"]["offline"]["codeScorers"]
    assert len({item["id"] for item in after}) == 2
    assert after[0]["id"] not in {item["id"] for item in first}


@pytest.mark.parametrize("body", [{}, {"name": "other"}, {"description": "d"}, {"online": {"enabled": True}}])
def test_other_saves_add_nothing(api, scorer, body):
    """Name, description and live profile are no part of the history."""
    assert api.put(f"{ROOT}/{scorer}", body).status_code == 200
    assert len(history(api, scorer)) == 1


def test_losing_the_default_mark_is_no_save(api, scorer):
    """Only the scorer that was saved gets an entry."""
    other = api.post(ROOT, {"name": "o", "offline": {"isDefault": True}}).json()["judgeScorer"]["_id"]
    api.put(f"{ROOT}/{scorer}", {"offline": {"isDefault": True}})
    assert [row["changeSummary"] for row in history(api, scorer)] == ["Updated default for runs", "Created"]
    assert len(history(api, other)) == 1


@pytest.mark.parametrize("spelling", [ROOT, "/evaluate/evaluationSettings"])
def test_older_entries_can_go_and_numbers_stay(api, scorer, spelling):
    """200 { deleted: true }; the current one 409; unknown and foreign ones 404; never renumbered."""
    for text in "abc":
        api.put(f"{ROOT}/{scorer}", {"judge": {"acceptanceCriteria": text}})
    rows = history(api, scorer)
    assert api.delete(f"{spelling}/{scorer}/versions/{rows[0]['_id']}").status_code == 409
    response = api.delete(f"{spelling}/{scorer}/versions/{rows[1]['_id']}")
    assert (response.status_code, response.json()) == (200, {"deleted": True})
    assert api.delete(f"{spelling}/{scorer}/versions/{rows[1]['_id']}").status_code == 404
    assert api.delete(f"{spelling}/{scorer}/versions/{new_id()}").status_code == 404
    assert api.delete(f"{spelling}/{new_id()}/versions/{rows[2]['_id']}").status_code == 404
    api.put(f"{ROOT}/{scorer}", {"judge": {"acceptanceCriteria": "d"}})
    assert [row["version"] for row in history(api, scorer)] == [4, 3, 1, 0]


def test_counts_of_several(api, other_api, scorer):
    """`batch` is never an id; other projects' scorers are left out."""
    api.put(f"{ROOT}/{scorer}", {"judge": {"toolContext": "none"}})
    path = "/evaluate/evaluationSettings/batch/versions"
    assert api.get(path, ids=f"{scorer},nope").json() == {"versionCounts": {scorer: 2}}
    assert other_api.get(path, ids=scorer).json() == {"versionCounts": {}}


def test_an_editor_that_is_behind_is_told(api, scorer):
    """409 instead of undoing somebody else's save."""
    assert api.put(f"{ROOT}/{scorer}", {"judge": {"toolContext": "none"}, "baseVersion": 0}).status_code == 200
    assert api.put(f"{ROOT}/{scorer}", {"judge": {"toolContext": "simple"}, "baseVersion": 0}).status_code == 409
    assert api.put(f"{ROOT}/{scorer}", {"baseVersion": "x"}).status_code == 400


def test_reading_a_history_is_two_queries(api, scorer, django_assert_num_queries):
    """However long it is."""
    for text in "abcd":
        api.put(f"{ROOT}/{scorer}", {"judge": {"acceptanceCriteria": text}})
    with django_assert_num_queries(2):
        api.get(f"{ROOT}/{scorer}/versions")
