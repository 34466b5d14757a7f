"""Head to head, versions, two runs case by case, and the evaluation of a recorded trace."""

from __future__ import annotations

import json
import re

import pytest

from apps.evaluations.models import Run
from tests.evaluations.conftest import SDK, verdicts
from tests.support.providers import Answer, ProviderRequest

PAIRWISE = "/evaluate/runs/pairwise"


def prompt_of(request: ProviderRequest) -> str:
    return json.dumps([message["content"] for message in request.json["messages"]])


def by_content(request: ProviderRequest) -> Answer:
    """A judge that prefers the answer with the larger number after `good`, wherever it stands."""
    text = prompt_of(request)
    first, second = (int(re.search(rf"<answer-{n}>\\n.*?good (\d+)", text).group(1)) for n in (1, 2))
    winner = "tie" if first == second else "1" if first > second else "2"
    return Answer.of_json({"winner": winner, "justification": f"{first} against {second}"})


def always_first(request: ProviderRequest) -> Answer:
    return Answer.of_json({"winner": "1", "justification": "the first"})


@pytest.fixture
def two(judge, finished):
    """Candidate and baseline over the same three questions; then the judge compares by content."""
    candidate = finished("rate 9 good 5", "rate 8 good 5", "rate 7 good 1")
    baseline = finished("rate 6 good 1", "rate 8 good 5", "rate 7 good 2")
    judge.forget()
    judge.respond = by_content
    return candidate, baseline


def compare(api, a, b, status=200, **body):
    response = api.post(PAIRWISE, {"runAId": a, "runBId": b, **body})
    assert response.status_code == status, response.content
    return response.json()


def test_each_case_is_judged_once_and_counted(api, judge, two):
    comparison = compare(api, *two)["comparison"]
    assert set(comparison) == {
        "batchId", "runAId", "runBId", "bothOrders", "judgeModel", "summary", "cases", "skipped", "createdAt",
    }  # fmt: skip
    assert comparison["summary"] == {
        "total": 3, "aWins": 1, "bWins": 1, "ties": 1, "winner": "tie", "flipRate": None,
    }  # fmt: skip
    assert [case["winner"] for case in comparison["cases"]] == ["a", "tie", "b"]
    assert [case["presentedFirst"] for case in comparison["cases"]] == ["a", "b", "a"]
    assert {case["flipped"] for case in comparison["cases"]} == {False}
    assert verdicts(judge) == 3


def test_the_judge_sees_neither_run_nor_rating(api, judge, two):
    compare(api, *two)
    for request in judge.requests:
        text = prompt_of(request)
        assert "Answer 1" in text
        assert "Answer 2" in text
        assert not any(run in text for run in two)


def test_both_orders_ask_twice_and_keep_a_consistent_winner(api, judge, two):
    comparison = compare(api, *two, bothOrders=True)["comparison"]
    assert verdicts(judge) == 6
    assert [case["winner"] for case in comparison["cases"]] == ["a", "tie", "b"]
    assert comparison["summary"]["flipRate"] == 0


def test_a_judge_that_follows_the_position_makes_ties(api, judge, two):
    judge.respond = always_first
    comparison = compare(api, *two, bothOrders=True)["comparison"]
    assert [(case["winner"], case["flipped"]) for case in comparison["cases"]] == [("tie", True)] * 3
    assert comparison["summary"]["flipRate"] == 1
    assert comparison["summary"]["winner"] == "tie"


def test_one_side_and_a_tie_is_a_tie_that_did_not_flip(api, judge, two):
    def undecided(request: ProviderRequest) -> Answer:
        shown_first = "good 5" in prompt_of(request).split("</answer-1>")[0]
        return Answer.of_json({"winner": "1" if shown_first else "tie", "justification": "x"})

    judge.respond = undecided
    comparison = compare(api, *two, bothOrders=True)["comparison"]
    first = comparison["cases"][0]
    assert (first["winner"], first["flipped"]) == ("tie", False)


def test_criteria_and_model_can_be_given(api, judge, two):
    comparison = compare(api, *two, criteria="Prefer short answers.", judgeModel="gpt-4o")["comparison"]
    assert comparison["judgeModel"] == "gpt-4o"
    assert {request.json["model"] for request in judge.requests} == {"gpt-4o"}
    assert all("Prefer short answers." in prompt_of(request) for request in judge.requests)


def test_the_dataset_supplies_criteria_and_the_reference(api, judge, make_dataset, finished):
    document = make_dataset(
        {"query": "Capital?", "expectedResults": "Paris it is"}, acceptanceCriteria="Names the city"
    )
    a = finished("good 2", dataset_id=document["_id"])
    b = finished("good 1", dataset_id=document["_id"])
    judge.forget()
    judge.respond = by_content
    compare(api, a, b)
    assert "Paris it is" in prompt_of(judge.last)
    assert "Names the city" in prompt_of(judge.last)


def test_what_cannot_be_compared_is_listed_with_its_reason(api, judge, finished):
    a = finished("good 2", None, "good 2")
    b = finished("good 1", "good 1")
    judge.respond = by_content
    comparison = compare(api, a, b)["comparison"]
    assert comparison["summary"]["total"] == 1
    assert [(item["questionIndex"], item["reason"]) for item in comparison["skipped"]] == [
        (1, "Run A has not an answer to it."),
        (2, "Only one of the two runs has this question."),
    ]


def test_an_unusable_judge_skips_its_case(api, judge, two):
    judge.respond = lambda request: Answer("Both are nice.")
    comparison = compare(api, *two)["comparison"]
    assert comparison["cases"] == []
    assert len(comparison["skipped"]) == 3
    assert comparison["summary"]["winner"] == "tie"


def test_stored_comparisons_are_read_without_judging(api, judge, two):
    made = compare(api, *two)
    batch = made["comparison"]["batchId"]
    judge.forget()
    assert api.get(f"{PAIRWISE}/{batch}").json() == made
    [listed] = api.get(PAIRWISE, runAId=two[0]).json()["comparisons"]
    assert listed["batchId"] == batch
    assert "cases" not in listed
    assert api.get(PAIRWISE, runAId=two[1]).json()["comparisons"] == []
    assert judge.requests == []
    assert api.get(f"{PAIRWISE}/nope").status_code == 404


def test_refusals(api, judge, two, make_dataset, finished, other_api):
    other = finished("good 1", dataset_id=make_dataset("Another?")["_id"])
    assert compare(api, "", two[0], 400) == {"error": "runAId and runBId are required"}
    assert compare(api, two[0], two[0], 400) == {"error": "runAId and runBId must be two different runs"}
    assert compare(api, two[0], "A" * 21, 404) == {"error": "Run not found"}
    assert compare(api, two[0], other, 400) == {"error": "The runs belong to different datasets"}
    assert compare(other_api, *two, 404) == {"error": "Run not found"}


def test_without_a_key_nothing_is_stored(api, two, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in compare(api, *two, 422)["error"]
    assert api.get(PAIRWISE).json() == {"comparisons": []}


def test_two_runs_case_by_case(api, judge, two):
    candidate, baseline = two
    body = api.get("/evaluate/runs/compare", baseline=baseline, candidate=candidate).json()
    assert set(body) == {"baselineRun", "candidateRun", "cases", "confidence"}
    assert body["candidateRun"]["runId"] == candidate
    assert body["candidateRun"]["averageRating"] == 8
    assert [case["delta"] for case in body["cases"]] == [3, 0, 0]
    assert body["cases"][0]["baseline"]["output"] == {"text": "rate 6 good 1"}
    assert body["confidence"]["difference"]["mean"] == 1
    assert body["confidence"]["summary"]
    assert api.get("/evaluate/runs/compare", baseline=baseline).status_code == 400
    assert api.get("/evaluate/runs/compare", baseline=baseline, candidate="A" * 21).status_code == 404


def test_versions_are_grouped_and_the_newest_two_compared(api, judge, dataset, finished, start):
    url = f"/evaluate/datasets/{dataset['_id']}/run-comparison"
    assert api.get(url).json() == {"versions": [], "comparison": None}
    finished("rate 4")
    finished("rate 6", evaluationSubject={"version": "v1"})
    finished("rate 8", evaluationSubject={"version": "v1"})
    latest = finished("rate 7", evaluationSubject={"metadata": {"version": "v2"}})
    start()  # never finalized: no version
    body = api.get(url).json()
    assert [(row["version"], row["runCount"], row["averageRating"]) for row in body["versions"]] == [
        ("v2", 1, 7), ("v1", 2, 7), ("(unversioned)", 1, 4),
    ]  # fmt: skip
    assert body["versions"][0]["latestRunId"] == latest
    assert body["comparison"]["passed"] is True
    assert body["comparison"]["candidateVersion"] == "v2"
    assert api.get("/evaluate/datasets/nope/run-comparison").status_code == 404


@pytest.fixture
def trace_id(project):
    from apps.tracing.ingest.pipeline import store_spans
    from apps.tracing.ingest.records import SpanIn

    [stored] = store_spans(
        project, [SpanIn(name="support", input=b'"What is one?"', output=b'"rate 6"', span_id="t1", latency_ms=5)]
    )
    return stored.id


def evaluate(api, trace_id, status=200, **body):
    response = api.post(f"/ingest/traces/{trace_id}/evaluate", body)
    assert response.status_code == status, response.content
    return response.json()


def test_a_recorded_trace_is_graded_as_a_run_of_one(api, judge, make_dataset, trace_id):
    document = make_dataset(
        {"query": "Q", "expectedResults": "Never shown to the judge"}, acceptanceCriteria="Counts well"
    )
    body = evaluate(api, trace_id, datasetId=document["_id"], question_index=0, workspaceId="w")
    assert set(body) == {"run_id", "trace_id", "rating", "justification", "status"}
    assert (body["trace_id"], body["rating"], body["status"]) == (trace_id, 6, "completed")
    asked = prompt_of(judge.last)
    assert "Counts well" in asked
    assert "What is one?" in asked
    assert "Never shown to the judge" not in asked
    run = api.get(f"{SDK}/runs/{body['run_id']}").json()
    assert run["status"] == "completed"
    assert run["evaluationSubject"]["kind"] == "trace_evaluation"
    assert [(row["traceId"], row["rating"]) for row in run["results"]] == [(trace_id, 6)]
    assert Run.objects.get(pk=body["run_id"]).run_source == "trace-eval"


def test_a_judge_scorer_grades_a_trace(api, judge, trace_id):
    scorer = api.post(
        "/agent-monitoring/judge-scorers", {"name": "Counter", "judge": {"acceptanceCriteria": "Its own rubric"}}
    ).json()["judgeScorer"]
    body = evaluate(api, trace_id, datasetId=scorer["_id"])
    assert body["rating"] == 6
    assert "Its own rubric" in prompt_of(judge.last)


def test_a_trace_that_could_not_be_judged_has_no_rating(api, dataset, trace_id):
    body = evaluate(api, trace_id, datasetId=dataset["_id"])
    assert body["rating"] is None
    assert "OPENAI_API_KEY" in body["justification"]


def test_trace_evaluation_refusals(api, other_api, judge, dataset, trace_id):
    assert evaluate(api, trace_id, 400) == {"error": "traceId and datasetId are required"}
    assert evaluate(api, "A" * 21, 404, datasetId=dataset["_id"]) == {"error": "Trace not found"}
    assert evaluate(other_api, trace_id, 404, datasetId=dataset["_id"]) == {"error": "Trace not found"}
    assert evaluate(api, trace_id, 404, datasetId="nope") == {"error": "Dataset or evaluator config not found"}
