"""The evaluation pages in a real browser against a server started as a user starts it, judged by a model on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.evaluations.conftest import SDK, rate, result
from tests.support.browser import accessibility_findings, browser, watched_page  # noqa: F401
from tests.support.providers import Answer, running_provider
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.browser


def respond(request: Any) -> Answer:
    """Ratings as the answer says; of two answers always the one shown first."""
    if b"<answer-1>" in request.body:
        return Answer.of_json({"winner": "1", "justification": "the first"})
    return rate(request)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_provider() as provider:
        provider.respond = respond
        with running_server(env={"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.openai_url}) as started:
            yield started


@pytest.fixture(scope="module")
def http(server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.api_url, headers={"x-api-key": server.key}, timeout=60) as client:
        yield client


@pytest.fixture
def page(browser, server) -> Iterator[Any]:  # noqa: F811
    opened, problems = watched_page(browser, base_url=server.base_url)
    yield opened
    opened.context.close()
    assert problems == []


def post(http: httpx.Client, path: str, body: Any) -> Any:
    response = http.post(f"{SDK}/{path}", json=body)
    assert response.is_success, response.text
    return response.json()


@pytest.fixture(scope="module")
def dataset(http) -> str:
    cases = [{"main_question": {"query": f"Question {n}?", "expectedResults": f"rate 8 of {n}"}} for n in range(3)]
    return str(post(http, "datasets", {"name": "Support", "questions": cases})["_id"])


def begin(http: httpx.Client, dataset: str, version: str) -> str:
    subject = {"displayName": "support-agent", "version": version}
    return str(post(http, "runs", {"datasetId": dataset, "evaluationSubject": subject})["runId"])


def finish(http: httpx.Client, dataset: str, version: str, *ratings: float) -> str:
    run_id = begin(http, dataset, version)
    rows = [result(f"rate {value}", at) for at, value in enumerate(ratings)]
    post(http, f"runs/{run_id}/results", {"batchId": "b", "results": rows})
    post(http, f"runs/{run_id}/finalize", {})
    return run_id


def test_a_run_in_progress_fills_by_itself_and_stops_asking_when_it_ends(page, http, dataset):
    run_id = begin(http, dataset, "v0")
    page.goto(f"/runs/{run_id}")
    page.wait_for_selector("text=0 of 3 answers")
    rows = [result("rate 6", 0), result("rate 8", 1)]
    post(http, f"runs/{run_id}/results", {"batchId": "b", "results": rows})
    page.wait_for_selector("text=2 of 3 answers")
    assert page.inner_text("#run-head .figure") == "7.0"
    assert page.get_attribute("#run-head progress", "value") == "2"
    assert accessibility_findings(page) == []
    post(http, f"runs/{run_id}/finalize", {})
    page.wait_for_selector("#run-head progress", state="detached")
    assert page.get_attribute("#run-head", "hx-get") is None


def test_a_result_opens_with_the_keyboard_and_shows_the_difference(page, http, dataset):
    run_id = finish(http, dataset, "v1", 3, 9, 6)
    page.goto(f"/runs/{run_id}")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#results .diff")
    detail = page.locator("#results tr.detail:not([hidden])")
    assert "It says 3." in detail.inner_text()
    assert accessibility_findings(page) == []


def test_filters_change_the_address_and_back_undoes_them(page, http, dataset):
    expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
    run_id = finish(http, dataset, "v1", 3, 9, 6)
    page.goto(f"/runs/{run_id}")
    page.click("nav[aria-label=Show] >> text=Below the mark")
    page.wait_for_url("**?show=low")
    # Not wait_for_function: it evaluates a string in the page, which the page's policy rightly reports.
    expect(page.locator("#results tr.detail")).to_have_count(1)
    page.go_back()
    expect(page.locator("#results tr.detail")).to_have_count(3)


def test_two_ticked_runs_are_compared_and_judged_head_to_head(page, http, dataset):
    finish(http, dataset, "before", 5, 6, 7)
    finish(http, dataset, "after", 8, 6, 2)
    page.goto("/runs")
    assert accessibility_findings(page) == []
    boxes = page.locator("#runs input[name=run]")
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.click("text=Compare two")
    page.wait_for_selector("h1 >> text=after against before")
    page.locator("#cases tbody tr[data-toggle]").first.click()
    page.wait_for_selector("#cases .quote")
    assert "rate 2" in page.inner_text("#cases tr.detail:not([hidden])")
    page.click("text=Judge head to head")
    page.wait_for_selector("#h2h >> text=inconclusive")
    assert "3 of 3 changed with the reading order" in page.inner_text("#h2h")
    assert accessibility_findings(page) == []


def test_gates_are_previewed_without_a_record(page, http, dataset):
    run_id = finish(http, dataset, "v9", 8, 8, 8)
    page.goto("/gates")
    page.wait_for_selector("text=No gate recorded yet")
    page.fill("#gate-floor", "9")
    page.click("text=Try it")
    page.wait_for_selector("#gate-preview >> text=Would fail.")
    page.goto("/gates")
    assert page.is_visible("text=No gate recorded yet")
    http.get(f"{SDK}/runs/{run_id}/gate", params={"failUnder": 7, "record": "true", "caller": "ci"})
    page.goto("/gates")
    page.locator("#gates tbody tr[data-toggle]").first.click()
    assert page.is_visible("text=Average rating 8 >= floor 7")
    assert accessibility_findings(page) == []


def test_the_script_of_create_evaluation_runs_as_it_is(page, http, dataset, server, tmp_path):
    page.goto(f"/runs/new?dataset={dataset}")
    assert accessibility_findings(page) == []
    code = page.inner_text("#script")
    script = tmp_path / "evaluate.py"
    script.write_text(code.replace("answer(case.query)", "'rate 9 ' + case.query"))
    environment = {**os.environ, "AGENTX_API_BASE_URL": server.api_url, "AGENTX_API_KEY": server.key}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.split()[-1]
    page.goto(f"/runs/{run_id}")
    assert page.inner_text("#run-head .figure") == "9.0"
    page.locator("#results >> text=View trace").first.click()
    page.wait_for_url("**/traces/*")


def test_pages_fit_a_phone_in_both_themes(browser, server, http, dataset):  # noqa: F811
    run_id = finish(http, dataset, "v1", 3, 9, 6)
    for scheme in ("light", "dark"):
        opened, problems = watched_page(
            browser, base_url=server.base_url, viewport={"width": 390, "height": 844}, color_scheme=scheme
        )
        for path in (
            "/runs",
            f"/runs/{run_id}",
            f"/compare?candidate={run_id}",
            f"/compare/versions/{dataset}",
            "/gates",
        ):
            opened.goto(path)
            assert opened.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
            assert accessibility_findings(opened) == [], path
        opened.context.close()
        assert problems == []
