"""Versions, two runs case by case and their head to head: the sentence, the order, and what it costs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.evaluations.models import PairwiseComparison, Result
from tests.dashboard.conftest import text_of
from tests.evaluations.conftest import (  # noqa: F401
    api,
    dataset,
    finished,
    judge,
    make_dataset,
    other_api,
    other_project,
    rate,
    start,
    submit,
    verdicts,
)
from tests.support.providers import Answer


def page(client, name, *args, **query):
    response = client.get(reverse(f"dashboard:{name}", args=args), query)
    assert response.status_code == 200
    return text_of(response)


@pytest.fixture
def two(judge, finished):  # noqa: F811
    """(baseline, candidate): the first case falls, the second rises, the third cannot be compared."""
    baseline = finished("rate 8", "rate 4", "rate 7", evaluationSubject={"displayName": "bot", "version": "v1"})
    candidate = finished("rate 3", "rate 6", "unusable", evaluationSubject={"displayName": "bot", "version": "v2"})
    judge.forget()
    return baseline, candidate


def compare(client, two, **query):
    return page(client, "compare", baseline=two[0], candidate=two[1], **query)


def test_two_runs_show_the_sentence_the_interval_and_the_largest_loss_first(client, two):
    text = compare(client, two)
    assert "v2 against v1" in text
    assert "2 cases rated in both" in text
    assert "too few to tell it from noise" in text
    assert "95 % interval" in text
    assert "1 case fell by half a point or more." in text
    cases = text[text.index('id="cases"') :]
    assert cases.index('id="c-1"') < cases.index('id="c-2"') < cases.index('id="c-3"')
    assert "−5.0" in cases
    assert "+2.0" in cases
    assert "Not comparable 1" in cases


def test_cases_are_filtered(client, two):
    cases = compare(client, two, show="fail")
    assert 'id="c-1"' in cases
    assert 'id="c-2"' not in cases


def test_opening_the_comparison_asks_no_judge(client, judge, two):  # noqa: F811
    text = compare(client, two)
    assert "Nothing is judged until you ask for it." in text
    # Three pairs have answers; two orders make six calls.
    assert "6 judge calls, 3 in one order" in text
    assert verdicts(judge) == 0


def test_two_ticked_runs_are_compared_in_the_order_of_time(client, two):
    text = text_of(client.get(reverse("dashboard:compare"), {"run": [two[1], two[0]]}))
    assert "v2 against v1" in text


def test_a_run_alone_is_compared_with_the_one_before(client, two):
    assert "v2 against v1" in page(client, "compare", candidate=two[1])
    assert "Compare v1 with which run?" in page(client, "compare", candidate=two[0])


def test_runs_of_two_datasets_are_not_compared(client, two, finished, make_dataset):  # noqa: F811
    other = finished("rate 5", dataset_id=make_dataset("Else?")["_id"])
    assert "different datasets" in page(client, "compare", baseline=two[0], candidate=other)


def test_an_opened_case_shows_both_answers_and_reasons(client, two):
    text = page(client, "compare_case", baseline=two[0], candidate=two[1], case="1")
    assert "rate 8" in text
    assert "rate 3" in text
    assert "It says 3." in text
    address = reverse("dashboard:compare_case")
    for query in ({"case": "99"}, {"case": "x"}, {}):
        response = client.get(address, {"baseline": two[0], "candidate": two[1], **query})
        assert response.status_code == 404


def judged(client, two, **fields):
    address = reverse("dashboard:compare_judge")
    return text_of(client.post(address, {"baseline": two[0], "candidate": two[1], **fields}, follow=True))


def test_a_head_to_head_shows_who_won_and_why(client, judge, two):  # noqa: F811
    judge.respond = lambda request: Answer.of_json({"winner": "1", "justification": "names the date"})
    text = judged(client, two)
    # One order: the first read wins, and the sides alternate.
    assert "candidate wins" in text
    assert "unknown: each pair was read in one order only" in text
    assert "names the date" in text
    assert verdicts(judge) == 3


def test_a_judge_that_follows_the_order_is_inconclusive(client, judge, two):  # noqa: F811
    judge.respond = lambda request: Answer.of_json({"winner": "1", "justification": "the first"})
    text = judged(client, two, both="1")
    assert "inconclusive" in text
    assert "3 of 3 changed with the reading order" in text
    assert "too often to name a winner" in text


def test_a_stored_comparison_seen_from_the_other_side_turns_its_figures(client, project, two):
    summary = {"total": 3, "aWins": 2, "bWins": 1, "ties": 0, "winner": "a", "flipRate": 0.0}
    PairwiseComparison.objects.create(
        project=project, run_a_id=two[1], run_b_id=two[0], both_orders=True, judge_model="m", summary=summary
    )
    assert "2 candidate wins" in compare(client, two)
    assert "1 candidate wins" in compare(client, two[::-1])


def test_without_a_judge_the_page_says_why(client, monkeypatch, two):
    monkeypatch.delenv("OPENAI_API_KEY")
    text = judged(client, two)
    assert "OPENAI_API_KEY" in text
    assert PairwiseComparison.objects.count() == 0


def test_versions_show_averages_and_the_verdict(client, two, dataset):  # noqa: F811
    text = page(client, "versions", dataset["_id"])
    assert "v2 at 4.5 against v1 at 6.33." in text
    assert "Below the version before." in text
    assert f"baseline={two[0]}&amp;candidate={two[1]}" in text
    assert client.get(reverse("dashboard:versions", args=["x" * 21])).status_code == 404


def test_more_cases_take_no_more_queries(client, two):
    def queries():
        with CaptureQueriesContext(connection) as found:
            compare(client, two)
        return len(found)

    queries()
    few = queries()
    for run_id in two:
        Result.objects.bulk_create(
            Result(
                run_id=run_id, idempotency_key=f"k{n}", case_id=str(n), question_index=n, status="scored", rating=n % 9
            )
            for n in range(3, 500)
        )
    assert queries() == few
    assert "1-50 of 500" in compare(client, two)
