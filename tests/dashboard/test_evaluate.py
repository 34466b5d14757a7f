"""Runs and one run: what a person sees, in which order, and how many queries it takes."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.evaluations.models import Result, Run
from tests.dashboard.conftest import text_of
from tests.evaluations.conftest import (  # noqa: F401
    api,
    dataset,
    finished,
    judge,
    make_dataset,
    other_api,
    other_project,
    result,
    start,
    submit,
)


def page(client, name, *args, **query):
    response = client.get(reverse(f"dashboard:{name}", args=args), query)
    assert response.status_code == 200
    return text_of(response)


@pytest.fixture
def run_id(judge, start, submit, api):  # noqa: F811
    """Three rated results, one of a failed agent and one that could not be judged."""
    made = start(evaluationSubject={"displayName": "support-agent", "version": "v2", "framework": "langchain"})
    submit(
        made,
        result("rate 9 fine", 0, latencyMs=1200, inputTokens=900, outputTokens=100),
        result("rate 3 poor", 1),
        result("unusable", 2),
        result(None, 0, error={"type": "TimeoutError", "message": "no answer in 30 s"}),
    )
    return made


def test_the_list_shows_a_run_with_its_agent_version_average_and_scorer(client, run_id):
    text = page(client, "runs")
    assert "support-agent" in text
    assert "v2" in text
    assert "langchain" in text
    assert "running" in text
    # (9 + 3 + 0) / 3
    assert "4.0 of 10" in text
    assert reverse("dashboard:run", args=[run_id]) in text


def test_runs_of_another_project_are_not_there(client, run_id, other_project):  # noqa: F811
    from apps.projects.models import Project

    Run.objects.filter(pk=run_id).update(project=Project.objects.exclude(is_default=True).first())
    assert "No runs yet" in page(client, "runs")
    assert client.get(reverse("dashboard:run", args=[run_id])).status_code == 404


def test_the_list_is_filtered_by_search_status_and_dataset(client, run_id, dataset):  # noqa: F811
    assert "support-agent" in page(client, "runs", q="support-ag")
    assert "support-agent" in page(client, "runs", q=run_id)
    assert "No run matches" in page(client, "runs", q="something else")
    assert "No run matches" in page(client, "runs", status="completed")
    assert "support-agent" in page(client, "runs", status="in_progress", dataset=dataset["_id"])
    assert "No run matches" in page(client, "runs", dataset="x" * 21)


def test_the_list_takes_the_same_queries_for_one_run_and_for_many(client, start, django_assert_num_queries):  # noqa: F811
    start()
    page(client, "runs")
    with _counted() as one:
        page(client, "runs")
    for _ in range(5):
        start()
    with _counted() as many:
        page(client, "runs")
    assert len(one) == len(many)


def _counted():
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    return CaptureQueriesContext(connection)


def test_a_run_shows_its_figures(client, run_id):
    text = page(client, "run", run_id)
    assert "support-agent, v2" in text
    assert "of 3 rated" in text
    assert "3, 1, 1" in text  # rated, not judged, failed
    assert "0.0, 9.0" in text
    assert "4 of 3 answers" in text
    assert f'hx-get="{reverse("dashboard:run_progress", args=[run_id])}"' in text


def test_a_finished_run_asks_for_no_progress(client, run_id, api):  # noqa: F811
    api.post(f"/custom-agent-evaluations/runs/{run_id}/finalize", {})
    assert "every 2s" not in page(client, "run_progress", run_id)


def order_of(text, *words):
    found = [text.index(word) for word in words]
    return found == sorted(found)


def rows_of(text):
    return text[text.index('id="results"') :]


def test_results_stand_worst_first_and_what_was_not_judged_stands_last(client, run_id):
    ids = list(Result.objects.filter(run_id=run_id).order_by("id").values_list("id", flat=True))
    fine, poor, unjudged, failed = (f'"d-{pk}"' for pk in ids)
    assert order_of(rows_of(page(client, "run", run_id)), failed, poor, fine, unjudged)
    assert order_of(rows_of(page(client, "run", run_id, order="best")), fine, poor, failed, unjudged)


@pytest.mark.parametrize(("show", "shown"), [("low", {1, 3}), ("failed", {3}), ("skipped", {2}), ("", {0, 1, 2, 3})])
def test_results_are_filtered(client, run_id, show, shown):
    ids = list(Result.objects.filter(run_id=run_id).order_by("id").values_list("id", flat=True))
    text = page(client, "run", run_id, show=show)
    assert {at for at, pk in enumerate(ids) if f'id="d-{pk}"' in text} == shown


def test_ten_thousand_results_open_as_fifty(client, run_id):
    with _counted() as few:
        page(client, "run", run_id)
    Result.objects.bulk_create(
        Result(run_id=run_id, idempotency_key=f"k{n}", case_id=str(n), question_index=n % 3, status="scored", rating=7)
        for n in range(10_000)
    )
    Run.objects.filter(pk=run_id).update(result_count=10_004)
    with _counted() as many:
        text = page(client, "run", run_id)
    assert len(few) == len(many)
    assert text.count('class="detail"') == 50
    assert "1-50 of 10,004" in text
    assert "9,951-10,000 of 10,004" in page(client, "run", run_id, page="200")
    assert "10,001-10,004 of 10,004" in page(client, "run", run_id, page="999999")


def test_an_opened_result_shows_both_texts_and_the_reason(client, judge, start, submit, make_dataset):  # noqa: F811
    made = make_dataset({"query": "Refund?", "expectedResults": "You get it back."}, "Second?")
    run_id = start(made["_id"])
    submit(
        run_id,
        result("You never get it back. rate 4", 0),
        result(None, 1, error={"type": "E", "message": "<b>broke</b>"}),
    )
    first, second = Result.objects.filter(run_id=run_id).order_by("question_index")
    text = page(client, "run_result", run_id, first.pk)
    assert "Expected and actual" in text
    assert "<ins>" in text
    assert "It says 4." in text
    text = page(client, "run_result", run_id, second.pk)
    assert "&lt;b&gt;broke&lt;/b&gt;" in text
    assert "counts as 0" in text


def test_a_result_that_was_not_judged_says_so_and_shows_no_number(client, run_id):
    row = Result.objects.get(run_id=run_id, status="skipped")
    text = page(client, "run_result", run_id, row.pk)
    assert "Why it was not judged" in text
    assert "never a number" in text
    assert "I would rather not say." in text


def test_results_of_a_case_alone(client, run_id):
    text = page(client, "run", run_id, case="1")
    assert "Results of case 1" in text
    assert text.count('class="detail"') == 2


@pytest.mark.parametrize("address", ["run", "run_progress"])
def test_an_unknown_run_is_not_found(client, project, address):
    assert client.get(reverse(f"dashboard:{address}", args=["x" * 21])).status_code == 404
    assert client.get(reverse(f"dashboard:{address}", args=["nonsense"])).status_code == 404


def test_two_runs_can_be_ticked_for_comparison(client, run_id):
    text = page(client, "runs")
    assert f'form="compare-two" name="run" value="{run_id}"' in text
    assert f'action="{reverse("dashboard:compare")}"' in text


def test_a_hosted_ci_run_shows_its_gate_and_what_broke(client, api, judge, make_dataset):  # noqa: F811
    from apps.evaluations.models import CIRun
    from apps.projects.models import Project

    made = make_dataset("One?", "Two?")
    run_id = api.post("/custom-agent-evaluations/runs", {"datasetId": made["_id"], "runSource": "ci-run"}).json()[
        "runId"
    ]
    CIRun.objects.create(
        project=Project.objects.get(is_default=True),
        run_id=run_id,
        agent_name="support-bot",
        pass_rate_threshold=0.9,
        gate="fail",
        passed_questions=1,
        git_context={"branch": "refund-tone", "commit": "c1aa902"},
        violations=[
            {"question_index": 1, "metric": "rating", "threshold": 7, "actual": 4.0, "question_text": "Two?"},
        ],
        expires_at="2030-01-01T00:00:00Z",
    )
    text = page(client, "run", run_id)
    assert "FAIL" in text
    assert "1 of 2 cases passed, 90.0 % needed" in text
    assert "refund-tone" in text
    assert "Case 2: rating 4.0 below 7.0. Two?" in text


def test_an_analysis_is_asked_for_and_shown(client, judge, run_id):  # noqa: F811
    from tests.support.providers import Answer

    report = {
        "summary": "Good on facts, weak on refunds.",
        "recommendations": [{"category": "prompt", "priority": "high", "recommendation": "Name the amount."}],
        "overallAssessment": {"strengths": ["Polite"], "weaknesses": ["Vague"], "rating": "medium"},
    }
    judge.respond = lambda request: Answer.of_json({"rating": 5, "justification": "so so", **report})
    response = client.post(reverse("dashboard:run_analyze", args=[run_id]), {"judge": ["", "", ""]}, follow=True)
    text = text_of(response)
    assert "The analysis is written." in text
    assert "Good on facts, weak on refunds." in text
    assert "Name the amount." in text
    assert "Vague" in text


def test_an_analysis_that_fails_says_why(client, monkeypatch, run_id):
    monkeypatch.delenv("OPENAI_API_KEY")
    response = client.post(reverse("dashboard:run_analyze", args=[run_id]), follow=True)
    assert "OPENAI_API_KEY" in text_of(response)


def test_models_of_a_run_stand_side_by_side(client, start, submit, judge):  # noqa: F811
    run_id = start()
    submit(
        run_id,
        result("rate 9", 0, metadata={"model": "gpt-4o"}),
        result("rate 5", 0, metadata={"model": "llama-3"}),
    )
    text = page(client, "run_models", run_id)
    assert "gpt-4o" in text
    assert "llama-3" in text
    assert "9.0" in text


@pytest.mark.parametrize("flavour", ["simple", "openai", "langchain", "google-adk"])
def test_the_script_of_a_new_evaluation_holds_the_real_ids(client, make_dataset, api, flavour):  # noqa: F811
    from html import unescape

    from django.utils.html import strip_tags

    made = make_dataset("One?")
    scorer = api.post(
        "/custom-agent-evaluations/evaluation-settings", {"name": "Tone", "acceptanceCriteria": "Polite."}
    ).json()
    text = page(client, "run_new", dataset=made["_id"], scorer=scorer["_id"], flavour=flavour)
    code = unescape(strip_tags(text[text.index('id="script"') : text.index("</pre>", text.index('id="script"'))]))
    code = code[code.index(">") + 1 :]
    compile(code, "script", "exec")
    assert f'dataset_id="{made["_id"]}"' in code
    assert f'scorer_id="{scorer["_id"]}"' in code
    assert "http://testserver/api/v1" in code


def test_the_script_names_a_scorer_group(client, make_dataset, project):  # noqa: F811
    from apps.scorers.models import ScorerGroup

    make_dataset("One?")
    group = ScorerGroup.objects.create(project=project, name="Both")
    text = page(client, "run_new", group=group.pk)
    assert "scorer_group_id=" in text
    assert group.pk in text


def test_without_a_dataset_the_new_evaluation_leads_to_one(client, project):
    assert "A run needs a dataset" in page(client, "run_new")
