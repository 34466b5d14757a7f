"""The hosted-style CI family, as the published client uses it and by hand."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.test import override_settings
from django.utils import timezone

from apps.evaluations.models import CIRun, Run
from apps.evaluations.tasks import send_ci_webhook
from tests.evaluations.conftest import SDK, verdicts

CI = "/ingest/ci-runs"


@pytest.fixture
def open_run(api, judge, make_dataset):
    """Opens a CI run over three questions; gives the reply."""

    def create(ci=None, status=201, questions=("One?", "Two?", "Three?"), **body):
        document = make_dataset(*questions, ci={"enabled": True, **(ci or {})})
        response = api.post(CI, {"dataset_id": document["_id"], **body})
        assert response.status_code == status, response.content
        return response.json()

    return create


@pytest.fixture
def answer(api):
    def send(run_id, index, text, status=200, **body):
        response = api.post(f"{CI}/{run_id}/results", {"question_index": index, "output": text, **body})
        assert response.status_code == status, response.content
        return response.json()

    return send


def close(api, run_id, status=200):
    response = api.post(f"{CI}/{run_id}/finalize", {})
    assert response.status_code == status, response.content
    return response.json()


def test_a_whole_run(api, open_run, answer):
    git = {"branch": "main", "commitSha": "abc", "prNumber": 7, "commit_sha": "dropped"}
    run = open_run(agent_name="support", git_context=git)
    assert set(run) == {"run_id", "dataset_id", "total_questions", "test_cases", "expires_at"}
    assert run["test_cases"] == [
        {"index": 0, "query": "One?"}, {"index": 1, "query": "Two?"}, {"index": 2, "query": "Three?"},
    ]  # fmt: skip
    before = api.get(f"{CI}/{run['run_id']}").json()
    assert (before["status"], before["gate"], before["results_submitted"]) == ("in_progress", None, 0)
    assert before["git_context"] == {"branch": "main", "commitSha": "abc", "prNumber": 7}
    assert answer(run["run_id"], 0, "rate 9", latency_ms=12) == {
        "question_index": 0, "rating": 9, "justification": "It says 9.", "passed": True, "gate_fired": False,
    }  # fmt: skip
    assert answer(run["run_id"], 1, "rate 6")["passed"] is False
    outcome = close(api, run["run_id"])
    assert (outcome["gate"], outcome["pass_rate"], outcome["passed_questions"]) == ("fail", 1 / 3, 1)
    assert outcome["violations"] == [
        {"question_index": 1, "metric": "rating", "threshold": 7, "actual": 6, "question_text": "Two?"}
    ]
    assert [(row["input"], row["output"], row["passed"]) for row in outcome["scores"]] == [
        ("One?", "rate 9", True), ("Two?", "rate 6", False),
    ]  # fmt: skip
    assert close(api, run["run_id"]) == outcome
    assert answer(run["run_id"], 2, "late", status=409)
    after = api.get(f"{CI}/{run['run_id']}").json()
    assert (after["status"], after["gate"], after["results_submitted"]) == ("completed", "fail", 2)
    listed = api.get(f"{SDK}/runs").json()["runs"][0]
    assert listed["runId"] == run["run_id"]
    assert listed["evaluationSubject"]["displayName"] == "support"
    assert Run.objects.get(pk=run["run_id"]).run_source == "ci-run"


def test_the_threshold_of_the_run_wins(api, open_run, answer):
    for threshold, gate in ((0.6, "pass"), (0.9, "fail")):
        run = open_run({"passRateThreshold": 0.1}, pass_rate_threshold=threshold)
        answer(run["run_id"], 0, "rate 9")
        answer(run["run_id"], 1, "rate 9")
        assert close(api, run["run_id"])["gate"] == gate


def test_a_judge_that_cannot_be_asked_is_no_pass(api, open_run, answer, monkeypatch):
    run = open_run()
    monkeypatch.delenv("OPENAI_API_KEY")
    reply = answer(run["run_id"], 0, "rate 9")
    assert (reply["rating"], reply["passed"]) == (0, False)
    assert "OPENAI_API_KEY" in reply["justification"]
    assert close(api, run["run_id"])["gate"] == "fail"


def test_errors_and_empty_answers_are_graded(api, judge, open_run, answer):
    run = open_run()
    assert answer(run["run_id"], 0, "ERROR: boom rate 2")["rating"] == 2
    assert "rating" in answer(run["run_id"], 1, "")
    assert "rating" in answer(run["run_id"], 2, {"answer": "rate 3"})
    assert verdicts(judge) == 3


def test_a_question_sent_again_keeps_its_verdict(api, judge, open_run, answer):
    run = open_run()
    first = answer(run["run_id"], 0, "rate 9")
    assert answer(run["run_id"], 0, "rate 1") == first
    assert verdicts(judge) == 1


def test_a_similarity_rule_is_measured_and_spares_cases_without_reference(api, open_run, answer):
    questions = ({"query": "Q", "expectedResults": "alpha beta"}, "No reference?")
    run = open_run({"thresholds": {"rating": 5, "jaccardSimilarity": 0.8}}, questions=questions)
    assert answer(run["run_id"], 0, "gamma delta rate 9")["passed"] is False
    assert answer(run["run_id"], 1, "anything rate 9")["passed"] is True
    [violation] = close(api, run["run_id"])["violations"]
    assert (violation["metric"], violation["threshold"]) == ("jaccardSimilarity", 0.8)
    assert violation["actual"] < 0.8


def test_fail_fast_closes_the_run_at_the_first_violation(api, open_run, answer):
    run = open_run({"failFast": True})
    assert answer(run["run_id"], 0, "rate 9")["gate_fired"] is False
    assert answer(run["run_id"], 1, "rate 2")["gate_fired"] is True
    state = api.get(f"{CI}/{run['run_id']}").json()
    assert (state["status"], state["gate"]) == ("failed", "fail")
    assert state["finalized_at"]
    assert answer(run["run_id"], 2, "rate 9") == {
        "question_index": 2, "rating": 0, "justification": "The gate had already failed.", "passed": False,
        "gate_fired": True,
    }  # fmt: skip
    assert close(api, run["run_id"])["gate"] == "fail"


def test_hidden_inputs_are_judged_on_the_stored_question(api, judge, open_run, answer):
    run = open_run({"exposeTestInputs": False})
    assert run["test_cases"][0] == {"index": 0, "query": None}
    answer(run["run_id"], 0, "rate 9", input="")
    assert "One?" in json.dumps(judge.last.json)
    assert close(api, run["run_id"])["scores"][0]["input"] is None


def test_after_two_hours_a_run_has_failed(api, open_run, answer):
    run = open_run()
    with time_machine.travel(timezone.now() + timedelta(hours=2, seconds=1)):
        assert answer(run["run_id"], 0, "rate 9", status=410)
        assert close(api, run["run_id"], 410)
        state = api.get(f"{CI}/{run['run_id']}").json()
    assert (state["status"], state["gate"]) == ("failed", "fail")


def test_refusals_and_their_texts(api, other_api, open_run, answer, make_dataset):
    run = open_run()

    def refused(body, status):
        response = api.post(CI, body)
        assert response.status_code == status
        return response.json()["error"]

    plain = make_dataset("Q")["_id"]
    empty = make_dataset(ci={"enabled": True})["_id"]
    assert "ci" in refused({"dataset_id": plain}, 400).lower()
    assert refused({"dataset_id": "nope"}, 404)
    texts = [refused({}, 400), refused({"dataset_id": run["dataset_id"], "pass_rate_threshold": 2}, 400)]
    texts.append(answer(run["run_id"], 9, "x", status=400)["error"])
    assert empty
    assert texts[0] == "dataset_id is required"
    assert texts[2] == "question_index is out of range"
    # The published client reads any other 400 that holds these two letters as "CI is off".
    assert not any("ci" in text.lower() for text in texts)
    assert other_api.get(f"{CI}/{run['run_id']}").status_code == 404
    assert other_api.post(f"{CI}/{run['run_id']}/finalize", {}).status_code == 404


def test_the_questions_can_be_read_without_a_run(api, open_run):
    run = open_run()
    count = Run.objects.count()
    body = api.get(f"/ingest/datasets/{run['dataset_id']}/test-cases", workspaceId="w").json()
    assert body == {
        "dataset_id": run["dataset_id"], "total_questions": 3, "test_cases": run["test_cases"],
    }  # fmt: skip
    assert Run.objects.count() == count


def test_one_setting_turns_the_family_off(api, open_run):
    run = open_run()
    with override_settings(HOSTED_CI=False):
        for path in (f"{CI}/{run['run_id']}", f"/ingest/datasets/{run['dataset_id']}/test-cases", f"{SDK}/models"):
            response = api.get(path)
            assert response.status_code == 404
            assert response.json() == {"error": "Not found"}


def test_the_webhook_is_sent_once_with_the_outcome(api, open_run, answer, httpserver):
    httpserver.expect_request("/hook", method="POST").respond_with_data("ok")
    run = open_run({"webhookUrl": httpserver.url_for("/hook")}, git_context={"branch": "main"})
    answer(run["run_id"], 0, "rate 9")
    outcome = close(api, run["run_id"])
    send_ci_webhook(run["run_id"])
    send_ci_webhook(run["run_id"])
    assert len(httpserver.log) == 1
    request = httpserver.log[0][0]
    assert request.headers["Content-Type"] == "application/json"
    body = request.get_json()
    assert body["event"] == "ci_run.finalized"
    assert body["git_context"] == {"branch": "main"}
    assert (body["gate"], body["scores"], body["finalized_at"]) == (
        outcome["gate"], outcome["scores"], outcome["finalized_at"],
    )  # fmt: skip


def test_a_webhook_that_fails_is_not_sent_again(api, open_run, httpserver):
    httpserver.expect_request("/hook").respond_with_data("no", status=500)
    run = open_run({"webhookUrl": httpserver.url_for("/hook")})
    close(api, run["run_id"])
    send_ci_webhook(run["run_id"])
    assert len(httpserver.log) == 1
    assert CIRun.objects.get(pk=run["run_id"]).webhook_sent_at is not None


@pytest.mark.django_db(transaction=True)
def test_parallel_answers_are_all_counted(api, open_run, answer):
    run = open_run()

    def send(index):
        from django.db import connection

        try:
            return answer(run["run_id"], index, "rate 9")
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(send, range(3)))
    assert all(reply["passed"] for reply in replies)
    assert close(api, run["run_id"])["gate"] == "pass"
