"""Requests that arrive at once, against a server with real threads and a real database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.server import RunningServer, running_server

AT_ONCE = 8
JUDGES = "/agent-monitoring/judge-scorers"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server started as a user starts it."""
    with running_server(env={"AGENTX_RATE_LIMIT": "off"}) as started:
        yield started


@pytest.fixture
def call(server):
    """One request; the parsed answer of a success, else the status."""

    def call(method: str, path: str, body: Any = None) -> Any:
        response = httpx.request(
            method, f"{server.api_url}{path}", json=body, headers={"x-api-key": server.key}, timeout=60
        )
        return response.json() if response.is_success and response.content else response.status_code

    return call


@pytest.fixture
def grading_id(server):
    """The id of a dataset's own grading config, which its export row names."""

    def find(dataset: str) -> str:
        response = httpx.get(f"{server.api_url}/export/datasets", headers={"x-api-key": server.key}, timeout=60)
        rows = [json.loads(line) for line in response.text.splitlines()]
        return next(row["gradingId"] for row in rows if row["id"] == dataset)

    return find


def at_once(function, items) -> list[Any]:
    """The results of all, run side by side."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, items))


def test_one_config_bound_many_times(call):
    """Each evaluator has a scorer of its own, exactly one of them the config itself."""
    settings = call("POST", "/custom-agent-evaluations/evaluation-settings", {"name": "c"})["_id"]
    body = {"name": "e", "evaluationSettingsId": settings}
    made = at_once(lambda _: call("POST", "/monitor/online-evaluators", body), range(AT_ONCE))
    bound = [item["evaluator"]["evaluationSettingsId"] for item in made]
    assert len(set(bound)) == AT_ONCE
    assert bound.count(settings) == 1
    assert len({item["evaluator"]["_id"] for item in made}) == AT_ONCE


def test_many_want_to_be_the_default(call):
    """One is left."""
    ids = [call("POST", JUDGES, {"name": f"d{n}"})["judgeScorer"]["_id"] for n in range(AT_ONCE)]
    at_once(lambda pk: call("PUT", f"{JUDGES}/{pk}", {"offline": {"isDefault": True}}), ids)
    rows = call("GET", JUDGES)["judgeScorers"]
    assert len([row for row in rows if row["offline"]["isDefault"]]) == 1


def test_edits_of_one_scorer_keep_each_other(call):
    """Sections merge over what is stored when the row is held, and every version has a number of its own."""
    pk = call("POST", JUDGES, {"name": "s"})["judgeScorer"]["_id"]
    bodies = [
        {"judge": {"acceptanceCriteria": "a"}},
        {"judge": {"rejectionCriteria": "r"}},
        {"judge": {"evaluationCriteria": "e"}},
        {"judge": {"judgeModel": "m"}},
        {"offline": {"numberOfRequests": 4}},
        {"online": {"enabled": True}},
        {"description": "d"},
        {"name": "n"},
    ]
    at_once(lambda body: call("PUT", f"{JUDGES}/{pk}", body), bodies)
    row = call("GET", f"{JUDGES}/{pk}")["judgeScorer"]
    judge = row["judge"]
    assert [judge[key] for key in ("acceptanceCriteria", "rejectionCriteria", "evaluationCriteria", "judgeModel")] == [
        "a",
        "r",
        "e",
        "m",
    ]
    assert (row["name"], row["description"], row["offline"]["numberOfRequests"]) == ("n", "d", 4)
    assert row["online"]["enabled"] is True
    versions = call("GET", f"{JUDGES}/{pk}/versions")
    assert [entry["version"] for entry in versions] == [5, 4, 3, 2, 1, 0]


def test_a_dataset_is_deleted_or_bound_never_both(call, grading_id):
    """Whichever comes first wins; no live profile is left of a dataset that is gone without its knowing."""
    for _ in range(4):
        dataset = call("POST", "/custom-agent-evaluations/datasets", {"name": "d", "acceptanceCriteria": "own"})["_id"]
        body = {"name": "e", "evaluationSettingsId": grading_id(dataset)}
        jobs = [
            ("POST", "/monitor/online-evaluators", body),
            ("DELETE", f"/custom-agent-evaluations/datasets/{dataset}", None),
        ]
        bound, deleted = at_once(lambda job: call(*job), jobs)
        assert (bound == 400 and deleted == {"success": True}) or (isinstance(bound, dict) and deleted == 409)
