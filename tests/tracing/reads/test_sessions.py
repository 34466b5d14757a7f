"""GET /agent-monitoring/sessions (source 1:8767-8773)."""

from __future__ import annotations

import pytest

from apps.core.times import now_ms
from apps.tracing.models import Agent, Session

HOUR = 3_600_000
KEYS = {
    "sessionId",
    "agentId",
    "agentName",
    "turnCount",
    "spanCount",
    "errorCount",
    "totalLatencyMs",
    "firstAt",
    "lastAt",
    "judgeRating",
    "judgeName",
    "judgeCheckedAt",
    "judges",
}


@pytest.fixture
def session(project):
    """Stores one session row."""

    def make(session_id: str, hours_ago: float = 1, **columns: object) -> Session:
        last = now_ms() - int(hours_ago * HOUR)
        values = {"span_count": 3, "turn_count": 1, "first_ms": last - 1000, "last_ms": last, "stored_ms": last}
        return Session.objects.create(**{"project": project, "session_id": session_id, **values, **columns})

    return make


def test_keys_and_order(api, project, session):
    """Exact keys, most recently active first (TRC-050)."""
    agent = Agent.objects.create(project=project, name="helper")
    session("older", 5)
    session("newer", 1, agent_id=agent.pk, total_latency_ms=1500.0, error_count=2)
    body = api.get("/agent-monitoring/sessions").json()
    assert body["window"] == "7d"
    assert [row["sessionId"] for row in body["sessions"]] == ["newer", "older"]
    first = body["sessions"][0]
    assert set(first) == KEYS
    assert (first["agentId"], first["agentName"]) == (agent.pk, "helper")
    assert (first["turnCount"], first["spanCount"], first["errorCount"]) == (1, 3, 2)
    assert first["totalLatencyMs"] == 1500
    assert (first["judgeRating"], first["judgeName"], first["judgeCheckedAt"], first["judges"]) == (
        None,
        None,
        None,
        [],
    )
    assert body["sessions"][1]["agentName"] is None


def test_windows(api, session):
    """Only sessions active in the window; an unknown one reads as 7d."""
    session("today", 1)
    session("days", 50)
    session("weeks", 24 * 20)

    def listed(window: str) -> list[str]:
        body = api.get("/agent-monitoring/sessions", window=window).json()
        return [row["sessionId"] for row in body["sessions"]]

    assert listed("24h") == ["today"]
    assert listed("7d") == listed("bogus") == ["today", "days"]
    assert listed("30d") == ["today", "days", "weeks"]
    assert api.get("/agent-monitoring/sessions", window="bogus").json()["window"] == "7d"


def test_sessions_of_eval_runs_are_not_listed(api, session):
    """Their rows are not counted, so the session has none (TRC-051)."""
    session("run", span_count=0, turn_count=0)
    assert api.get("/agent-monitoring/sessions").json()["sessions"] == []


def test_pages(api, session):
    """Pages neither overlap nor skip, also with equal times."""
    moment = now_ms() - HOUR
    for n in range(7):
        session(f"s{n}", last_ms=moment + n // 3)
    seen: list[str] = []
    cursor = None
    while True:
        body = api.get("/agent-monitoring/sessions", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [row["sessionId"] for row in body["sessions"]]
        cursor = body["nextCursor"]
        if cursor is None:
            break
    assert seen == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]


@pytest.mark.parametrize("query", [{"limit": "x"}, {"cursor": "nope"}, {"cursor": "1.x"}, {"cursor": "9" * 40 + ".1"}])
def test_odd_queries_are_refused(api, query):
    """400, never a 500."""
    assert api.get("/agent-monitoring/sessions", **query).status_code == 400


def test_search(api, session):
    """Inside the session id; the pattern characters of SQL are plain text."""
    session("order-100%")
    session("order-1000")
    body = api.get("/agent-monitoring/sessions", search="100%").json()
    assert [row["sessionId"] for row in body["sessions"]] == ["order-100%"]


def test_other_project_sees_none(other_api, session):
    """A project's sessions are its own."""
    session("s")
    assert other_api.get("/agent-monitoring/sessions").json()["sessions"] == []


def test_number_of_queries_is_fixed(api, project, session, django_assert_num_queries):
    """Whether aggregates are pending, rows, names of agents."""
    agent = Agent.objects.create(project=project, name="helper")
    for n in range(30):
        session(f"s{n}", agent_id=agent.pk)
    api.get("/agent-monitoring/sessions")
    with django_assert_num_queries(3):
        api.get("/agent-monitoring/sessions")
