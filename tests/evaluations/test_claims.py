"""Rows that were claimed and not judged, and what goes away with a project."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core import exports
from apps.evaluations.api import runs as views
from apps.evaluations.models import CaseTally, Result, Run, ScorerTally
from apps.evaluations.services import finalize, results
from apps.evaluations.services.scoring import Outcome
from apps.evaluations.services.snapshot import frozen
from apps.projects.services import purgers
from tests.evaluations.conftest import SDK, result, verdicts


@pytest.fixture
def abandoned(start):
    """A run with a row whose judge died: claimed, the claim run out."""

    def create(seconds: float = -1) -> tuple[str, Result]:
        run = start()
        row = Result.objects.create(
            run_id=run,
            idempotency_key="lost",
            case_id="case-0",
            question_index=0,
            output={"text": "rate 3"},
            claimed_until=timezone.now() + timedelta(seconds=seconds),
        )
        return run, row

    return create


def test_a_row_whose_judge_died_is_taken_over(judge, api, submit, abandoned):
    """It is judged as first sent and counts as accepted now (EVAL-065, EVAL-068)."""
    run, _ = abandoned()
    reply = submit(run, result("rate 10", idempotencyKey="lost"))
    assert (reply["accepted"], reply["duplicates"]) == (1, 0)
    assert reply["scoredResults"][0]["rating"] == 3
    assert verdicts(judge) == 1
    assert submit(run, result(idempotencyKey="lost"))["duplicates"] == 1


def test_a_row_being_judged_is_not_accepted_yet(judge, api, project, abandoned, monkeypatch):
    """It is in no list, no count, no export; finalize does not wait for ever."""
    monkeypatch.setattr(finalize, "WAIT_SECONDS", 0.2)
    run, _ = abandoned(60)
    read = api.get(f"{SDK}/runs/{run}").json()
    assert (read["resultCount"], read["results"]) == (0, [])
    assert api.get(f"{SDK}/runs/{run}/missing-results").json()["submittedKeys"] == []
    assert api.post(f"{SDK}/runs/{run}/finalize", {}).json()["liveStatistics"]["ratedCount"] == 0
    entity = exports.entity("run-results")
    assert entity is not None
    assert (entity.count(project), list(entity.rows(project, None))) == (0, [])


def test_only_the_first_verdict_counts(judge, api, abandoned):
    """A judge that was thought dead and comes back changes nothing."""
    run, row = abandoned()
    assert results.record([(row, Outcome(status="scored", rating=4))], frozen(run)) == {row.pk}
    assert results.record([(row, Outcome(status="scored", rating=9))], frozen(run)) == set()
    assert api.get(f"{SDK}/runs/{run}").json()["liveStatistics"]["averageRating"] == 4
    assert Run.objects.get(pk=run).result_count == 1


def test_waiting_for_a_twin_has_an_end(judge, api, abandoned, monkeypatch):
    """503 with Retry-After rather than a connection held for ever."""
    monkeypatch.setattr(results, "DEADLINE_SECONDS", 0.2)
    run, _ = abandoned(60)
    response = api.post(f"{SDK}/runs/{run}/results", {"batchId": "b", "results": [result(idempotencyKey="lost")]})
    assert (response.status_code, response["Retry-After"]) == (503, "5")


def test_a_fault_of_ours_is_no_number(judge, submit, start, monkeypatch):
    """Skipped with a reason, and the other results keep their verdicts."""
    from apps.scorers import scoring

    whole = scoring.score_answer

    def breaks(project, grader, case, answer):
        if "boom" in answer.output:
            raise RuntimeError("a fault")
        return whole(project, grader, case, answer)

    monkeypatch.setattr(scoring, "score_answer", breaks)
    reply = submit(start(), result("boom"), result("rate 7", 1))
    broken, fine = reply["scoredResults"]
    assert (broken["status"], broken["rating"], fine["rating"]) == ("skipped", None, 7)
    assert "server failed" in broken["justification"]


def test_a_long_list_is_sent_run_by_run(judge, api, finished, monkeypatch):
    """The same body, in pieces."""
    finished("rate 8", "rate 7")
    finished("rate 6")
    whole = api.get(f"{SDK}/runs").json()
    monkeypatch.setattr(views, "STREAMED_FROM", 1)
    response = api.get(f"{SDK}/runs")
    assert response["content-type"] == "application/json"
    assert json.loads(b"".join(response.streaming_content)) == whole
    assert [len(run["results"]) for run in whole["runs"]] == [1, 2]


def test_runs_go_with_their_project(judge, project, finished):
    """Nothing is left, whatever hung on them."""
    finished("rate 8", "rate 7")
    purgers.purge(project.pk)
    for model in (Run, Result, CaseTally, ScorerTally):
        assert not model.objects.exists()
