"""The published Python client's scorer surfaces against a server started as a user starts it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from agentx import AgentX
from agentx.monitor.judge_scorers import AgentXJudgeScorersError
from agentx.monitor.scorer_groups import AgentXScorerGroupsError

from tests.support.server import RunningServer, running_server


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server started as a user starts it."""
    with running_server() as started:
        yield started


@pytest.fixture(scope="module")
def client(server: RunningServer) -> AgentX:
    """A client with the default project's key."""
    return AgentX(api_key=server.key, base_url=server.api_url)


def test_builder_sends_all_three_parts(client):
    """One POST; the scorer reads back as built."""
    scorers = client.monitor.judge_scorers
    scorer = scorers.builder(
        "Support quality",
        "d",
        acceptance_criteria="Concrete and correct.",
        judge_model="claude-opus-4-8",
        tool_context="detailed",
        number_of_requests=2,
        vector_similarity=True,
        similarity_model="text-embedding-3-small",
        jaccard_similarity=True,
        sovereignty_models=["m1", "m2"],
        thresholds={"vectorSimilarity": 0.8},
        code_scorers=[{"name": "short", "code": "return 1"}],
        live=True,
        sample_rate=0.25,
        scope="session",
        idle_seconds=60,
        alert_threshold=None,
        severity="high",
        agent_ids=["not yet seen"],
    ).publish()
    read = scorers.get(scorer.id)
    assert read == scorer
    assert read.judge["toolContext"] == "detailed"
    assert read.offline["thresholds"] == {"vectorSimilarity": 0.8}
    assert read.offline["sovereigntyIndex"] == {"enabled": True, "models": ["m1", "m2"]}
    assert [(item["name"], item["enabled"]) for item in read.code_scorers] == [("short", True)]
    assert read.online_profile_id
    assert {key: read.online[key] for key in ("sampleRate", "scope", "idleSeconds", "alertThreshold", "severity")} == {
        "sampleRate": 0.25,
        "scope": "session",
        "idleSeconds": 60,
        "alertThreshold": None,
        "severity": "high",
    }
    assert (read.online["scopeMode"], read.online["agentIds"]) == ("selected", ["not yet seen"])
    assert scorer.id in [item.id for item in scorers.list()]


def test_sparse_updates_detaching_and_deleting(client):
    """Pausing leaves the rubric; None detaches; deletion is final; refusals carry their status."""
    scorers = client.monitor.judge_scorers
    scorer = scorers.create("s", judge={"acceptanceCriteria": "a"}, online={"enabled": True, "sampleRate": 0.2})
    paused = scorers.update(scorer.id, online={"enabled": False})
    assert (paused.judge, paused.online["sampleRate"], paused.online["enabled"]) == (scorer.judge, 0.2, False)
    assert scorers.update(scorer.id, online=None).online is None
    assert scorers.update(scorer.id, name="t", description="d", offline={"numberOfRequests": 3}).name == "t"
    with pytest.raises(AgentXJudgeScorersError) as raised:
        scorers.update(scorer.id, judge={"toolContext": "much"})
    assert raised.value.status_code == 400
    scorers.delete(scorer.id)
    with pytest.raises(AgentXJudgeScorersError) as raised:
        scorers.get(scorer.id)
    assert raised.value.status_code == 404


def test_shipped_judges(client):
    """Thirteen templates and the baseline judge, which cannot be deleted."""
    scorers = client.monitor.judge_scorers
    rows = scorers.list()
    assert len([row for row in rows if row["seeded"]]) == 13
    [baseline] = [row for row in rows if row.get("builtinKey") == "session-baseline"]
    for refused in (lambda: scorers.delete(baseline.id), lambda: scorers.update(baseline.id, online=None)):
        with pytest.raises(AgentXJudgeScorersError) as raised:
            refused()
        assert raised.value.status_code == 409
    assert scorers.update(baseline.id, online={"enabled": True}).online["enabled"] is True
    scorers.update(baseline.id, online={"enabled": False})


def test_settings_builder(client):
    """The flat view: nothing is dropped, and every row parses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = client.evaluations.settings
        made = settings.builder(
            "Strict",
            number_of_requests=3,
            acceptance_criteria="a",
            judge_prompt="Rate {output}",
            vector_similarity=True,
            sovereignty_models=["m1"],
            code_scorers=[{"code": "return 1"}],
        ).publish()
    read = settings.get(made.id)
    assert read == made
    assert (read.number_of_requests, read.judge_prompt, read.status) == (3, "Rate {output}", "published")
    assert read.sovereignty_models == ["m1"]
    assert read.code_scorers and read.code_scorers[0]["name"] == "Code scorer 1"
    assert made.id in [item.id for item in settings.list()]
    assert client.monitor.judge_scorers.get(made.id).judge["acceptanceCriteria"] == "a"


def test_online_evaluators(client):
    """Builder, reads, updates in snake case, a second profile on the same config, deletion."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluators = client.monitor.online_evaluators
        settings = client.evaluations.settings.builder("Config").publish()
    first = evaluators.builder("One", settings.id).publish()
    second = evaluators.builder("Two", settings.id, sample_rate=0.5, scope="session").publish()
    assert first.evaluation_settings_id == settings.id
    assert second.evaluation_settings_id != settings.id
    assert (second.sample_rate, second.scope, second.idle_seconds) == (0.5, "session", 120)
    assert evaluators.get(first.id) == first
    assert {first.id, second.id} <= {item.id for item in evaluators.list()}
    assert evaluators.update(first.id, alert_threshold=None, enabled=False).alert_threshold is None
    moved = evaluators.update(first.id, evaluation_settings_id=second.evaluation_settings_id)
    assert moved.evaluation_settings_id not in (settings.id, second.evaluation_settings_id)
    evaluators.delete(first.id)
    assert first.id not in {item.id for item in evaluators.list()}
    assert client.monitor.judge_scorers.get(settings.id).online is None


def test_scorer_groups(client):
    """Create, pause with a partial profile, detach, refuse a partial first profile, delete."""
    groups = client.monitor.scorer_groups
    judge = client.monitor.judge_scorers.create("member")
    members = [{"kind": "judge", "refId": judge.id, "weight": 1, "gate": True}]
    group = groups.create("Release quality bar", members=members, description="d")
    assert groups.get(group.id) == group
    assert (group.members, group.online) == (members, None)
    with pytest.raises(AgentXScorerGroupsError) as raised:
        groups.update(group.id, online={"enabled": True})
    assert raised.value.status_code == 400
    full = {"enabled": True, "sampleRate": 0.2, "alertThreshold": 6, "severity": "high"}
    assert groups.update(group.id, online=full).online["scope"] == "trace"
    assert groups.update(group.id, online={"enabled": False}).online["sampleRate"] == 0.2
    assert groups.update(group.id, online=None).online is None
    assert group.id in [item.id for item in groups.list()]
    groups.delete(group.id)
    with pytest.raises(AgentXScorerGroupsError) as raised:
        groups.get(group.id)
    assert raised.value.status_code == 404


def test_a_restart_makes_nothing_again(tmp_path):
    """What was deleted stays deleted over a stop and a start of the same home (SCORE-144)."""
    # SQLite in the home, also where the suite runs on Postgres: both starts must meet the same database.
    with running_server(home=tmp_path, db_url="") as first:
        scorers = AgentX(api_key=first.key, base_url=first.api_url).monitor.judge_scorers
        gone = next(row for row in scorers.list() if row.name == "RAG: Faithfulness")
        scorers.delete(gone.id)
        left = {row.id for row in scorers.list()}
    with running_server(home=tmp_path, db_url="") as again:
        scorers = AgentX(api_key=again.key, base_url=again.api_url).monitor.judge_scorers
        assert {row.id for row in scorers.list()} == left
