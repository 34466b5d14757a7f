"""Create, read, list, edit, delete: shapes and tolerance (DATA-001..031)."""

from __future__ import annotations

import json
import re

import pytest
from agentx.evaluations.models import Dataset as ClientDataset

from apps.datasets.grading import CISettings, ci_settings
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.services import attachments
from apps.projects.models import AuditEvent
from tests.datasets.conftest import PAGES, SDK

FULL_QUESTION = {
    "query": "How do I reset my password?",
    "expectedResults": "Click Forgot Password.",
    "expectedCapabilities": ["reset"],
    "expectedKnowledgeBase": ["help centre"],
    "expectedDelegations": ["identity"],
    "judgeGuideline": "Be strict.",
    "retrievalContext": "pinned",
    "expectedRetrievalContext": ["one", "two"],
    "expectedTrajectory": {"tools": [], "mode": "subset"},
    "smokeTest": {"enabled": True, "count": 3, "guidance": "slang"},
    "splits": ["smoke", "full"],
    "unknownKey": {"kept": [1]},
}


def test_minimal_dataset_has_exactly_six_keys(api, make):
    """What is unset is left out, also when it was sent as null (DATA-001..004, DATA-008)."""
    nulls = dict.fromkeys(
        ["description", "acceptanceCriteria", "judgePrompt", "judgeModel", "codeScorers", "ci", "bleuScore"]
    )
    body = make("q", numberOfRequests=None, workspaceId="x", **nulls)
    assert set(body) == {"_id", "name", "numberOfRequests", "questions", "status", "createdAt"}
    assert re.fullmatch(r"[A-Za-z0-9_-]{21}", body["_id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["createdAt"])
    assert (body["numberOfRequests"], body["status"]) == (1, "published")
    assert body["questions"] == [{"main_question": {"query": "q"}}]
    assert Dataset.objects.count() == 1


@pytest.mark.parametrize(("sent", "kept"), [(0, 1), (-1, 1), (2.5, 1), ("3", 1), (True, 1), (3, 3), (3.0, 3)])
def test_repetitions(make, sent, kept):
    """Null, non-integer or below 1 is 1 (DATA-004)."""
    assert make("q", numberOfRequests=sent)["numberOfRequests"] == kept


@pytest.mark.parametrize("name", [None, "", "  ", 5, [], {}])
@pytest.mark.parametrize("route", ["datasets", "datasets/import"])
def test_name_is_required(api, name, route):
    """Missing, not a string or blank (DATA-010)."""
    for body in ({"name": name, "questions": []}, {"questions": []}):
        response = api.post(f"{PAGES}/{route}", body)
        assert (response.status_code, response.json()) == (400, {"error": "name is required"})
    assert not Dataset.objects.exists()


def test_everything_sent_comes_back(api, make):
    """Cases and grading unchanged, on both mounts and in the list (DATA-013, DATA-014, DATA-029)."""
    questions = [
        {
            "main_question": FULL_QUESTION,
            "follow_up_questions": [{"query": "And then?", "expectedResults": "Done."}],
            "source": {"traceId": "abc"},
            "note": "kept",
        },
        {"main_question": {"query": "second"}, "follow_up_questions": []},
    ]
    grading = {
        "description": "d",
        "numberOfRequests": 2,
        "acceptanceCriteria": "a",
        "rejectionCriteria": "r",
        "evaluationCriteria": "e",
        "judgePrompt": "{input}",
        "judgeModel": "m",
        "vectorSimilarity": {"enabled": True, "model": "text-embedding-3-small"},
        "bleuScore": {"enabled": True},
        "sovereigntyIndex": {"enabled": True, "models": ["a", "b"]},
        "codeScorers": [{"id": "one", "name": "One", "code": "return 1", "enabled": False}],
        "ci": {
            "enabled": True,
            "webhookUrl": "https://example.com/hook",
            "passRateThreshold": 0.9,
            "failFast": True,
            "exposeTestInputs": False,
            "thresholds": {"rating": 7, "bleuScore": 0.5},
        },
    }
    created = make(questions=questions, **grading)
    assert created["questions"] == questions
    assert {key: created[key] for key in grading} == grading
    for mount in (SDK, PAGES):
        assert api.get(f"{mount}/datasets/{created['_id']}").json() == created
        assert api.get(f"{mount}/datasets", workspaceId="x").json() == {"datasets": [created]}
    copy = make(**{key: value for key, value in created.items() if key not in ("_id", "createdAt", "status")})
    assert copy["_id"] != created["_id"]
    assert {**copy, "_id": 0, "createdAt": 0} == {**created, "_id": 0, "createdAt": 0}


@pytest.mark.parametrize("questions", [None, 5, "text", {}, []])
def test_questions_that_are_no_list(make, questions):
    """Stored as none (DATA-011)."""
    assert make(questions=questions)["questions"] == []


def test_malformed_entries_keep_their_place(api, make):
    """As blank cases, and the published client can parse every read (DATA-005, DATA-011, DATA-012)."""
    good = {"main_question": {"query": "good"}}
    bad = [
        {},
        None,
        "text",
        [],
        {"main_question": None},
        {"main_question": {"query": None, "expectedResults": 5, "splits": "smoke", "smokeTest": []}},
        {"main_question": {"query": "q", "expectedTrajectory": ["a"], "smokeTest": {"enabled": 1, "count": 11.7}}},
        {"main_question": {"query": {"a": 1}}, "follow_up_questions": "no", "source": 3},
        {"main_question": {"query": "q", "expectedCapabilities": [1, None, "x"]}, "follow_up_questions": [None, {}]},
    ]
    body = make(questions=[*bad, good])
    assert len(body["questions"]) == len(bad) + 1
    assert body["questions"][-1] == good
    assert body["questions"][0]["main_question"] == {"query": ""}
    assert body["questions"][5]["main_question"] == {"query": "", "expectedResults": "5", "splits": ["smoke"]}
    assert body["questions"][6]["main_question"] == {"query": "q", "smokeTest": {"enabled": False, "count": 10}}
    assert body["questions"][8]["main_question"]["expectedCapabilities"] == ["1", "x"]
    [listed] = api.get(f"{SDK}/datasets").json()["datasets"]
    parsed = ClientDataset(**listed)
    assert parsed.questions[-1].main_question.query == "good"


def test_null_keys_are_absent(make):
    """A re-imported dataset sends null for every unset key (DATA-012)."""
    question = dict.fromkeys(FULL_QUESTION) | {"query": "q", "smokeTest": {"enabled": True, "guidance": None}}
    body = make(questions=[{"main_question": question, "follow_up_questions": None}])
    assert body["questions"] == [{"main_question": {"query": "q", "smokeTest": {"enabled": True}}}]


@pytest.mark.parametrize(("sent", "kept"), [(11, 10), (0, 1), (3, 3), ("x", 1), (True, 1), (1e300, 10)])
def test_smoke_count_is_clamped(make, sent, kept):
    """A whole number from 1 to 10 (DATA-021)."""
    body = make(questions=[{"main_question": {"query": "q", "smokeTest": {"enabled": True, "count": sent}}}])
    assert body["questions"][0]["main_question"]["smokeTest"]["count"] == kept


@pytest.mark.parametrize("enabled", [False, 1, "true", None])
def test_metrics_need_exactly_true(make, enabled):
    """Anything else is off and absent (DATA-024)."""
    assert "bleuScore" not in make("q", bleuScore={"enabled": enabled})


def test_code_scorers(make):
    """Empty code is dropped, ids and names are made, enabled is the default (DATA-025, EVAL-104, EVAL-105)."""
    body = make(
        "q",
        codeScorers=[
            {"name": None, "code": "return 1"},
            {"name": "x", "code": " "},
            {"id": "mine", "name": "Mine", "code": "return 2", "enabled": None},
            {"id": "mine", "code": "return 3", "enabled": False},
            "junk",
        ],
    )
    first, second, third = body["codeScorers"]
    assert first["name"] == "Code scorer 1"
    assert first["enabled"] is True
    assert re.fullmatch(r"[A-Za-z0-9_-]{21}", first["id"])
    assert second == {"id": "mine", "name": "Mine", "code": "return 2", "enabled": True}
    assert (third["name"], third["enabled"]) == ("Code scorer 3", False)
    assert third["id"] != "mine"
    assert "codeScorers" not in make("q", codeScorers=[{"code": ""}])


@pytest.mark.parametrize(
    ("ci", "named"),
    [
        ([], "ci must"),
        ({"enabled": "yes"}, "ci.enabled"),
        ({"passRateThreshold": 90}, "ci.passRateThreshold"),
        ({"passRateThreshold": True}, "ci.passRateThreshold"),
        ({"thresholds": {"rating": 11}}, "ci.thresholds.rating"),
        ({"thresholds": {"bleuScore": 1.5}}, "ci.thresholds.bleuScore"),
        ({"thresholds": {"ratting": 7}}, "ci.thresholds"),
        ({"webhookUrl": "ftp://x"}, "ci.webhookUrl"),
        ({"webhookUrl": 5}, "ci.webhookUrl"),
    ],
)
def test_ci_that_would_gate_wrongly_is_refused(api, ci, named):
    """The text names the key (DATA-028)."""
    response = api.post(f"{SDK}/datasets", {"name": "n", "ci": ci})
    assert response.status_code == 400
    assert response.json()["error"].startswith(named)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("description", 5),
        ("acceptanceCriteria", ["a"]),
        ("judgePrompt", {}),
        ("codeScorers", {}),
        ("sovereigntyIndex", []),
    ],
)
def test_values_of_the_wrong_kind_are_refused(api, make, key, value):
    """They are not taken for unset: an edit would clear what is there."""
    body = make("q", acceptanceCriteria="a", codeScorers=[{"code": "return 1"}])
    path = f"{PAGES}/datasets/{body['_id']}"
    for response in (api.post(f"{SDK}/datasets", {"name": "n", key: value}), api.put(path, {key: value})):
        assert response.status_code == 400
        assert response.json()["error"].startswith(key)
    assert api.get(path).json() == body


def test_ci_defaults():
    """Pass rate 1.0, fail-fast off, inputs exposed, rating 7 (DATA-028)."""
    assert ci_settings(None) == CISettings(False, None, 1.0, False, True, {"rating": 7.0})
    assert ci_settings({"enabled": True, "thresholds": {"bleuScore": 0.5}}).thresholds == {"bleuScore": 0.5}


def test_newest_first_and_no_other_projects(api, other_api, make):
    """One query however many there are (DATA-006, DATA-007)."""
    ids = [make(str(n), name=f"n{n}")["_id"] for n in range(3)]
    assert [item["_id"] for item in api.get(f"{SDK}/datasets").json()["datasets"]] == ids[::-1]
    assert other_api.get(f"{SDK}/datasets").json() == {"datasets": []}
    for dataset_id in (ids[0], "x" * 21, "nope", "a%00b"):
        for method, path in (("get", ""), ("delete", ""), ("get", "/versions")):
            response = getattr(other_api, method)(f"{PAGES}/datasets/{dataset_id}{path}")
            assert (response.status_code, response.json()) == (404, {"error": "Dataset not found"})
        response = other_api.put(f"{PAGES}/datasets/{dataset_id}", {"name": "stolen"})
        assert (response.status_code, response.json()) == (404, {"error": "Dataset not found"})
    assert Dataset.objects.filter(name="stolen").count() == 0


def test_queries_are_fixed(api, make, django_assert_num_queries):
    """A list or a read is one query, however many datasets and cases."""
    for n in range(5):
        first = make("a", "b", name=f"n{n}")
    api.get(f"{SDK}/datasets")
    with django_assert_num_queries(1):
        api.get(f"{SDK}/datasets")
    with django_assert_num_queries(1):
        api.get(f"{SDK}/datasets/{first['_id']}")
    with django_assert_num_queries(2):
        api.get(f"{PAGES}/datasets/{first['_id']}/versions")


def test_edit_changes_only_what_is_sent(api, make):
    """The dashboard's mount edits, the SDK's does not (DATA-009)."""
    before = make("q", description="d", acceptanceCriteria="a", ci={"enabled": True})
    path = f"/datasets/{before['_id']}"
    after = api.put(PAGES + path, {"rejectionCriteria": "r"})
    assert after.status_code == 200
    assert after.json() == {**before, "rejectionCriteria": "r"}
    cleared = api.put(PAGES + path, {"acceptanceCriteria": None, "description": "", "ci": None, "questions": None})
    assert set(cleared.json()) == set(before) - {"acceptanceCriteria", "description", "ci"} | {"rejectionCriteria"}
    assert cleared.json()["questions"] == before["questions"]
    assert api.put(SDK + path, {"name": "x"}).status_code == 405
    assert api.put(PAGES + path, {"name": " "}).json() == {"error": "name is required"}
    assert api.put(f"{PAGES}/datasets/{'x' * 21}", {"name": "x"}).status_code == 404
    assert api.put(PAGES + path, []).status_code == 400


@pytest.mark.parametrize("mount", [SDK, PAGES])
def test_delete(api, make, mount):
    """The dataset and its history go (DATA-042)."""
    path = f"{mount}/datasets/{make('q')['_id']}"
    response = api.delete(path)
    assert (response.status_code, response.json()) == (200, {"success": True})
    assert not DatasetVersion.objects.exists()
    for answer in (api.get(path), api.get(f"{path}/versions"), api.delete(path)):
        assert (answer.status_code, answer.json()) == (404, {"error": "Dataset not found"})


def test_attached_dataset_stays(api, make, project):
    """409 naming what it is attached to; detached it goes (DATA-043)."""
    body = make("q")
    grading_id = Dataset.objects.get().grading_id
    attached = ["Refund watch"]
    attachments.checks["test"] = lambda owner, found: attached if (owner, found) == (project, grading_id) else []
    try:
        response = api.delete(f"{PAGES}/datasets/{body['_id']}")
        assert response.status_code == 409
        assert "Refund watch" in response.json()["error"]
        assert api.get(f"{PAGES}/datasets/{body['_id']}").json() == body
        attached.clear()
        assert api.delete(f"{PAGES}/datasets/{body['_id']}").status_code == 200
    finally:
        del attachments.checks["test"]


def test_import_of_an_export_row(api, make):
    """The row unchanged gives a copy with fresh ids, as often as it is sent (DATA-044)."""
    original = make(
        questions=[{"main_question": FULL_QUESTION, "follow_up_questions": []}],
        description="d",
        judgeModel="m",
        acceptanceCriteria="a",
        jaccardSimilarity={"enabled": True},
        codeScorers=[{"id": "one", "name": "n", "code": "c"}],
        ci={"enabled": True, "webhookUrl": "https://example.com/secret"},
    )
    response = api.get("/export/datasets")
    [line] = b"".join(response.streaming_content).decode().splitlines()
    assert "secret" not in line
    row = json.loads(line)
    assert row["id"] == original["_id"]
    copies = [api.post(f"{mount}/datasets/import", row) for mount in (PAGES, PAGES, SDK)]
    assert [copy.status_code for copy in copies] == [201] * 3
    assert len({copy.json()["_id"] for copy in copies} | {original["_id"]}) == 4
    expected = {**original, "_id": 0, "createdAt": 0, "ci": {"enabled": True}}
    for copy in copies:
        assert {**copy.json(), "_id": 0, "createdAt": 0} == expected
    nested = {"id": "x", "name": "n", "questions": [], "grading": {"judgeModel": "m"}, "createdAt": "junk"}
    assert api.post(f"{PAGES}/datasets/import", nested).json()["judgeModel"] == "m"


def test_audit_names_fields_never_values(api, make):
    """One row for each action."""
    body = make("q", description="private words")
    api.put(f"{PAGES}/datasets/{body['_id']}", {"name": "other"})
    api.delete(f"{PAGES}/datasets/{body['_id']}")
    rows = AuditEvent.objects.filter(action__startswith="dataset.").order_by("pk")
    assert [row.action for row in rows] == ["dataset.create", "dataset.update", "dataset.delete"]
    assert not any("private words" in row.summary for row in rows)


def test_any_text_is_stored(api, make):
    """NUL and lone surrogates are replaced, everything else comes back (DATA-014)."""
    texts = ["😀👩‍👩‍👧", "שלום", "e\u0301", "\u202eevil", "\ufeffbom", "a\r\n\tb", "\u2028", "'\"\\", "x" * 1_000_000]
    body = make(*texts)
    assert [item["main_question"]["query"] for item in body["questions"]] == texts
    raw = '{"name":"n\\u0000\\ud83d","questions":[{"main_question":{"query":"a\\u0000b\\udc00c\\ud83d\\ude00"}}]}'
    response = api.client.post(f"/api/v1{SDK}/datasets", raw, content_type="application/json")
    assert response.status_code == 201
    stored = api.get(f"{SDK}/datasets/{response.json()['_id']}").json()
    assert stored["name"] == "n\ufffd\ufffd"
    assert stored["questions"][0]["main_question"]["query"] == "a\ufffdb\ufffdc😀"


def test_odd_json_values_do_not_break_reads(api):
    """Huge numbers and deep nesting inside unknown keys."""
    deep = "[" * 300 + "]" * 300
    raw = f'{{"name":"n","questions":[{{"main_question":{{"query":"q","n":{10**30},"deep":{deep}}}}}]}}'
    assert api.client.post(f"/api/v1{SDK}/datasets", raw, content_type="application/json").status_code == 201
    [listed] = api.get(f"{SDK}/datasets").json()["datasets"]
    assert listed["questions"][0]["main_question"]["query"] == "q"


def test_ten_thousand_cases(api, make):
    """Created, read, listed and edited whole."""
    queries = [f"Question {n}?" for n in range(10_000)]
    body = make(*queries)
    assert Dataset.objects.get().case_count == 10_000
    assert [q["main_question"]["query"] for q in body["questions"]] == queries
    edited = api.put(f"{PAGES}/datasets/{body['_id']}", {"questions": body["questions"], "name": "Renamed"})
    assert edited.json()["questions"] == body["questions"]
    assert [v["changeSummary"] for v in api.get(f"{PAGES}/datasets/{body['_id']}/versions").json()] == [
        "Updated name",
        "Created",
    ]
