"""The written analysis of a run, its status, the report, and the published client's reading of them."""

from __future__ import annotations

import json

import pytest
from agentx.evaluations.models import AnalysisStatus, Report

from apps.evaluations.models import Analysis
from tests.evaluations.conftest import SDK, rate, result
from tests.support.providers import Answer, ProviderRequest

NARRATIVE = {
    "summary": "Mostly right.",
    "consistencyScore": 7,
    "instructionAdherence": {"score": 14, "analysis": "Follows them", "deviations": ["one"], "rating": "HIGH"},
    "responsePatterns": {"similarities": ["short"], "rating": "superb"},
    "reasoningAnalysis": {"cotQuality": "fine", "reasoningPatterns": ["a"], "reasoningGaps": []},
    "toolUsageAnalysis": {"effectiveness": "good", "patterns": [], "issues": ["slow"], "rating": "low"},
    "recommendations": [
        {"category": "Prompting", "priority": "urgent", "recommendation": "Say more", "reasoning": "Too short"},
        {"category": "tools", "priority": "high", "recommendation": "Cache", "reasoning": "Slow"},
    ],
    "overallAssessment": {"strengths": ["fast"], "weaknesses": ["terse"], "rating": "high"},
}


def narrates(request: ProviderRequest) -> Answer:
    """A judge that rates by the number in the answer and writes the narrative when it is asked for one."""
    if "overallAssessment" in json.dumps(request.json):
        return Answer.of_json(NARRATIVE)
    return rate(request)


def narratives(judge) -> list[str]:
    texts = [json.dumps(request.json, ensure_ascii=False) for request in judge.requests]
    return [text for text in texts if "overallAssessment" in text]


@pytest.fixture
def run_id(judge, finished):
    identity = finished("rate 9", "rate 4", None, evaluationSubject={"agentInstructions": "Be kind to people."})
    judge.forget()
    judge.respond = narrates
    return identity


def analyze(api, run_id, status=200, **body):
    response = api.post(f"{SDK}/runs/{run_id}/analyze", body)
    assert response.status_code == status, response.content
    return response.json()


def read(api, run_id, what, status=200):
    response = api.get(f"{SDK}/runs/{run_id}/{what}")
    assert response.status_code == status, response.content
    return response.json()


def test_before_an_analysis(api, run_id):
    body = read(api, run_id, "analyze-status")
    assert set(body) == {
        "evaluationId", "jobId", "status", "progress", "failureReason", "warnings", "cost", "etaUpdatedAt",
        "overflowStats",
    }  # fmt: skip
    assert body["status"] == "not_started"
    assert body["progress"] == {"overallPercentage": 0, "currentLevel": None, "levels": {}}
    assert not AnalysisStatus(**body).is_terminal
    assert read(api, run_id, "report", 404) == {
        "error": "No analysis found for this run. POST /runs/:runId/analyze first."
    }


def test_an_analysis_is_done_when_it_is_answered(api, judge, run_id):
    assert analyze(api, run_id, mode="batch") == {
        "evaluationId": run_id, "jobId": run_id, "status": "completed", "mode": "sync", "qualityMode": "balanced",
    }  # fmt: skip
    assert AnalysisStatus(**read(api, run_id, "analyze-status")).is_terminal
    body = read(api, run_id, "report")
    assert body["summary"] == "Mostly right."
    assert body["instructionAdherence"]["score"] is None  # 14 is no score from 0 to 10
    assert body["instructionAdherence"]["rating"] == "high"
    assert body["responsePatterns"]["rating"] == "medium"
    assert [(item["category"], item["priority"]) for item in body["recommendations"]] == [
        ("other", "medium"), ("tools", "high"),
    ]  # fmt: skip
    assert body["instructionChanges"] == []
    assert body["statistics"] == {
        "numberOfRuns": 3, "averageRating": 13 / 3, "minRating": 0, "maxRating": 9, "ratingVariance": 13.56,
    }  # fmt: skip
    assert [(case["rating"], case["justification"]) for case in body["lowScoringCases"]] == [
        (0, "E: broke"), (4, "It says 4."),
    ]  # fmt: skip
    assert body["dashboardUrl"].endswith(f"/runs/{run_id}")


def test_the_published_client_reads_the_report(api, run_id):
    analyze(api, run_id)
    report = Report(**read(api, run_id, "report"))
    assert report.strengths == ["fast"]
    assert report.weaknesses == ["terse"]
    assert report.overall_rating == "high"
    assert report.statistics.number_of_runs == 3
    assert report.tool_usage_analysis.issues == ["slow"]


def test_the_prompt_holds_the_instructions_the_sample_and_the_failures(api, judge, run_id):
    analyze(api, run_id)
    [prompt] = narratives(judge)
    for text in ("Be kind to people.", "rate 9", "rate 4", "Judged again by", "broke"):
        assert text in prompt
    assert judge.count == 3  # two sampled results and the narrative; the failed one is not judged


def test_worst_twelve_and_best_five_are_sampled(api, judge, make_dataset, start, submit):
    document = make_dataset(*[f"Q{n}?" for n in range(20)])
    identity = start(document["_id"])
    for first in (0, 10):
        submit(identity, *[result(f"rate {n / 2}", n) for n in range(first, first + 10)])
    judge.forget()
    judge.respond = narrates
    analyze(api, identity)
    rated = sorted(item["storedRating"] for item in Analysis.objects.get(run_id=identity).evidence)
    assert rated == [n / 2 for n in [*range(12), *range(15, 20)]]


@pytest.mark.parametrize(("quality", "calls"), [("balanced", 4), ("quality_first", 5)])
def test_the_second_judge_looks_where_the_mode_says(api, judge, run_id, quality, calls):
    judges = [{"model": "gpt-4o"}, {"model": "gpt-4o-mini"}, {"model": "gpt-4.1"}, {"model": "ignored"}]
    assert analyze(api, run_id, qualityMode=quality, judges=judges)["qualityMode"] == quality
    # Two by the first judge, one or two by the second, none by the third (they agree), and the narrative.
    assert judge.count == calls
    assert Analysis.objects.get(run_id=run_id).judges == ["gpt-4o", "gpt-4o-mini", "gpt-4.1"]


def test_a_run_without_scored_results_fails_readably(api, judge, finished):
    identity = finished(None)
    judge.forget()
    assert analyze(api, identity)["status"] == "failed"
    body = read(api, identity, "analyze-status")
    assert body["failureReason"]["code"] == "ANALYSIS_FAILED"
    assert "no scored results" in body["failureReason"]["message"]
    assert AnalysisStatus(**body).is_terminal
    report = read(api, identity, "report")
    assert set(report) == {"runId", "datasetId", "status", "statistics", "lowScoringCases", "dashboardUrl"}
    Report(**report)
    assert judge.count == 0


def test_a_judge_that_writes_nothing_fails_readably_and_is_replaced_by_the_next(api, judge, run_id):
    judge.respond = lambda request: (
        Answer("I cannot.") if "overallAssessment" in json.dumps(request.json) else rate(request)
    )
    assert analyze(api, run_id)["status"] == "failed"
    assert read(api, run_id, "analyze-status")["failureReason"]["message"]
    judge.respond = narrates
    assert analyze(api, run_id)["status"] == "completed"
    assert read(api, run_id, "analyze-status")["failureReason"] is None


def test_without_a_key_it_fails_naming_the_variable(api, run_id, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert analyze(api, run_id)["status"] == "failed"
    assert "OPENAI_API_KEY" in read(api, run_id, "analyze-status")["failureReason"]["message"]


def test_statistics_are_frozen_and_low_cases_fresh(api, run_id):
    analyze(api, run_id)
    Analysis.objects.get(run_id=run_id).run.results.filter(rating=4).update(rating=8)
    body = read(api, run_id, "report")
    assert body["statistics"]["numberOfRuns"] == 3
    assert [case["rating"] for case in body["lowScoringCases"]] == [0]


def test_models_of_the_results_make_the_matrix(api, judge, start, submit):
    identity = start()
    submit(
        identity,
        result("rate 8", 0, metadata={"model": "m1"}, timings={"latencyMs": 10, "inputTokens": 5, "outputTokens": 2}),
        result("rate 4", 0, metadata={"model": "m2"}, caseId="case-0::m2"),
    )
    judge.respond = narrates
    analyze(api, identity)
    body = read(api, identity, "report")
    rows = body["sovereigntyIndex"]["models"]
    assert [(row["model"], row["averageRating"], row["isBaseline"]) for row in rows] == [
        ("m1", 8, True), ("m2", 4, False),
    ]  # fmt: skip
    assert rows[0]["totalInputTokens"] == 5
    Report(**body)


def test_the_dashboard_spelling_agrees(api, run_id):
    assert api.get(f"/evaluate/{run_id}").json()["analysis"] is None
    assert api.post(f"/evaluate/analyze/{run_id}", {}).json()["status"] == "completed"
    status = api.get(f"/evaluate/analyze/{run_id}/status").json()
    assert status == read(api, run_id, "analyze-status")
    record = api.get(f"/evaluate/{run_id}").json()
    assert isinstance(record["datasetId"], str)
    assert record["analysis"]["analysis"]["summary"] == read(api, run_id, "report")["summary"]


def test_an_unknown_run(api, other_api, run_id):
    for client, identity in ((api, "A" * 21), (other_api, run_id)):
        assert analyze(client, identity, 404) == {"error": "Run not found"}
        assert read(client, identity, "analyze-status", 404) == {"error": "Run not found"}
        assert read(client, identity, "report", 404) == {"error": "Run not found"}
        assert client.get(f"/evaluate/{identity}").json() == {"error": "Run not found"}
