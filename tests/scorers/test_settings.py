"""The older views of a judge scorer: flat grading configs and online evaluators (EVAL-006..009, SCORE-107..115)."""

from __future__ import annotations

import pytest

from apps.core.ids import new_id
from apps.datasets.models import Dataset
from apps.projects.models import AuditEvent
from apps.scorers.models import JudgeScorer

JUDGES = "/agent-monitoring/judge-scorers"
SETTINGS = "/custom-agent-evaluations/evaluation-settings"
EVALUATORS = "/monitor/online-evaluators"
DATASETS = "/custom-agent-evaluations/datasets"


@pytest.fixture
def settings_id(api):
    """A grading config."""
    response = api.post(SETTINGS, {"name": "Strict"})
    assert response.status_code == 201
    return response.json()["_id"]


@pytest.fixture
def evaluator(api, settings_id):
    """Binds a grading config and gives the evaluator's document."""

    def make(**body):
        response = api.post(EVALUATORS, {"name": "Helpfulness", "evaluationSettingsId": settings_id, **body})
        assert response.status_code == 201, response.content
        return response.json()["evaluator"]

    return make


def test_a_grading_config_is_a_judge_scorer(api):
    """Every field is kept, sovereigntyIndex too, and shows on both surfaces under one id (EVAL-006, EVAL-007)."""
    body = {
        "name": "Strict",
        "description": None,
        "numberOfRequests": 3,
        "acceptanceCriteria": "a",
        "rejectionCriteria": "r",
        "evaluationCriteria": None,
        "judgePrompt": "Rate {output}",
        "judgeModel": "claude-opus-4-8",
        "vectorSimilarity": {"enabled": True, "model": "text-embedding-3-small"},
        "jaccardSimilarity": {"enabled": True},
        "sovereigntyIndex": {"enabled": True, "models": ["m"]},
        "codeScorers": [{"id": "c", "name": None, "code": "return 1", "enabled": False}],
    }
    response = api.post(SETTINGS, body)
    assert response.status_code == 201
    document = response.json()
    assert document.pop("createdAt").endswith("Z")
    pk = document.pop("_id")
    assert document == {
        **body,
        "bleuScore": {"enabled": False},
        "rougeScore": {"enabled": False},
        "codeScorers": [{"id": "c", "name": "Code scorer 1", "code": "return 1", "enabled": False}],
        "status": "published",
    }
    scorer = api.get(f"{JUDGES}/{pk}").json()["judgeScorer"]
    assert (scorer["name"], scorer["judge"]["acceptanceCriteria"], scorer["online"]) == ("Strict", "a", None)
    assert scorer["offline"]["sovereigntyIndex"] == {"enabled": True, "models": ["m"]}


def test_edited_on_one_surface_read_on_the_others(api, settings_id, evaluator):
    """One entity (SCORE-087)."""
    live = evaluator()
    api.put(f"{JUDGES}/{settings_id}", {"judge": {"acceptanceCriteria": "x"}, "online": {"severity": "high"}})
    assert api.get(f"{SETTINGS}/{settings_id}").json()["acceptanceCriteria"] == "x"
    assert api.get(f"{EVALUATORS}/{live['_id']}").json()["evaluator"]["severity"] == "high"
    api.put(f"{EVALUATORS}/{live['_id']}", {"sampleRate": 0.5})
    assert api.get(f"{JUDGES}/{settings_id}").json()["judgeScorer"]["online"]["sampleRate"] == 0.5


def test_lists_hold_judge_scorers_only(api, settings_id, django_assert_num_queries):
    """Never a dataset's own grading; one query (EVAL-008)."""
    dataset = api.post(DATASETS, {"name": "d", "acceptanceCriteria": "own"}).json()
    with django_assert_num_queries(1):
        rows = api.get(SETTINGS).json()["evaluationSettings"]
    ids = [row["_id"] for row in rows]
    assert settings_id in ids
    assert not {dataset["_id"], Dataset.objects.get().grading_id} & set(ids)


def test_both_mounts_and_unknown_ids(api, other_api, settings_id):
    """The SDK's mount and the dashboard's; 404 for unknown and foreign ids."""
    path = f"/evaluate/evaluation-settings/{settings_id}"
    assert api.get(path).json() == api.get(f"{SETTINGS}/{settings_id}").json()
    for response in (api.get(f"{SETTINGS}/{new_id()}"), other_api.get(f"{SETTINGS}/{settings_id}")):
        assert (response.status_code, response.json()) == (404, {"error": "Evaluation settings not found"})
    assert api.post(SETTINGS, {"name": ""}).status_code == 400


def test_an_evaluator_has_its_own_name_and_defaults(api, settings_id, evaluator):
    """Exact keys (SCORE-109, SCORE-110, SCORE-115)."""
    live = evaluator()
    assert live.pop("createdAt")
    scorer = api.get(f"{JUDGES}/{settings_id}").json()["judgeScorer"]
    assert live == {
        "_id": scorer["online"]["profileId"],
        "name": "Helpfulness",
        "evaluationSettingsId": settings_id,
        "sampleRate": 0.1,
        "scopeMode": "all",
        "agentIds": [],
        "enabled": True,
        "alertThreshold": 5,
        "severity": "medium",
        "scope": "trace",
        "idleSeconds": 120,
    }
    assert scorer["name"] == "Strict"


def test_a_profile_without_own_name_follows_the_scorer(api):
    """Renaming the scorer renames the evaluator (SCORE-115)."""
    scorer = api.post(JUDGES, {"name": "a", "online": {"enabled": True}}).json()["judgeScorer"]
    api.put(f"{JUDGES}/{scorer['_id']}", {"name": "b"})
    assert api.get(f"{EVALUATORS}/{scorer['online']['profileId']}").json()["evaluator"]["name"] == "b"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"name": " "}, "name is required"),
        ({"evaluationSettingsId": None}, "evaluationSettingsId is required"),
        ({"evaluationSettingsId": "nope"}, "evaluationSettingsId names no grading config"),
        ({"evaluationSettingsId": new_id()}, "evaluationSettingsId names no grading config"),
        ({"sampleRate": 2}, "sampleRate must be a number between 0 and 1"),
        ({"severity": "urgent"}, "severity must be one of: low, medium, high, critical"),
    ],
)
def test_bad_evaluators(api, settings_id, evaluator, body, text):
    """400 on create and edit, nothing bound (SCORE-111)."""
    full = {"name": "x", "evaluationSettingsId": settings_id}
    response = api.post(EVALUATORS, {**full, **body})
    assert (response.status_code, response.json()["error"]) == (400, text)
    assert api.get(f"{SETTINGS}/{settings_id}").status_code == 200
    assert api.get(f"{JUDGES}/{settings_id}").json()["judgeScorer"]["online"] is None
    live = evaluator()
    response = api.put(f"{EVALUATORS}/{live['_id']}", body)
    assert (response.status_code, response.json()["error"]) == (400, text)


def test_a_second_profile_binds_a_fresh_copy(api, settings_id, evaluator):
    """The answer names the copy; editing it leaves the first alone (SCORE-112)."""
    first, second = evaluator(), evaluator(name="Other")
    assert first["evaluationSettingsId"] == settings_id
    copy = second["evaluationSettingsId"]
    assert copy != settings_id
    api.put(f"{JUDGES}/{copy}", {"judge": {"acceptanceCriteria": "mine"}})
    assert api.get(f"{SETTINGS}/{settings_id}").json()["acceptanceCriteria"] is None
    assert {row["name"] for row in api.get(EVALUATORS).json()["evaluators"]} >= {"Helpfulness", "Other"}


def test_rebinding_moves_the_profile(api, settings_id, evaluator):
    """To a free config itself, to a copy of one in use; the same PUT twice binds once (SCORE-011, SCORE-112)."""
    live = evaluator(sampleRate=0.3)
    free = api.post(SETTINGS, {"name": "Free"}).json()["_id"]
    moved = api.put(f"{EVALUATORS}/{live['_id']}", {"evaluationSettingsId": free}).json()["evaluator"]
    assert moved["evaluationSettingsId"] == free
    assert (moved["_id"], moved["name"], moved["sampleRate"]) == (live["_id"], "Helpfulness", 0.3)
    assert api.get(f"{JUDGES}/{settings_id}").json()["judgeScorer"]["online"] is None
    other = evaluator(name="Second")
    body = {"evaluationSettingsId": settings_id}
    once = api.put(f"{EVALUATORS}/{live['_id']}", body).json()["evaluator"]
    count = JudgeScorer.objects.count()
    assert once["evaluationSettingsId"] not in (settings_id, free)
    assert api.put(f"{EVALUATORS}/{live['_id']}", body).json()["evaluator"] == once
    assert JudgeScorer.objects.count() == count
    assert api.get(f"{EVALUATORS}/{other['_id']}").json()["evaluator"]["evaluationSettingsId"] == settings_id


def test_sparse_edits(api, evaluator):
    """A null threshold scores without signals; the rest stays (SCORE-113)."""
    live = evaluator()
    after = api.put(f"{EVALUATORS}/{live['_id']}", {"alertThreshold": None}).json()["evaluator"]
    assert after == {**live, "alertThreshold": None}
    after = api.put(f"/agent-monitoring/online-evaluators/{live['_id']}", {"enabled": False, "scope": "session"})
    assert after.json()["evaluator"] == {**live, "alertThreshold": None, "enabled": False, "scope": "session"}


def test_deleting_leaves_the_rubric(api, settings_id, evaluator):
    """204, the settings stay; deleting the scorer takes its evaluator along (SCORE-103, SCORE-114)."""
    live = evaluator()
    assert api.delete(f"{EVALUATORS}/{live['_id']}").status_code == 204
    for response in (api.get(f"{EVALUATORS}/{live['_id']}"), api.delete(f"{EVALUATORS}/{live['_id']}")):
        assert (response.status_code, response.json()) == (404, {"error": "Online evaluator not found"})
    assert api.get(f"{SETTINGS}/{settings_id}").status_code == 200
    again = evaluator()
    assert again["_id"] != live["_id"]
    assert api.delete(f"{JUDGES}/{settings_id}").status_code == 204
    assert api.get(f"{EVALUATORS}/{again['_id']}").status_code == 404


def test_a_rubric_about_the_reference_stays_offline(api, settings_id, evaluator):
    """409 through this surface too (SCORE-105)."""
    api.put(f"{JUDGES}/{settings_id}", {"judge": {"requiresExpected": True}})
    body = {"name": "x", "evaluationSettingsId": settings_id}
    assert api.post(EVALUATORS, body).status_code == 409
    live = evaluator(enabled=False)
    assert api.put(f"{EVALUATORS}/{live['_id']}", {"enabled": True}).status_code == 409


def test_evaluators_are_listed_in_one_query_and_by_project(api, other_api, evaluator, django_assert_num_queries):
    """Only scorers with a live profile, only the project's."""
    live = evaluator()
    with django_assert_num_queries(1):
        rows = api.get(EVALUATORS).json()["evaluators"]
    assert live in rows
    assert live["_id"] not in [row["_id"] for row in other_api.get(EVALUATORS).json()["evaluators"]]
    for response in (
        other_api.get(f"{EVALUATORS}/{live['_id']}"),
        other_api.put(f"{EVALUATORS}/{live['_id']}", {"enabled": False}),
        other_api.delete(f"{EVALUATORS}/{live['_id']}"),
    ):
        assert response.status_code == 404


def test_a_datasets_grading_that_is_live_keeps_the_dataset(api):
    """409 while attached, 200 after detaching (DATA-023, DATA-043)."""
    dataset = api.post(DATASETS, {"name": "d", "acceptanceCriteria": "own", "numberOfRequests": 2}).json()
    grading_id = Dataset.objects.get().grading_id
    body = {"name": "From the dataset", "evaluationSettingsId": grading_id}
    live = api.post(EVALUATORS, body).json()["evaluator"]
    assert api.get(f"{SETTINGS}/{live['evaluationSettingsId']}").json()["acceptanceCriteria"] == "own"
    response = api.delete(f"{DATASETS}/{dataset['_id']}")
    assert response.status_code == 409
    assert "From the dataset" in response.json()["error"]
    assert api.get(f"{DATASETS}/{dataset['_id']}").status_code == 200
    assert api.put(f"{EVALUATORS}/{live['_id']}", body).json()["evaluator"] == live
    api.delete(f"{EVALUATORS}/{live['_id']}")
    assert api.delete(f"{DATASETS}/{dataset['_id']}").status_code == 200


def test_binding_is_audited(api, evaluator):
    """Attach, change, detach."""
    live = evaluator()
    api.put(f"{EVALUATORS}/{live['_id']}", {"enabled": False})
    api.put(f"{EVALUATORS}/{live['_id']}", {"enabled": False})
    api.delete(f"{EVALUATORS}/{live['_id']}")
    actions = AuditEvent.objects.filter(action__startswith="judge.").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["judge.create", "judge.attach", "judge.update", "judge.detach"]
