"""The published client's evaluations against a running server and a judge on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from agentx import AgentX
from agentx.evaluations.client import AgentXEvaluationsError, EvaluationSubmissionError
from agentx.testing import EvaluationAssertionError, assert_evaluation

from tests.evaluations.conftest import rate, result, verdicts
from tests.support.providers import Answer, FakeProvider, running_provider
from tests.support.server import ROOT, RunningServer, clean_environment, running_server, start_server

SUBJECT = {"kind": "custom_agent", "display_name": "Support bot", "framework": "raw_python", "runtime": "ci"}


@pytest.fixture(scope="module")
def provider():
    with running_provider() as running:
        yield running


@pytest.fixture(scope="module")
def environment(provider):
    return {
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": provider.openai_url,
        "AGENTX_RATE_LIMIT_DATA": "100000",
        "AGENTX_RATE_LIMIT_CREDENTIAL": "100000",
    }


@pytest.fixture(scope="module")
def server(environment):
    with running_server(env=environment) as running:
        yield running


@pytest.fixture(autouse=True)
def judge(provider, monkeypatch) -> FakeProvider:
    """Forgets what it was asked before; rates by the number in the answer."""
    monkeypatch.setenv("AGENTX_EVAL_QUIET", "1")
    provider.forget()
    provider.respond = rate
    return provider


@pytest.fixture
def client(server) -> AgentX:
    return AgentX(api_key=server.key, base_url=server.api_url)


def make_dataset(client: AgentX, *queries: str, **body: Any) -> str:
    questions = [{"main_question": {"query": query, "expectedResults": f"About {query}"}} for query in queries]
    return client.evaluations._client.create_dataset({"name": "Support", "questions": questions, **body}).id


def post(server: RunningServer, path: str, body: Any) -> httpx.Response:
    url = f"{server.api_url}/custom-agent-evaluations{path}"
    return httpx.post(url, json=body, headers={"x-api-key": server.key}, timeout=120)


def get(server: RunningServer, path: str, **query: Any) -> Any:
    url = f"{server.api_url}{path}"
    response = httpx.get(url, params=query, headers={"x-api-key": server.key}, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


def test_run_execute_finalize_gate(client, judge):
    """The whole loop: every case judged once, results typed, the gate recorded."""
    dataset = make_dataset(client, *(f"Question {n}?" for n in range(12)), numberOfRequests=2)
    seen: list[str] = []

    def agent(case):
        seen.append(case.query)
        if case.query == "Question 3?":
            raise RuntimeError("tool down")
        if case.query == "Question 4?":
            return ""
        return {"output": "rate 7", "input_tokens": 12, "output_tokens": 3, "metadata": {"model": "m"}}

    run = client.evaluations.run(dataset_id=dataset, subject=SUBJECT).execute(agent, concurrency=4).finalize()
    assert len(seen) == 24
    assert verdicts(judge) == 20
    rows = run.results()
    assert len(rows) == 24
    good = next(row for row in rows if row.question_index == 0)
    assert (good.rating, good.status, good.response, good.question_text) == (7, "scored", "rate 7", "Question 0?")
    assert (good.input_tokens, good.output_tokens) == (12, 3)
    assert {row.status for row in rows if row.question_index in (3, 4)} == {"failed"}
    assert run._live_stats.rated_count == 24
    assert run._live_stats.failed_count == 4
    assert run._live_stats.average_rating == pytest.approx(140 / 24)
    gate = run.gate(fail_under=5)
    assert (gate.passed, gate.exit_code) == (True, 0)
    assert gate.raw["confidence"]["average"]["cases"] == 12
    assert client.evaluations.list_gates()[0]["caller"] == "sdk"
    assert client.evaluations.gate_run(run.run_id, fail_under=6, record=False).exit_code == 1
    with pytest.raises(AgentXEvaluationsError) as refused:
        client.evaluations.append_results(run.run_id, "late", [])
    assert refused.value.status_code == 400


def test_assert_evaluation(client):
    """The pytest helper passes, fails with the checks in its text, and is recorded as `pytest`."""
    dataset = make_dataset(client, "A?", "B?")

    def run(text: str):
        return client.evaluations.run(dataset_id=dataset, subject=SUBJECT).execute(lambda case: text).finalize()

    assert assert_evaluation(run("rate 8"), min_rating=7, no_regression=True).passed
    with pytest.raises(EvaluationAssertionError, match=r"\[FAIL\] fail-under: Average rating 4 < floor 7"):
        assert_evaluation(run("rate 4"), min_rating=7)
    newest = client.evaluations.list_gates()[0]
    assert (newest["caller"], newest["passed"], newest["datasetId"]) == ("pytest", False, dataset)


def test_outputs_are_reused(client, judge):
    """The agent is not called again for unchanged questions, the judge is (EVAL-058, EVAL-154)."""
    dataset = make_dataset(client, "A?", "B?")
    first = client.evaluations.run(dataset_id=dataset, subject=SUBJECT).execute(lambda case: "rate 8").finalize()
    before = verdicts(judge)

    def never(case):
        raise AssertionError("the agent was called")

    again = client.evaluations.run(dataset_id=dataset, subject=SUBJECT)
    again.execute(never, reuse_outputs_from=first.run_id).finalize()
    assert verdicts(judge) - before == 2
    assert [row.rating for row in again.results()] == [8, 8]
    assert again.results()[0].raw["metadata"] == {"reusedFromRun": first.run_id}


def test_execute_goes_on_where_it_stopped(client, judge):
    """An agent that dies in the middle: the second execute runs the rest alone (EVAL-140)."""
    dataset = make_dataset(client, *(f"Q{n}?" for n in range(14)))
    run = client.evaluations.run(dataset_id=dataset, subject=SUBJECT)
    calls: list[str] = []

    def dies(case):
        if case.question_index == 12:
            raise KeyboardInterrupt
        calls.append(case.query)
        return "rate 8"

    with pytest.raises(KeyboardInterrupt):
        run.execute(dies)
    assert len(client.evaluations.get_submitted_keys(run.run_id)) == 12

    def goes_on(case):
        calls.append(case.query)
        return "rate 8"

    run.execute(goes_on).finalize()
    assert sorted(calls) == sorted(f"Q{n}?" for n in range(14))
    assert verdicts(judge) == 14
    assert len(run.results()) == 14


def test_a_batch_is_judged_side_by_side(client, judge):
    """Ten results are with the judge at the same time."""
    dataset = make_dataset(client, *(f"Q{n}?" for n in range(10)))
    judge.respond = lambda request: Answer.of_json({"rating": 8, "justification": "ok"}, delay=0.5)
    client.evaluations.run(dataset_id=dataset, subject=SUBJECT).execute(lambda case: "fine").finalize()
    assert judge.peak == 10


def test_pages_answer_while_every_judge_is_slow(client, server, judge):
    """More batches than there are web threads wait for the judge; a read is answered meanwhile."""
    dataset = make_dataset(client, "Q?")
    judge.respond = lambda request: Answer.of_json({"rating": 8, "justification": "ok"}, delay=3)
    with ThreadPoolExecutor(10) as pool:
        waiting = []
        for _ in range(10):
            run = post(server, "/runs", {"datasetId": dataset}).json()["runId"]
            waiting.append(pool.submit(post, server, f"/runs/{run}/results", {"batchId": "b", "results": [result()]}))
        while judge.peak < 10:
            time.sleep(0.01)
        get(server, "/custom-agent-evaluations/runs")
        assert not any(future.done() for future in waiting)
        assert [future.result().status_code for future in waiting] == [200] * 10


def test_two_requests_with_the_same_keys_share_one_verdict(client, server, judge):
    """Racing twins: every case judged once, both answered 200 with the stored score (EVAL-065)."""
    dataset = make_dataset(client, *(f"Q{n}?" for n in range(10)))
    judge.respond = lambda request: Answer.of_json({"rating": 6, "justification": "ok"}, delay=0.4)
    run = post(server, "/runs", {"datasetId": dataset}).json()["runId"]
    batch = {"batchId": "b", "results": [result("fine", n) for n in range(10)]}
    barrier = threading.Barrier(4)

    def send() -> httpx.Response:
        barrier.wait(10)
        return post(server, f"/runs/{run}/results", batch)

    with ThreadPoolExecutor(4) as pool:
        answers = [future.result() for future in [pool.submit(send) for _ in range(4)]]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert verdicts(judge) == 10
    bodies = [answer.json() for answer in answers]
    assert sum(body["accepted"] for body in bodies) == 10
    assert sum(body["duplicates"] for body in bodies) == 30
    assert all(entry["rating"] == 6 for body in bodies for entry in body["scoredResults"])
    read = get(server, f"/custom-agent-evaluations/runs/{run}")
    assert (read["resultCount"], read["liveStatistics"]["ratedCount"]) == (10, 10)


def test_finalize_waits_for_results_that_are_being_judged(client, server, judge):
    """Its figures are final (EVAL-005)."""
    dataset = make_dataset(client, "A?")
    judge.respond = lambda request: Answer.of_json({"rating": 6, "justification": "ok"}, delay=1)
    run = post(server, "/runs", {"datasetId": dataset}).json()["runId"]
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(post, server, f"/runs/{run}/results", {"batchId": "b", "results": [result("fine")]})
        while not judge.peak:
            time.sleep(0.01)
        done = post(server, f"/runs/{run}/finalize", {}).json()
        assert done["liveStatistics"]["averageRating"] == 6
        assert sent.result().json()["accepted"] == 1


def test_several_judges_and_a_group(client, server, judge):
    """Every judge reads every answer of the one execution; the group's blend is the rating (EVAL-019..021)."""
    judge.respond = lambda request: Answer.of_json(
        {"rating": 2 if "STRICT" in json.dumps(request.json) else 8, "justification": "ok"}
    )
    dataset = make_dataset(client, "A?", "B?")
    kind = client.monitor.judge_scorers.builder("Kind", acceptance_criteria="Be kind.").publish()
    strict = client.monitor.judge_scorers.builder("Strict", acceptance_criteria="STRICT.").publish()
    several = client.evaluations.run(
        dataset_id=dataset, subject=SUBJECT, scorer_id=kind.id, additional_scorer_ids=[strict.id, kind.id]
    )
    calls: list[str] = []

    def agent(case):
        calls.append(case.query)
        return "fine"

    several.execute(agent).finalize()
    assert calls == ["A?", "B?"]
    assert verdicts(judge) == 4
    [verdict] = several.results()[0].judge_scorer_results
    assert (verdict["name"], verdict["rating"], several.results()[0].rating) == ("Strict", 2, 8)
    assert several.gate(fail_under=5).passed
    strictly = several.gate(fail_under=5, scorer="Strict")
    assert (strictly.passed, strictly.gated_scorer) == (False, {"id": strict.id, "name": "Strict"})

    members = [{"kind": "judge", "refId": kind.id, "weight": 3}, {"kind": "judge", "refId": strict.id, "weight": 1}]
    group = client.monitor.scorer_groups.create("Panel", members=members)
    group_id = group["_id"] if isinstance(group, dict) else group.id
    grouped = client.evaluations.run(dataset_id=dataset, subject=SUBJECT, scorer_group_id=group_id)
    grouped.execute(agent).finalize()
    read = client.evaluations.get_run(grouped.run_id)
    assert (read["scorerGroupId"], read["additionalScorerIds"], read["averageRating"]) == (group_id, None, 6.5)
    assert [(row["name"], row["averageRating"]) for row in read["scorerBreakdown"]] == [
        ("Panel (group)", 6.5),
        ("Kind", 8),
        ("Strict", 2),
    ]
    assert grouped.gate(fail_under=6).passed
    assert not grouped.gate(fail_under=6, scorer="Strict").passed
    with pytest.raises(AgentXEvaluationsError, match="Unknown scorer: Nope"):
        grouped.gate(fail_under=6, scorer="Nope")
    client.monitor.judge_scorers.delete(strict.id)
    again = client.evaluations.run(dataset_id=dataset, subject=SUBJECT, scorer_group_id=group_id)
    again.execute(agent).finalize()
    row = client.evaluations.get_run(again.run_id)["results"][0]
    assert (row["rating"], row["status"]) == (8, "scored")
    assert [item["rating"] for item in row["judgeScorerResults"]] == [8, None]


PROCESS = """
import json, os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()
from apps.evaluations.models import Run
from apps.evaluations.services import results
given = json.loads(sys.stdin.readline())
print("ready", flush=True)
sys.stdin.readline()
run = Run.objects.get(pk=given["run"])
reply = results.submit(project=run.project, run_id=run.pk, batch_id="b", results=given["results"])
print(json.dumps(reply), flush=True)
"""


def start_process(server: RunningServer, environment: dict[str, str], run: str, batch: list[Any]) -> subprocess.Popen:
    extra = {**environment, **({"AGENTX_DB_URL": server.db_url} if server.db_url else {})}
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=clean_environment(server.home, **extra),
    )
    process.stdin.write(json.dumps({"run": run, "results": batch}) + "\n")
    process.stdin.flush()
    assert process.stdout.readline().strip() == "ready"
    return process


def test_two_processes_with_the_same_keys(client, server, environment, judge):
    """Not only threads of one server: each case is judged once."""
    dataset = make_dataset(client, *(f"Q{n}?" for n in range(10)))
    judge.respond = lambda request: Answer.of_json({"rating": 6, "justification": "ok"}, delay=0.4)
    run = post(server, "/runs", {"datasetId": dataset}).json()["runId"]
    batch = [result("fine", n) for n in range(10)]
    processes = [start_process(server, environment, run, batch) for _ in range(2)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    replies = [json.loads(process.communicate(timeout=60)[0].splitlines()[-1]) for process in processes]
    assert verdicts(judge) == 10
    assert sorted(reply["accepted"] + reply["duplicates"] for reply in replies) == [10, 10]
    assert sum(reply["accepted"] for reply in replies) == 10
    assert all(entry["rating"] == 6 for reply in replies for entry in reply["scoredResults"])
    assert get(server, f"/custom-agent-evaluations/runs/{run}")["liveStatistics"]["ratedCount"] == 10


def test_a_killed_server_loses_no_verdict_and_judges_none_twice(environment, judge, tmp_path):
    """kill -9 while half a batch is judged; after the restart the same execute() finishes the run (EVAL-068)."""
    server = start_server(tmp_path, env=environment)
    client = AgentX(api_key=server.key, base_url=server.api_url)
    dataset = make_dataset(client, *(f"Q{n}?" for n in range(10)))
    run = client.evaluations.run(dataset_id=dataset, subject=SUBJECT)
    hold = threading.Event()

    def slow(request):
        if not hold.is_set() and any(f"Q{n}?" in json.dumps(request.json) for n in range(5, 10)):
            return Answer.of_json({"rating": 1, "justification": "never heard"}, delay=30)
        return Answer.of_json({"rating": 8, "justification": "ok"})

    judge.respond = slow
    failure: list[BaseException] = []

    def execute() -> None:
        try:
            run.execute(lambda case: "fine")
        except EvaluationSubmissionError as error:
            failure.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    while len(client.evaluations.get_submitted_keys(run.run_id)) < 5:
        time.sleep(0.05)
    server.stop(signal.SIGKILL)
    thread.join(60)
    assert failure
    hold.set()
    asked = verdicts(judge)
    again = start_server(tmp_path, env=environment, port=server.port)
    try:
        assert len(client.evaluations.get_submitted_keys(run.run_id)) == 5
        run.execute(lambda case: "fine").finalize()
        assert [row.rating for row in run.results()] == [8] * 10
        assert verdicts(judge) - asked == 5
    finally:
        again.stop()


def test_typescript_flow(client, server):
    """Chunks, finalize, gate and submitted keys with that client's spellings (SDK-052..056)."""
    dataset = make_dataset(client, "A?", "B?")
    run = post(server, "/runs", {"datasetId": dataset, "subject": {"name": "support-agent", "metadata": {}}}).json()
    chunk = {
        "batchId": "chunk-1",
        "results": [
            {"idempotencyKey": f"k{n}", "caseIndex": n, "query": query, "output": f"rate {n + 6}"}
            for n, query in enumerate(("A?", "B?"))
        ],
    }
    first = post(server, f"/runs/{run['runId']}/results", chunk).json()
    again = post(server, f"/runs/{run['runId']}/results", chunk).json()
    assert (first["accepted"], again["duplicates"]) == (2, 2)
    assert [entry["rating"] for entry in again["scoredResults"]] == [6, 7]
    keys = get(server, f"/custom-agent-evaluations/runs/{run['runId']}/missing-results")["submittedKeys"]
    assert keys == ["k0", "k1"]
    statistics = post(server, f"/runs/{run['runId']}/finalize", {}).json()["liveStatistics"]
    assert (statistics["averageRating"], statistics["ratedCount"]) == (6.5, 2)
    gate = get(server, f"/custom-agent-evaluations/runs/{run['runId']}/gate", failUnder=6, noRegression="true")
    assert gate["passed"] is True


def test_exported(client, server):
    """Runs, results and gates stream as NDJSON (SDK-040)."""
    dataset = make_dataset(client, "A?")
    run = client.evaluations.run(dataset_id=dataset, subject=SUBJECT).execute(lambda case: "rate 8").finalize()
    run.gate(fail_under=7)
    assert run.run_id in [row["id"] for row in client.export.iter("runs")]
    assert run.run_id in [row["runId"] for row in client.export.iter("run-results")]
    assert run.run_id in [row["runId"] for row in client.export.iter("gate-results")]
