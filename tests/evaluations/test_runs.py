"""POST /runs, GET /runs, GET /runs/:id, finalize."""

from __future__ import annotations

import json

import pytest

from apps.evaluations.models import CaseTally, Result, Run
from tests.evaluations.conftest import SDK, result
from tests.support.providers import Answer

DOCUMENT = {
    "_id", "runId", "datasetId", "evaluationSettingsId", "scorerGroupId", "additionalScorerIds", "scorerBreakdown",
    "evaluationSubject", "status", "resultCount", "averageRating", "liveStatistics", "caseStatistics", "results",
}  # fmt: skip
ROW = {
    "questionIndex", "questionText", "runNumber", "input", "output", "rating", "justification", "traceId", "latencyMs",
    "inputTokens", "outputTokens", "vectorSimilarity", "jaccardSimilarity", "bleuScore", "rougeScore",
    "codeScorerResults", "judgeScorerResults", "isSmokeTestVariant", "smokeTestVariantText", "status", "error",
}  # fmt: skip


def test_created_with_exactly_four_keys(api, dataset):
    """201 and the frozen state (EVAL-014, EVAL-015)."""
    response = api.post(
        f"{SDK}/runs",
        {
            "datasetId": dataset["_id"],
            "evaluationSubject": {"kind": "custom_agent", "metadata": {"version": "v7"}, "extra": [1]},
            "runSource": "sdk",
            "sdk": {"name": "agentx-python", "version": "0.8.29", "runnerVersion": "1", "pythonVersion": "3.11"},
            "workspaceId": "ignored",
        },
    )
    assert response.status_code == 201
    body = response.json()
    assert body == {
        "runId": body["runId"],
        "datasetId": dataset["_id"],
        "status": "in_progress",
        "smokeTestVariants": None,
    }
    run = Run.objects.get(pk=body["runId"])
    assert (run.run_source, run.version_label, run.dataset_version) == ("sdk", "v7", 0)
    assert run.sdk["version"] == "0.8.29"
    assert run.expected_results == 3
    read = api.get(f"{SDK}/runs/{run.pk}").json()
    assert set(read) == DOCUMENT
    assert read["evaluationSubject"] == {"kind": "custom_agent", "metadata": {"version": "v7"}, "extra": [1]}
    assert [read[key] for key in ("scorerBreakdown", "averageRating", "evaluationSettingsId")] == [None] * 3
    assert (read["results"], read["caseStatistics"], read["resultCount"]) == ([], [], 0)


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 400, "datasetId is required"),
        ({"datasetId": 5}, 400, "datasetId is required"),
        ({"datasetId": "nope"}, 404, "Dataset not found"),
        ({"datasetId": "a" * 21}, 404, "Dataset not found"),
        ({"evaluationSettingsId": "nope"}, 404, "Evaluation settings not found"),
        ({"scorerGroupId": "nope"}, 404, "Scorer group not found"),
        ({"additionalScorerIds": list("abcde")}, 400, "additionalScorerIds must not exceed 4"),
        ({"additionalScorerIds": ["nope"]}, 400, "Unknown scorer: nope"),
    ],
)
def test_refusals_create_no_run(api, dataset, body, status, text):
    """EVAL-030..034."""
    wanted = {"datasetId": dataset["_id"], **body} if "datasetId" not in body and body else body
    response = api.post(f"{SDK}/runs", wanted)
    assert (response.status_code, response.json()) == (status, {"error": text})
    assert not Run.objects.exists()


def test_another_projects_dataset_is_unknown(other_api, dataset):
    """404 as for a random id."""
    response = other_api.post(f"{SDK}/runs", {"datasetId": dataset["_id"]})
    assert (response.status_code, response.json()) == (404, {"error": "Dataset not found"})


def test_version_and_split_are_recorded_on_the_subject(api, start):
    """Top-level version wins; a split without a subject makes one; the other client's words count (EVAL-026, EVAL-035)."""
    both = start(evaluationSubject={"version": "a", "metadata": {"version": "b"}})
    assert Run.objects.get(pk=both).version_label == "a"
    split = start(split="smoke")
    assert api.get(f"{SDK}/runs/{split}").json()["evaluationSubject"] == {"split": "smoke"}
    other = start(subject={"name": "support-agent", "metadata": {"version": 3}})
    read = api.get(f"{SDK}/runs/{other}").json()["evaluationSubject"]
    assert (read["displayName"], read["name"]) == ("support-agent", "support-agent")
    assert Run.objects.get(pk=other).version_label == "3"


def test_editing_the_dataset_changes_nothing_about_a_run(judge, api, dataset, start, submit):
    """Questions and grading are those of the start (EVAL-028)."""
    run = start()
    submit(run, result("rate 8"))
    edited = {
        "name": "Support",
        "acceptanceCriteria": "ENTIRELY NEW",
        "questions": [{"main_question": {"query": "Changed?", "expectedResults": "NEW ANSWER"}}],
    }
    assert api.put(f"/evaluate/datasets/{dataset['_id']}", edited).status_code == 200
    submit(run, result("rate 7"))
    said = json.dumps(judge.requests[-1].json)
    assert "ENTIRELY NEW" not in said
    assert "NEW ANSWER" not in said
    assert {row["questionText"] for row in api.get(f"{SDK}/runs/{run}").json()["results"]} == {"What is one?"}


def test_read_while_open_and_after(judge, api, start, submit):
    """Rows in the order of the questions with all their keys; finalize counts again and closes (EVAL-141..155)."""
    run = start()
    submit(run, result("rate 6", 2), result("rate 7", 0))
    read = api.get(f"{SDK}/runs/{run}").json()
    assert (read["status"], read["resultCount"], read["averageRating"]) == ("in_progress", 2, 6.5)
    assert [row["questionIndex"] for row in read["results"]] == [0, 2]
    assert all(set(row) == ROW for row in read["results"])
    assert read["results"][0]["questionText"] == "What is one?"
    done = api.post(f"{SDK}/runs/{run}/finalize", {"status": "failed"}).json()
    assert done == {"runId": run, "status": "completed", "liveStatistics": read["liveStatistics"]}
    assert api.post(f"{SDK}/runs/{run}/finalize", None).json() == done


def test_finalize_counts_the_stored_rows(judge, api, start, submit):
    """Whatever the running figures say (EVAL-142, EVAL-143)."""
    run = start()
    submit(run, result("rate 6", 0), result("rate 8", 0, runNumber=2), result(None, 1, error={"message": "x"}))
    Result.objects.filter(run=run, rating=8).update(rating=2)
    Run.objects.filter(pk=run).update(rated=99, rating_sum=1, result_count=77)
    CaseTally.objects.filter(run=run).update(rated=5)
    done = api.post(f"{SDK}/runs/{run}/finalize", {}).json()
    assert done["liveStatistics"] == {
        "averageRating": pytest.approx(8 / 3),
        "minRating": 0,
        "maxRating": 6,
        "ratedCount": 3,
        "skippedCount": 0,
        "failedCount": 1,
    }
    read = api.get(f"{SDK}/runs/{run}").json()
    assert read["resultCount"] == 3
    assert [(row["questionIndex"], row["ratedCount"]) for row in read["caseStatistics"]] == [(0, 2)]


def test_a_failed_run_stays_failed(api, start):
    """200 with its status (EVAL-144)."""
    run = start()
    Run.objects.filter(pk=run).update(status="failed")
    assert api.post(f"{SDK}/runs/{run}/finalize", {}).json()["status"] == "failed"


def test_several_judges(judge, api, start, submit):
    """Each extra judge has a verdict on every row and an average of its own, the primary first (EVAL-134, EVAL-135)."""
    safety = api.post("/agent-monitoring/judge-scorers", {"name": "Safety", "judge": {}}).json()["judgeScorer"]["_id"]
    run = start(additionalScorerIds=[safety])
    reply = submit(run, result("rate 6"), result(None, 1, error={"message": "broke"}))
    [verdict] = reply["scoredResults"][0]["judgeScorerResults"]
    assert (verdict["scorerId"], verdict["name"], verdict["rating"]) == (safety, "Safety", 6)
    read = api.get(f"{SDK}/runs/{run}").json()
    assert read["additionalScorerIds"] == [safety]
    first, second = read["scorerBreakdown"]
    assert (first["primary"], first["averageRating"], first["scored"]) == (True, 3, 2)
    assert second == {"scorerId": safety, "name": "Safety", "primary": False, "averageRating": 3, "scored": 2}
    api.post(f"{SDK}/runs/{run}/finalize", {})
    assert api.get(f"{SDK}/runs/{run}").json()["scorerBreakdown"] == read["scorerBreakdown"]


def test_list_is_the_fifty_newest_in_full(judge, api, dataset, finished, project, django_assert_num_queries):
    """Newest first, no paging, the same queries whatever their number (EVAL-156)."""
    oldest = finished("rate 8")
    newest = finished("rate 7", "rate 6")
    with django_assert_num_queries(4):
        two = api.get(f"{SDK}/runs", limit=1).json()["runs"]
    assert [run["_id"] for run in two] == [newest, oldest]
    assert set(two[0]) == DOCUMENT
    assert [row["rating"] for row in two[0]["results"]] == [7, 6]
    source = Run.objects.get(pk=newest)
    for _ in range(50):
        source.pk = Run._meta.get_field("id").get_default()
        source._state.adding = True
        source.result_count = 0
        source.save()
    with django_assert_num_queries(4):
        many = api.get(f"{SDK}/runs").json()["runs"]
    assert len(many) == 50
    assert oldest not in [run["_id"] for run in many]
    with django_assert_num_queries(4):
        api.get(f"{SDK}/runs/{newest}")


def test_smoke_variants_are_made_once_and_frozen(judge, api, make_dataset):
    """As many as asked for, for cases of the split, shown in the reply (EVAL-038, EVAL-039)."""
    asked = {"enabled": True, "count": 2, "guidance": "like a pirate"}
    made = make_dataset(
        {"query": "Where is my order?", "smokeTest": asked, "splits": ["smoke"]},
        {"query": "Other?", "smokeTest": asked},
        {"query": "Plain?", "splits": ["smoke"]},
    )
    judge.respond = lambda request: Answer.of_json(
        {"variants": ["Arr, me order?", "Where is my order?", "Aye, order?"]}
    )
    body = api.post(f"{SDK}/runs", {"datasetId": made["_id"], "split": "smoke"}).json()
    assert body["smokeTestVariants"] == [{"questionIndex": 0, "variants": ["Arr, me order?", "Aye, order?"]}]
    [request] = judge.requests
    assert "like a pirate" in json.dumps(request.json)
    run = Run.objects.get(pk=body["runId"])
    assert (run.warnings, run.expected_results) == ([], 4)


def test_a_run_is_created_without_a_model_for_variants(api, make_dataset, monkeypatch):
    """201, an empty group and a warning that says why (EVAL-039)."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = make_dataset({"query": "Where?", "smokeTest": {"enabled": True, "count": 99}})
    response = api.post(f"{SDK}/runs", {"datasetId": made["_id"]})
    assert response.status_code == 201
    assert response.json()["smokeTestVariants"] == [{"questionIndex": 0, "variants": []}]
    [warning] = Run.objects.get(pk=response.json()["runId"]).warnings
    assert "OPENAI_API_KEY" in warning
