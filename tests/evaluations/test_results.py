"""POST /runs/:id/results: what is taken, judged, dropped and answered."""

from __future__ import annotations

import pytest
from django.test import override_settings

from apps.evaluations.models import Result, Run
from tests.evaluations.conftest import SDK, result, verdicts

REPLY = {
    "runId", "batchId", "accepted", "duplicates", "failedValidation", "status", "scoredResults", "liveStatistics",
}  # fmt: skip
ENTRY = {
    "idempotencyKey", "rating", "justification", "status", "vectorSimilarity", "jaccardSimilarity", "bleuScore",
    "rougeScore", "codeScorerResults",
}  # fmt: skip


def test_reply_has_the_verdicts_in_order(judge, start, submit):
    """Exactly the documented keys, verdicts in the order of submission (EVAL-046, EVAL-074..076)."""
    run = start()
    first, second = result("rate 7", 0), result("rate 9", 1)
    reply = submit(run, first, second)
    assert set(reply) == REPLY
    assert (reply["runId"], reply["batchId"], reply["status"]) == (run, "batch-1", "in_progress")
    assert (reply["accepted"], reply["duplicates"], reply["failedValidation"]) == (2, 0, 0)
    assert [set(entry) for entry in reply["scoredResults"]] == [ENTRY, ENTRY]
    assert [entry["idempotencyKey"] for entry in reply["scoredResults"]] == [
        first["idempotencyKey"],
        second["idempotencyKey"],
    ]
    assert [entry["rating"] for entry in reply["scoredResults"]] == [7, 9]
    assert reply["scoredResults"][0]["justification"] == "It says 7."
    assert reply["liveStatistics"] == {
        "averageRating": 8,
        "minRating": 7,
        "maxRating": 9,
        "ratedCount": 2,
        "skippedCount": 0,
        "failedCount": 0,
    }


def test_refusals_come_body_first_then_run_then_state(judge, api, start, finished):
    """400 before 404 before 409, with the documented texts (EVAL-004, EVAL-059..062)."""
    done = finished("rate 8")
    unknown = "a" * 21

    def send(run_id, body):
        response = api.post(f"{SDK}/runs/{run_id}/results", body)
        return response.status_code, response.json().get("error")

    many = [result() for _ in range(11)]
    assert send(unknown, {"results": []}) == (400, "batchId is required")
    assert send(unknown, {"batchId": 5, "results": [result()]}) == (400, "batchId is required")
    assert send(unknown, {"batchId": "b", "results": []}) == (400, "results must be a non-empty array")
    assert send(unknown, {"batchId": "b", "results": {}}) == (400, "results must be a non-empty array")
    assert send(unknown, {"batchId": "b", "results": many}) == (400, "Batch size must not exceed 10")
    assert send(unknown, {"batchId": "b", "results": [result()]}) == (404, "Run not found")
    assert send(done, {"batchId": "b", "results": [result()]}) == (409, "Run is already in a terminal state")
    assert send(done, {"batchId": "b", "results": many}) == (400, "Batch size must not exceed 10")


def test_another_projects_run_is_unknown(judge, other_api, start):
    """Every route of the run answers as for a random id (EVAL-003)."""
    run = start()
    body = {"batchId": "b", "results": [result()]}
    answers = [
        other_api.post(f"{SDK}/runs/{run}/results", body),
        other_api.get(f"{SDK}/runs/{run}"),
        other_api.get(f"{SDK}/runs/{run}/missing-results"),
        other_api.post(f"{SDK}/runs/{run}/finalize", {}),
        other_api.get(f"{SDK}/runs/{run}/gate", failUnder=1),
    ]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(404, {"error": "Run not found"})] * 5
    assert Run.objects.get(pk=run).status == "in_progress"


def test_unusable_results_are_dropped_and_counted(judge, start, submit):
    """Without a key, or with neither answer nor error, a result leaves no row; the others are judged (EVAL-063, EVAL-064)."""
    run = start()
    good = result("rate 6")
    reply = submit(
        run,
        {**result(), "idempotencyKey": None},
        {**result(), "idempotencyKey": "  "},
        {**result(), "idempotencyKey": 7},
        result("   "),
        result(None),
        {**result(), "output": {"answer": "no text"}},
        "not an object",
        good,
    )
    assert (reply["accepted"], reply["failedValidation"]) == (1, 7)
    assert [entry["idempotencyKey"] for entry in reply["scoredResults"]] == [good["idempotencyKey"]]
    assert verdicts(judge) == 1
    assert Result.objects.filter(run=run).count() == 1


def test_accepted_keys_are_answered_from_the_store(judge, start, submit):
    """A repeat is neither judged nor changed, also inside one batch (EVAL-066, EVAL-067)."""
    run = start()
    once = result("rate 4")
    first = submit(run, once, {**once, "output": {"text": "rate 10"}})
    assert (first["accepted"], first["duplicates"]) == (1, 1)
    again = submit(run, {**once, "output": {"text": "rate 9"}})
    assert (again["accepted"], again["duplicates"]) == (0, 1)
    assert again["scoredResults"][0]["rating"] == 4
    assert again["scoredResults"][0]["deduped"] is True
    assert "deduped" not in first["scoredResults"][0]
    assert first["scoredResults"][1]["deduped"] is True
    assert verdicts(judge) == 1
    assert again["liveStatistics"]["ratedCount"] == 1


def test_agent_errors_count_as_zero_without_a_judge(judge, api, start, submit):
    """8 and an error: average 4; the row itself has no rating (EVAL-070..072, EVAL-102)."""
    run = start()
    broken = {**result(""), "error": {"type": "EmptyOutput", "message": "Agent returned no output", "retryable": False}}
    reply = submit(run, result("rate 8"), {**broken, "questionIndex": 1})
    assert reply["accepted"] == 2
    assert reply["scoredResults"][1] | {"rating": 0, "status": "failed"} == reply["scoredResults"][1]
    assert reply["liveStatistics"] == {
        "averageRating": 4,
        "minRating": 0,
        "maxRating": 8,
        "ratedCount": 2,
        "skippedCount": 0,
        "failedCount": 1,
    }
    assert verdicts(judge) == 1
    row = api.get(f"{SDK}/runs/{run}").json()["results"][1]
    assert (row["status"], row["rating"], row["codeScorerResults"]) == ("failed", None, None)
    assert row["error"] == {"type": "EmptyOutput", "message": "Agent returned no output", "retryable": False}


def test_what_the_judge_could_not_say_is_no_number(judge, start, submit):
    """A skipped row has a reason, no rating, and stays out of every average (EVAL-078..080, EVAL-093)."""
    run = start()
    reply = submit(run, result("rate 8"), result("unusable", 1))
    skipped = reply["scoredResults"][1]
    assert (skipped["status"], skipped["rating"]) == ("skipped", None)
    assert skipped["justification"]
    assert reply["liveStatistics"]["averageRating"] == 8
    assert (reply["liveStatistics"]["ratedCount"], reply["liveStatistics"]["skippedCount"]) == (1, 1)


def test_no_provider_key_is_a_reason_not_an_error(start, submit, monkeypatch):
    """200, skipped, and the reason names what is missing (EVAL-094)."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    reply = submit(start(), result("rate 8"))
    [entry] = reply["scoredResults"]
    assert (entry["status"], entry["rating"]) == ("skipped", None)
    assert "OPENAI_API_KEY" in entry["justification"]
    assert reply["liveStatistics"]["averageRating"] is None
    assert reply["liveStatistics"]["skippedCount"] == 1


@override_settings(QUOTA_JUDGE_CALLS_PER_DAY=1)
def test_a_used_up_quota_is_a_reason_too(judge, start, submit):
    """The second result is skipped and names the quota; never a 429 (EVAL-094)."""
    reply = submit(start(), result("rate 8"), result("rate 8", 1))
    by_status = {entry["status"]: entry for entry in reply["scoredResults"]}
    assert set(by_status) == {"scored", "skipped"}
    assert "AGENTX_QUOTA_JUDGE_CALLS_PER_DAY" in by_status["skipped"]["justification"]
    assert reply["liveStatistics"]["skippedCount"] == 1


def test_other_spellings_score_the_same(judge, api, start, submit):
    """`caseIndex`, a top-level `query`, a text as output (EVAL-048, SDK-053)."""
    run = start()
    body = {"idempotencyKey": "ts-1", "caseIndex": 2, "query": "What is three?", "output": "rate 5"}
    assert submit(run, body)["scoredResults"][0]["rating"] == 5
    row = api.get(f"{SDK}/runs/{run}").json()["results"][0]
    assert (row["questionIndex"], row["questionText"], row["runNumber"]) == (2, "What is three?", 1)
    assert (row["input"], row["output"]) == ({"query": "What is three?"}, {"text": "rate 5"})
    assert Result.objects.get(run=run).case_id == "case-2"


def test_a_row_without_a_question_is_not_graded_as_the_first(judge, api, start, submit):
    """An index the dataset does not have, or none at all, has no question text."""
    run = start()
    bare = {"idempotencyKey": "bare", "input": {"query": "Mine"}, "output": {"text": "rate 5"}}
    submit(run, bare, result("rate 6", 99))
    rows = {row["questionIndex"]: row for row in api.get(f"{SDK}/runs/{run}").json()["results"]}
    assert {index: row["questionText"] for index, row in rows.items()} == {None: None, 99: None}


def test_what_was_sent_comes_back(judge, api, start, submit):
    """Input, output, timings, metadata and trace events are echoed; absent ones leave their keys out (EVAL-051..055)."""
    run = start()
    full = {
        **result("rate 8"),
        "input": {"query": "What is one?", "user": {"plan": "pro"}},
        "output": {"text": "rate 8", "sources": [1, 2]},
        "timings": {"latencyMs": 1240, "inputTokens": 150, "outputTokens": 45},
        "metadata": {"model": "gpt-x", "big": "x" * 5000, "last": 1},
        "observableTrace": {"events": [{"type": "tool", "name": f"t{n}", "summary": "y" * 900} for n in range(40)]},
        "traceId": "a" * 21,
        "unknownKey": 1,
    }
    submit(run, full, result("rate 8", 1))
    sent, plain = api.get(f"{SDK}/runs/{run}").json()["results"]
    assert (sent["input"], sent["output"]) == (full["input"], full["output"])
    assert (sent["latencyMs"], sent["inputTokens"], sent["outputTokens"]) == (1240, 150, 45)
    assert sent["traceId"] == "a" * 21
    assert sent["metadata"] == {"model": "gpt-x"}
    assert 0 < len(sent["observableTrace"]["events"]) < 40
    assert not {"metadata", "observableTrace"} & set(plain)


def test_text_of_every_kind_is_stored(judge, api, start, submit):
    """NUL and half an emoji are replaced, everything else comes back as sent."""
    run = start()
    text = "rate 7 \x00 \u202e 👩‍🚀 שלום"
    submit(run, {**result(text), "input": {"query": "a\x00b"}})
    row = api.get(f"{SDK}/runs/{run}").json()["results"][0]
    assert row["output"]["text"] == text.replace("\x00", "\ufffd")
    assert row["input"] == {"query": "a\ufffdb"}


def test_variants_stand_apart(judge, api, start, submit, finished):
    """A paraphrase is stored and shown but counts in no average, case or gate (EVAL-041, EVAL-043, EVAL-044)."""
    run = start()
    variant = {**result("rate 0"), "runNumber": 4, "isSmokeTestVariant": True, "smokeTestVariantText": "Say one"}
    reply = submit(run, result("rate 8"), variant)
    assert reply["liveStatistics"]["averageRating"] == 8
    assert reply["liveStatistics"]["ratedCount"] == 1
    read = api.get(f"{SDK}/runs/{run}").json()
    assert (read["resultCount"], read["averageRating"], read["caseStatistics"]) == (2, 8, [])
    assert [row["isSmokeTestVariant"] for row in read["results"]] == [False, True]
    assert read["results"][1]["smokeTestVariantText"] == "Say one"
    gate = api.get(f"{SDK}/runs/{run}/gate", failUnder=8).json()
    assert (gate["passed"], gate["averageRating"]) == (True, 8)


def test_repetitions_are_rows_of_their_own(judge, api, start, submit):
    """Their spread is in the case statistics: population variance to two decimals (EVAL-050, EVAL-149, EVAL-150)."""
    run = start()
    submit(run, result("rate 3", runNumber=1), result("rate 9", runNumber=2), result("rate 5", 1))
    assert api.get(f"{SDK}/runs/{run}").json()["caseStatistics"] == [
        {
            "questionIndex": 0,
            "ratedCount": 2,
            "averageRating": 6,
            "minRating": 3,
            "maxRating": 9,
            "ratingVariance": 9,
        }
    ]


def test_equal_answers_are_judged_each(judge, start, submit):
    """Five repetitions with one and the same text: five calls, five results; sent again, none (no cache between them)."""
    run = start()
    rows = [result("rate 8", 0, runNumber=n) for n in range(1, 6)]
    assert submit(run, *rows)["accepted"] == 5
    assert verdicts(judge) == 5
    assert submit(run, *rows)["duplicates"] == 5
    assert verdicts(judge) == 5
    assert Result.objects.filter(run=run).count() == 5


def test_averages_are_not_rounded(judge, start, submit):
    """7, 7, 8 (EVAL-081)."""
    reply = submit(start(), result("rate 7", 0), result("rate 7", 1), result("rate 8", 2))
    assert reply["liveStatistics"]["averageRating"] == pytest.approx(22 / 3, abs=1e-12)


def test_missing_results_lists_what_was_accepted(judge, api, start, submit):
    """Scored, skipped and failed keys, as sent; a fresh run has none (EVAL-139, EVAL-140)."""
    run = start()
    fresh = api.get(f"{SDK}/runs/{run}/missing-results").json()
    assert fresh == {"runId": run, "submittedKeys": [], "submittedCount": 0, "missing": []}
    rows = [result("rate 8"), result("unusable", 1), result(None, 2, error={"type": "E", "message": "x"})]
    submit(run, *rows)
    found = api.get(f"{SDK}/runs/{run}/missing-results").json()
    assert set(found["submittedKeys"]) == {row["idempotencyKey"] for row in rows}
    assert (found["submittedCount"], found["missing"]) == (3, [])


def test_a_low_average_ends_nothing(judge, start, submit):
    """Ten zeros: still in progress (EVAL-073)."""
    reply = submit(start(), *(result("rate 0", n % 3, runNumber=n + 1) for n in range(10)))
    assert (reply["status"], reply["accepted"]) == ("in_progress", 10)
