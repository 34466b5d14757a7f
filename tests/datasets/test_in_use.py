"""Datasets under runs and live scorers: what is judged, what outlives an edit, what may not be deleted."""

from __future__ import annotations

import pytest

from apps.datasets.models import Dataset
from tests.datasets.conftest import PAGES, SDK
from tests.support.providers import Answer


@pytest.fixture
def judge(monkeypatch, fake_provider):
    """A judge that rates everything 8."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    fake_provider.respond = lambda request: Answer.of_json({"rating": 8, "justification": "fine"})
    return fake_provider


def start(api, dataset, **body):
    response = api.post(f"{SDK}/runs", {"datasetId": dataset["_id"], **body})
    assert response.status_code == 201, response.content
    return response.json()["runId"]


def submit(api, run_id, *indexes):
    results = [
        {
            "idempotencyKey": f"{run_id}-{index}",
            "questionIndex": index,
            "runNumber": 1,
            "input": {"query": f"q{index}"},
            "output": {"text": f"answer {index}"},
        }
        for index in indexes
    ]
    response = api.post(f"{SDK}/runs/{run_id}/results", {"batchId": "b", "results": results})
    assert response.status_code == 200, response.content
    return response.json()


def test_the_judge_reads_this_case_and_the_datasets_criteria(api, make, judge):
    """Every text of the case and all three criteria, and nothing of another case (DATA-016, DATA-023, DATA-026)."""

    def question(mark):
        return {
            "main_question": {
                "query": f"query {mark}",
                "expectedResults": f"expected {mark}",
                "judgeGuideline": f"guideline {mark}",
                "expectedCapabilities": [f"capability {mark}"],
                "expectedKnowledgeBase": [f"knowledge {mark}"],
                "expectedDelegations": [f"delegation {mark}"],
            }
        }

    dataset = make(
        questions=[question("ONE"), question("TWO")],
        acceptanceCriteria="accept THIS",
        rejectionCriteria="reject THAT",
        evaluationCriteria="rubric HERE",
        judgeModel="gpt-5.6-luna-of-the-dataset",
    )
    submit(api, start(api, dataset), 0, 1)
    prompts = {("ONE" in str(request.json)): str(request.json) for request in judge.requests}
    assert len(prompts) == len(judge.requests) == 2
    for mine, mark, other in ((True, "ONE", "TWO"), (False, "TWO", "ONE")):
        prompt = prompts[mine]
        for word in ("expected", "guideline", "capability", "knowledge", "delegation"):
            assert f"{word} {mark}" in prompt
            assert f"{word} {other}" not in prompt
        for text in ("accept THIS", "reject THAT", "rubric HERE"):
            assert text in prompt
    assert {request.model for request in judge.requests} == {"gpt-5.6-luna-of-the-dataset"}


def test_runs_outlive_edits_and_the_dataset(api, make, judge):
    """An edit changes no run, deleting the dataset leaves its runs readable (DATA-032, DATA-042)."""
    dataset = make("old question", acceptanceCriteria="old criteria")
    run_id = start(api, dataset)
    api.put(f"{PAGES}/datasets/{dataset['_id']}", {"questions": [], "acceptanceCriteria": "new criteria"})
    submit(api, run_id, 0)
    assert "old criteria" in str(judge.last.json)
    assert "new criteria" not in str(judge.last.json)
    before = api.get(f"{SDK}/runs/{run_id}").json()
    assert api.delete(f"{SDK}/datasets/{dataset['_id']}").status_code == 200
    after = api.get(f"{SDK}/runs/{run_id}")
    assert after.status_code == 200
    assert str(dataset["_id"]) in str(after.json())
    assert after.json() == before


def test_an_attached_grading_config_holds_the_dataset(api, make, project):
    """409 with the scorer's name while it is attached, then it goes (DATA-023, DATA-043)."""
    dataset = make("q", acceptanceCriteria="a")
    grading_id = Dataset.objects.get(pk=dataset["_id"]).grading_id
    made = api.post("/monitor/online-evaluators", {"name": "Refund watch", "evaluationSettingsId": grading_id})
    assert made.status_code == 201, made.content
    response = api.delete(f"{PAGES}/datasets/{dataset['_id']}")
    assert response.status_code == 409
    assert "Refund watch" in response.json()["error"]
    assert api.get(f"{PAGES}/datasets/{dataset['_id']}").json() == dataset
    [evaluator] = [
        item for item in api.get("/monitor/online-evaluators").json()["evaluators"] if item["name"] == "Refund watch"
    ]
    assert api.delete(f"/monitor/online-evaluators/{evaluator['_id']}").status_code < 300
    assert api.delete(f"{PAGES}/datasets/{dataset['_id']}").status_code == 200


def test_blank_cases_are_not_expected(api, make, judge):
    """A malformed entry is no case to run (DATA-011)."""
    dataset = make(questions=[{}, {"main_question": {"query": "good"}}])
    run_id = start(api, dataset)
    assert submit(api, run_id, 1)["scoredResults"][0]["rating"] == 8
