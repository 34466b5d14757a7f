"""/agent-monitoring/judge-scorers over HTTP (SCORE-087..106)."""

from __future__ import annotations

import json

import pytest

from apps.projects.models import AuditEvent
from apps.tracing.models import Agent

ROOT = "/agent-monitoring/judge-scorers"
OFF = {"enabled": False}


@pytest.fixture
def make(api):
    """Creates a scorer and gives its document."""

    def make(**body):
        response = api.post(ROOT, {"name": "Support quality", **body})
        assert response.status_code == 201, response.content
        return response.json()["judgeScorer"]

    return make


def put(api, scorer, body):
    """The document after a PUT that must succeed."""
    response = api.put(f"{ROOT}/{scorer['_id']}", body)
    assert response.status_code == 200, response.content
    return response.json()["judgeScorer"]


def test_only_a_name_is_needed(api, make):
    """Exactly the keys of the wire, with their defaults (SCORE-089..092, SCORE-098, SCORE-099)."""
    scorer = make()
    created = scorer.pop("createdAt")
    assert created.endswith("Z") and len(created) == 24
    assert len(scorer.pop("_id")) == 21
    assert scorer == {
        "name": "Support quality",
        "description": None,
        "judge": {
            "acceptanceCriteria": None,
            "rejectionCriteria": None,
            "evaluationCriteria": None,
            "judgePrompt": None,
            "judgeModel": None,
            "toolContext": "simple",
            "requiresExpected": False,
        },
        "offline": {
            "numberOfRequests": 1,
            "isDefault": False,
            "status": "published",
            "vectorSimilarity": OFF,
            "jaccardSimilarity": OFF,
            "bleuScore": OFF,
            "rougeScore": OFF,
            "sovereigntyIndex": {"enabled": False, "models": []},
            "thresholds": {},
            "codeScorers": [],
        },
        "online": None,
        "seeded": False,
    }


def test_everything_in_one_post_reads_back(api, make):
    """All three sections; code scorers get id, name and enabled; a live profile gets a profileId (EVAL-104)."""
    judge = {
        "acceptanceCriteria": "Cites the policy.",
        "rejectionCriteria": "Invents one.",
        "evaluationCriteria": "Be strict.",
        "judgePrompt": "Rate {output}",
        "judgeModel": "openrouter/x/y",
        "toolContext": "detailed",
        "requiresExpected": False,
    }
    scorer = make(
        description="d",
        judge=judge,
        offline={
            "numberOfRequests": 3,
            "vectorSimilarity": {"enabled": True, "model": "text-embedding-3-small"},
            "bleuScore": {"enabled": True},
            "sovereigntyIndex": {"enabled": True, "models": ["a", "b"]},
            "thresholds": {"cosine": 0.8, "rating": 7},
            "codeScorers": [{"name": None, "code": "return 1"}, {"id": "x", "name": "n", "code": "return 0"}],
        },
        online={"enabled": True},
    )
    assert api.get(f"{ROOT}/{scorer['_id']}").json() == {"judgeScorer": scorer}
    assert scorer["judge"] == judge
    offline = scorer["offline"]
    assert offline["vectorSimilarity"] == {"enabled": True, "model": "text-embedding-3-small"}
    assert offline["thresholds"] == {"vectorSimilarity": 0.8, "rating": 7}
    assert offline["sovereigntyIndex"] == {"enabled": True, "models": ["a", "b"]}
    first, second = offline["codeScorers"]
    assert (first["name"], first["code"], first["enabled"]) == ("Code scorer 1", "return 1", True)
    assert first["id"] and second == {"id": "x", "name": "n", "code": "return 0", "enabled": True}
    online = scorer["online"]
    assert len(online.pop("profileId")) == 21
    assert online == {
        "enabled": True,
        "sampleRate": 0.1,
        "scope": "trace",
        "alertThreshold": 5,
        "severity": "medium",
        "idleSeconds": 120,
        "scopeMode": "all",
        "agentIds": [],
    }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"name": "  "}, "name is required"),
        ({"name": 5}, "name is required"),
        ({"judge": []}, "judge must be an object"),
        ({"judge": {"toolContext": "some"}}, "toolContext must be one of: none, simple, detailed"),
        ({"judge": {"judgePrompt": 1}}, "judgePrompt must be a string or null"),
        ({"judge": {"requiresExpected": "yes"}}, "requiresExpected must be true or false"),
        ({"offline": {"isDefault": 1}}, "isDefault must be true or false"),
        ({"offline": {"thresholds": {"quality": 1}}}, "thresholds knows only rating, vectorSimilarity,"),
        ({"offline": {"thresholds": {"bleu": 7}}}, "thresholds.bleuScore must be a number between 0 and 1"),
        ({"offline": {"codeScorers": {"code": "return 1"}}}, "codeScorers must be a list"),
        ({"online": {"severity": "urgent"}}, "severity must be one of: low, medium, high, critical"),
        ({"online": {"sampleRate": -1}}, "sampleRate must be a number between 0 and 1"),
        ({"online": {"sampleRate": 1.5}}, "sampleRate must be a number between 0 and 1"),
        ({"online": {"sampleRate": "x"}}, "sampleRate must be a number between 0 and 1"),
        ({"online": {"sampleRate": True}}, "sampleRate must be a number between 0 and 1"),
        ({"online": {"alertThreshold": 11}}, "alertThreshold must be null or a number between 0 and 10"),
        ({"online": {"idleSeconds": 0}}, "idleSeconds must be a whole number of at least 1"),
        ({"online": {"scope": "span"}}, "scope must be one of: trace, session"),
        ({"online": {"scopeMode": "some"}}, "scopeMode must be one of: all, selected"),
        ({"online": {"agentIds": "a"}}, "agentIds must be a list"),
        ({"online": "on"}, "online must be an object or null"),
    ],
)
def test_bad_input_is_refused_on_create_and_edit(api, make, body, text):
    """400 with a text that names the key; nothing is stored (SCORE-005, SCORE-006, SCORE-097)."""
    scorer = make()
    before = len(api.get(ROOT).json()["judgeScorers"])
    for response in (api.post(ROOT, {"name": "x", **body}), api.put(f"{ROOT}/{scorer['_id']}", body)):
        assert response.status_code == 400
        assert response.json()["error"].startswith(text)
    assert api.get(f"{ROOT}/{scorer['_id']}").json()["judgeScorer"] == scorer
    assert len(api.get(ROOT).json()["judgeScorers"]) == before


def test_put_is_sparse_and_merges_inside_sections(api, make):
    """What is not sent stays (SCORE-101)."""
    scorer = make(
        judge={"acceptanceCriteria": "a", "rejectionCriteria": "r"}, online={"enabled": True, "severity": "high"}
    )
    after = put(api, scorer, {"judge": {"acceptanceCriteria": "b"}, "online": {"enabled": False}})
    expected = {**scorer, "judge": {**scorer["judge"], "acceptanceCriteria": "b"}}
    expected["online"] = {**scorer["online"], "enabled": False}
    assert after == expected
    assert put(api, scorer, {}) == expected
    assert put(api, scorer, {"judge": {"acceptanceCriteria": None}})["judge"]["acceptanceCriteria"] is None


def test_going_live_and_detaching(api, make):
    """PUT online makes the one profile, null takes it away; a new one has an id of its own (SCORE-102)."""
    scorer = make()
    live = put(api, scorer, {"online": {"enabled": True, "sampleRate": 0.2, "alertThreshold": 5}})["online"]
    assert (live["enabled"], live["sampleRate"]) == (True, 0.2)
    assert put(api, scorer, {"online": {"alertThreshold": None}})["online"]["profileId"] == live["profileId"]
    assert put(api, scorer, {"online": None})["online"] is None
    again = put(api, scorer, {"online": {"enabled": True}})["online"]
    assert again["profileId"] != live["profileId"]
    assert again["alertThreshold"] == 5


def test_a_rubric_about_the_reference_cannot_go_live(api, make):
    """409 by every way that would leave live scoring on (SCORE-105)."""
    judge = {"requiresExpected": True}
    assert api.post(ROOT, {"name": "x", "judge": judge, "online": {"enabled": True}}).status_code == 409
    scorer = make(judge=judge, online={"enabled": False})
    assert api.put(f"{ROOT}/{scorer['_id']}", {"online": {"enabled": True}}).status_code == 409
    live = make(online={"enabled": True})
    response = api.put(f"{ROOT}/{live['_id']}", {"judge": judge})
    assert response.status_code == 409
    assert "reference" in response.json()["error"]
    assert put(api, live, {"judge": judge, "online": {"enabled": False}})["judge"]["requiresExpected"] is True


def test_one_default_for_runs(api, make, other_api):
    """Marking one clears the mark of the others, within the project (SCORE-095)."""
    other = other_api.post(ROOT, {"name": "o", "offline": {"isDefault": True}}).json()["judgeScorer"]
    first = make(offline={"isDefault": True})
    second = make(offline={"isDefault": True})
    third = make()
    put(api, third, {"offline": {"isDefault": True}})
    marked = [row["_id"] for row in api.get(ROOT).json()["judgeScorers"] if row["offline"]["isDefault"]]
    assert marked == [third["_id"]]
    assert first["_id"] != second["_id"]
    assert other_api.get(f"{ROOT}/{other['_id']}").json()["judgeScorer"]["offline"]["isDefault"] is True
    put(api, second, {"name": "renamed"})
    assert len([row for row in api.get(ROOT).json()["judgeScorers"] if row["offline"]["isDefault"]]) == 1


def test_agents_by_id_or_name(api, make, project):
    """Names become ids on write; one that never reported stays a name; always a list (SCORE-009)."""
    agent = Agent.objects.create(project=project, name="billing")
    twin = Agent.objects.create(project=project, name="sales")
    online = make(online={"scopeMode": "selected", "agentIds": ["billing", twin.pk, "sales", "not yet"]})["online"]
    assert online["agentIds"] == [agent.pk, twin.pk, "not yet"]
    assert make(online={"agentIds": None})["online"]["agentIds"] == []


def test_delete_takes_everything(api, make):
    """204, then 404 everywhere (SCORE-103)."""
    scorer = make(online={"enabled": True})
    assert api.delete(f"{ROOT}/{scorer['_id']}").status_code == 204
    for path in (f"{ROOT}/{scorer['_id']}", f"{ROOT}/{scorer['_id']}/versions"):
        response = api.get(path)
        assert (response.status_code, response.json()) == (404, {"error": "Judge scorer not found"})
    assert api.delete(f"{ROOT}/{scorer['_id']}").status_code == 404


@pytest.mark.parametrize("scorer_id", ["nope", "K6ycXIsG4mWmF9u1Zg3tQ", "%00" * 21])
def test_unknown_ids(api, scorer_id):
    """404 for ids that cannot be ours and for those that are nobody's."""
    for response in (
        api.get(f"{ROOT}/{scorer_id}"),
        api.put(f"{ROOT}/{scorer_id}", {}),
        api.delete(f"{ROOT}/{scorer_id}"),
    ):
        assert response.status_code == 404
    assert api.post(f"{ROOT}/{scorer_id}/clone", {}).status_code == 404


def test_projects_are_apart(make, other_api):
    """Another project's key sees nothing of it."""
    scorer = make()
    assert other_api.get(f"{ROOT}/{scorer['_id']}").status_code == 404
    assert other_api.put(f"{ROOT}/{scorer['_id']}", {"name": "x"}).status_code == 404
    assert other_api.delete(f"{ROOT}/{scorer['_id']}").status_code == 404
    assert scorer["_id"] not in [row["_id"] for row in other_api.get(ROOT).json()["judgeScorers"]]


def test_clone_is_an_own_scorer(api, make):
    """Rubric and offline profile, without live profile and default mark; the source stays (SCORE-143)."""
    source = make(judge={"acceptanceCriteria": "a"}, offline={"isDefault": True}, online={"enabled": True})
    response = api.post(f"{ROOT}/{source['_id']}/clone", {})
    assert response.status_code == 201
    clone = response.json()["judgeScorer"]
    assert clone["_id"] != source["_id"]
    assert (clone["name"], clone["judge"]) == ("Support quality (copy)", source["judge"])
    assert (clone["online"], clone["offline"]["isDefault"], clone["seeded"]) == (None, False, False)
    assert api.get(f"{ROOT}/{source['_id']}").json()["judgeScorer"] == source
    named = api.post(f"{ROOT}/{source['_id']}/clone", {"name": "Mine"}).json()["judgeScorer"]
    assert named["name"] == "Mine"


def test_newest_first_in_a_fixed_number_of_queries(api, make, django_assert_num_queries):
    """The list costs the same for one scorer and for many."""
    make(name="first")
    api.get(ROOT)
    with django_assert_num_queries(1):
        api.get(ROOT)
    for n in range(5):
        make(name=f"n{n}")
    with django_assert_num_queries(1):
        rows = api.get(ROOT).json()["judgeScorers"]
    ids = [row["_id"] for row in rows]
    assert ids == sorted(ids, reverse=True)
    assert {row["name"] for row in rows[:5]} == {f"n{n}" for n in range(5)}


def test_both_prefixes_answer_alike(api, make):
    """/monitor and /agent-monitoring are one surface."""
    scorer = make()
    path = f"/judge-scorers/{scorer['_id']}"
    assert api.get(f"/monitor{path}").json() == api.get(f"/agent-monitoring{path}").json()


def test_writes_are_audited_without_values(api, make):
    """Who did what, and which fields were named."""
    scorer = make(judge={"acceptanceCriteria": "secret sauce"})
    put(api, scorer, {"judge": {"acceptanceCriteria": "other"}})
    put(api, scorer, {"judge": {"acceptanceCriteria": "other"}})
    api.post(f"{ROOT}/{scorer['_id']}/clone", {})
    api.delete(f"{ROOT}/{scorer['_id']}")
    events = AuditEvent.objects.filter(action__startswith="judge.").order_by("id")
    assert [event.action for event in events] == ["judge.create", "judge.update", "judge.clone", "judge.delete"]
    assert events[1].summary == "judge"
    assert "sauce" not in "".join(event.summary for event in events)


def test_exports_hold_every_part(api, make):
    """Settings with rubric and offline profile, their history, live profiles, groups; counts equal lines."""
    scorer = make(judge={"acceptanceCriteria": "a"}, online={"enabled": True})
    api.post("/agent-monitoring/scorer-groups", {"name": "g", "members": [{"kind": "judge", "refId": scorer["_id"]}]})

    def rows(entity):
        text = b"".join(api.get(f"/export/{entity}").streaming_content).decode()
        return [json.loads(line) for line in text.splitlines()]

    counts = {item["entity"]: item["rows"] for item in api.get("/export").json()["entities"]}
    names = ("evaluation-settings", "evaluation-settings-versions", "online-evaluators", "scorer-groups")
    exported = {name: rows(name) for name in names}
    assert {name: len(lines) for name, lines in exported.items()} == {name: counts[name] for name in names}
    [settings] = [row for row in exported["evaluation-settings"] if row["id"] == scorer["_id"]]
    assert (settings["acceptanceCriteria"], settings["numberOfRequests"], settings["seeded"]) == ("a", 1, False)
    [version] = [
        row for row in exported["evaluation-settings-versions"] if row["evaluationSettingsId"] == scorer["_id"]
    ]
    assert (version["version"], version["changeSummary"]) == (0, "Created")
    [profile] = [row for row in exported["online-evaluators"] if row["evaluationSettingsId"] == scorer["_id"]]
    assert (profile["id"], profile["enabled"]) == (scorer["online"]["profileId"], True)
    [group] = exported["scorer-groups"]
    assert (group["name"], group["members"][0]["refId"]) == ("g", scorer["_id"])


def test_a_deleted_project_leaves_nothing(project, other_project):
    """Scorers, history, groups and what was seeded go with their project."""
    from apps.scorers.models import JudgeScorer, JudgeScorerVersion, ScorerGroup, SeededScorers
    from apps.scorers.services.templates import seed

    seed(other_project)
    ScorerGroup.objects.create(project=other_project, name="g")
    kept = JudgeScorer.objects.filter(project=project).count()
    other_project.delete()
    assert JudgeScorer.objects.count() == JudgeScorerVersion.objects.count() == kept
    assert (ScorerGroup.objects.count(), SeededScorers.objects.count()) == (0, 1)
