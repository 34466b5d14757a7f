"""The CI gate: verdicts, texts, baselines, scorers, history, preview."""

from __future__ import annotations

import json

import pytest

from apps.evaluations.hooks import gate_failed
from apps.evaluations.models import GateVerdict, Result, Run
from tests.evaluations.conftest import SDK, rate, result
from tests.support.providers import Answer

REPLY = {
    "runId", "datasetId", "averageRating", "resultCount", "baselineRunId", "baselineAverage", "gatedScorer", "checks",
    "passed", "confidence",
}  # fmt: skip


@pytest.fixture
def gate(api):
    """GET the gate of a run; the body, or (status, error) when refused."""

    def ask(run_id: str, **query):
        response = api.get(f"{SDK}/runs/{run_id}/gate", **query)
        body = response.json()
        return body if response.status_code == 200 else (response.status_code, body["error"])

    return ask


def set_ratings(run_id: str, *ratings: float | None) -> None:
    """Overwrite the stored ratings of a run in the order of its questions."""
    for row, rating in zip(Result.objects.filter(run=run_id).order_by("question_index"), ratings, strict=True):
        Result.objects.filter(pk=row.pk).update(rating=rating, status="skipped" if rating is None else "scored")


def test_documented_texts(judge, finished, gate):
    """Both checks, floor first, exact sentences (EVAL-158..162, EVAL-166)."""
    before = finished("rate 7", "rate 8")
    good = finished("rate 8", "rate 8")
    set_ratings(good, 7.8, 7.8)
    reply = gate(good, failUnder="7", noRegression="true")
    assert set(reply) == REPLY
    assert reply["passed"] is True
    assert (reply["averageRating"], reply["baselineAverage"], reply["baselineRunId"]) == (7.8, 7.5, before)
    assert reply["gatedScorer"] is None
    assert reply["checks"] == [
        {
            "check": "fail-under",
            "passed": True,
            "threshold": 7,
            "actual": 7.8,
            "detail": "Average rating 7.8 >= floor 7",
        },
        {
            "check": "no-regression",
            "passed": True,
            "threshold": 7.5,
            "actual": 7.8,
            "detail": "Average rating 7.8 vs previous run's 7.5 (tolerance 0.5)",
        },
    ]
    set_ratings(good, 5.2, 5.2)
    reply = gate(good, failUnder="7", noRegression="1")
    assert reply["passed"] is False
    assert [check["detail"] for check in reply["checks"]] == [
        "Average rating 5.2 < floor 7",
        "Average rating 5.2 vs previous run's 7.5 (tolerance 0.5)",
    ]


def test_edges_are_decimal(judge, finished, gate):
    """Rounded to two decimals first, then compared without float noise (EVAL-164, EVAL-165, EVAL-177)."""
    finished("rate 5")
    first = Run.objects.latest("id").pk
    set_ratings(first, 5.6)
    run = finished("rate 8")
    set_ratings(run, 6.996)
    reply = gate(run, failUnder="7")
    assert (reply["passed"], reply["checks"][0]["actual"]) == (True, 7)
    set_ratings(run, 5.1)
    assert gate(run, noRegression="true")["passed"] is True
    set_ratings(run, 5.09)
    assert gate(run, noRegression="true")["passed"] is False
    assert gate(run, noRegression="true", tolerance="0.51")["passed"] is True
    set_ratings(run, 7)
    assert gate(run, failUnder="7.000")["checks"][0]["detail"] == "Average rating 7 >= floor 7"
    assert gate(run, failUnder="11")["passed"] is False


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({}, "At least one check is required: failUnder=<0-10> and/or noRegression=true"),
        ({"noRegression": "false"}, "At least one check is required: failUnder=<0-10> and/or noRegression=true"),
        ({"failUnder": "abc"}, "failUnder must be a number"),
        ({"failUnder": ""}, "failUnder must be a number"),
        ({"failUnder": "nan"}, "failUnder must be a number"),
        ({"failUnder": "1e999"}, "failUnder must be a number"),
        ({"failUnder": "5", "tolerance": "x"}, "tolerance must be a number"),
        ({"failUnder": "5", "scorer": "Nope"}, "Unknown scorer: Nope"),
    ],
)
def test_refusals(judge, finished, gate, query, text):
    """400 with the documented texts; never a pass (EVAL-173..175)."""
    assert gate(finished("rate 9"), **query) == (400, text)


def test_an_unrated_run_never_passes_a_floor(judge, finished, start, submit, gate):
    """Nothing judged, nothing submitted, an open run (EVAL-176, EVAL-178)."""
    empty = finished()
    assert gate(empty, failUnder="0")["passed"] is False
    assert "no rated results" in gate(empty, failUnder="0")["checks"][0]["detail"]
    skipped = finished("unusable")
    reply = gate(skipped, failUnder="0")
    assert (reply["passed"], reply["averageRating"], reply["checks"][0]["actual"]) == (False, None, None)
    assert reply["confidence"]["skippedCount"] == 1
    broken = finished(None, None)
    reply = gate(broken, failUnder="1")
    assert (reply["passed"], reply["averageRating"]) == (False, 0)
    assert (reply["confidence"]["failedCount"], reply["confidence"]["ratedCount"]) == (2, 2)
    running = start()
    submit(running, result("rate 9"))
    assert gate(running, failUnder="9")["passed"] is True


def test_the_baseline_is_the_last_completed_rated_run(judge, finished, start, submit, make_dataset, gate):
    """Open, unrated, trace and CI runs and those of other datasets are passed over (EVAL-167, EVAL-168, EVAL-179, EVAL-180)."""
    first = finished("rate 6")
    reply = gate(first, noRegression="true")
    assert (reply["passed"], reply["baselineRunId"], reply["baselineAverage"]) == (True, None, None)
    assert reply["checks"][0]["threshold"] is None
    assert "nothing to regress against" in reply["checks"][0]["detail"]
    opened = start()
    submit(opened, result("rate 1"))
    finished("unusable")
    finished("rate 1", runSource="trace-eval")
    finished("rate 1", runSource="ci-run")
    finished("rate 1", dataset_id=make_dataset("Other")["_id"])
    split = finished("rate 9", split="smoke")
    assert gate(split, noRegression="true")["baselineRunId"] == first
    last = finished("unusable")
    reply = gate(last, noRegression="true")
    assert (reply["baselineRunId"], reply["passed"]) == (split, False)
    assert "no rated results" in reply["checks"][0]["detail"]
    assert gate(split, failUnder="1")["baselineRunId"] is None


def test_an_extra_judge_can_be_gated(judge, api, start, submit, gate):
    """By id or name, on its own verdicts and its own history (EVAL-170, EVAL-171, EVAL-175)."""
    ids = [
        api.post("/agent-monitoring/judge-scorers", {"name": name, "judge": {"acceptanceCriteria": mark}}).json()[
            "judgeScorer"
        ]["_id"]
        for name, mark in (("Safety", "MARK-SAFETY"), ("Twin", "x"), ("Twin", "y"))
    ]
    judge.respond = lambda request: (
        Answer.of_json({"rating": 3, "justification": "unsafe"})
        if "MARK-SAFETY" in json.dumps(request.json)
        else rate(request)
    )

    def done(*texts, **body):
        run = start(**body)
        submit(run, *(result(text, at) for at, text in enumerate(texts)))
        api.post(f"{SDK}/runs/{run}/finalize", {})
        return run

    old = done("rate 9", additionalScorerIds=ids)
    done("rate 9")
    run = done("rate 9", "rate 9", additionalScorerIds=ids)
    assert gate(run, failUnder="8")["passed"] is True
    for wanted in ("Safety", ids[0]):
        reply = gate(run, failUnder="8", noRegression="true", scorer=wanted)
        assert (reply["passed"], reply["averageRating"]) == (False, 3)
        assert reply["gatedScorer"] == {"id": ids[0], "name": "Safety"}
        assert (reply["baselineRunId"], reply["baselineAverage"]) == (old, 3)
    status, text = gate(run, failUnder="8", scorer="Twin")
    assert status == 400
    assert "more than one scorer" in text


def test_verdicts_are_recorded_on_request(judge, api, other_api, finished, gate, dataset):
    """One row a call, newest first, caller cut to 60 characters; without `record` nothing (EVAL-181..184)."""
    run = finished("rate 8")
    gate(run, failUnder="7")
    assert api.get("/evaluate/ci/gates").json() == {"gates": []}
    gate(run, failUnder="7", record="true", caller="github-actions")
    gate(run, failUnder="9", record="1", caller="x" * 70)
    gate(run, failUnder="7", record="true", caller="  ")
    rows = api.get("/evaluate/ci/gates").json()["gates"]
    assert [row["caller"] for row in rows] == [None, "x" * 60, "github-actions"]
    assert [row["passed"] for row in rows] == [True, False, True]
    wanted = {"_id", "runId", "datasetId", "datasetName", "passed", "averageRating", "baselineAverage", "caller"}
    assert wanted | {"checks", "createdAt"} <= set(rows[0])
    assert (rows[0]["runId"], rows[0]["datasetId"], rows[0]["datasetName"]) == (run, dataset["_id"], "Support")
    assert other_api.get("/evaluate/ci/gates").json() == {"gates": []}


def test_only_recorded_failures_are_told(judge, finished, gate):
    """EVAL-185, EVAL-186."""
    told: list[str] = []
    gate_failed.register("test", lambda row: told.append(row.run_id))
    try:
        run = finished("rate 5")
        gate(run, failUnder="7")
        gate(run, failUnder="3", record="true")
        assert told == []
        gate(run, failUnder="7", record="true")
        assert told == [run]
    finally:
        gate_failed.unregister("test")


def test_preview_judges_the_newest_completed_run(judge, api, dataset, finished, start):
    """Same reply, never recorded; three refusals (EVAL-187)."""
    path = "/evaluate/ci/gates/preview"
    none = api.get(path, datasetId=dataset["_id"], failUnder=7)
    assert none.status_code == 422
    finished("rate 3")
    run = finished("rate 8")
    start()
    reply = api.get(path, datasetId=dataset["_id"], failUnder=7, record="true").json()
    assert set(reply) == REPLY
    assert (reply["runId"], reply["passed"]) == (run, True)
    assert not GateVerdict.objects.exists()
    assert api.get(path, failUnder=7).json() == {"error": "datasetId is required"}
    assert api.get(path, datasetId=dataset["_id"]).status_code == 400


def test_confidence_says_whether_a_drop_is_noise(judge, api, make_dataset, finished, gate):
    """Paired by case; the verdict itself does not change."""
    big = make_dataset(*(f"Question {n}?" for n in range(10)))["_id"]
    finished(*(f"rate {n % 3 + 6}" for n in range(10)), dataset_id=big)
    noisy = finished(*(f"rate {(n + 1) % 3 + 6}" for n in range(10)), dataset_id=big)
    reply = gate(noisy, noRegression="true")
    confidence = reply["confidence"]
    assert confidence["average"]["low"] < reply["averageRating"] < confidence["average"]["high"]
    assert (confidence["difference"]["cases"], confidence["difference"]["significant"]) == (10, False)
    assert confidence["difference"]["method"] == "exact"
    assert confidence["summary"].endswith("is inside the noise of 10 cases.")
    worse = finished(*("rate 2" for _ in range(10)), dataset_id=big)
    confidence = gate(worse, noRegression="true")["confidence"]
    assert confidence["difference"]["significant"] is True
    assert confidence["summary"].startswith("The drop of")
    first = gate(worse, failUnder="1")["confidence"]
    assert (first["difference"], first["baseline"], first["summary"]) == (None, None, None)
