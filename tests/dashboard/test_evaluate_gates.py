"""CI Gates: the history, the preview that records nothing, and texts that hold this server's address."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.dashboard import ci_snippets
from apps.evaluations.models import GateVerdict
from tests.dashboard.conftest import text_of
from tests.evaluations.conftest import (  # noqa: F401
    SDK,
    api,
    dataset,
    finished,
    judge,
    make_dataset,
    start,
    submit,
)


def page(client, name="gates", **query):
    response = client.get(reverse(f"dashboard:{name}"), query)
    assert response.status_code == 200
    return text_of(response)


@pytest.fixture
def gated(api, judge, finished):  # noqa: F811
    """A run that failed one gate and passed another, both recorded."""
    run_id = finished("rate 6", "rate 8", evaluationSubject={"version": "v3"})
    for floor in (9, 5):
        api.get(f"{SDK}/runs/{run_id}/gate", failUnder=floor, record="true", caller="github-actions")
    return run_id


def test_recorded_gates_stand_newest_first_with_what_their_checks_found(client, gated):
    text = page(client)
    assert text.index("PASS") < text.index("FAIL")
    assert "github-actions" in text
    assert "v3" in text
    assert "Average rating 7 &lt; floor 9" in text
    assert reverse("dashboard:run", args=[gated]) in text


def test_gates_are_filtered_by_verdict(client, gated):
    assert "PASS<" not in page(client, verdict="failed")
    assert "FAIL<" not in page(client, verdict="passed")
    GateVerdict.objects.filter(passed=False).delete()
    assert "No gate of this verdict" in page(client, verdict="failed")


def test_a_fresh_project_says_what_a_gate_is(client, project):
    text = page(client)
    assert "No gate recorded yet" in text
    assert "Needs a completed run." in text


def test_a_preview_says_the_verdict_and_records_nothing(client, gated, dataset):  # noqa: F811
    before = GateVerdict.objects.count()
    text = page(client, "gates_preview", dataset=dataset["_id"], failUnder="7.5")
    assert "Would fail." in text
    assert "Average rating 7 &lt; floor 7.5" in text
    assert "Would pass." in page(client, "gates_preview", dataset=dataset["_id"], failUnder="7", noRegression="true")
    assert GateVerdict.objects.count() == before


@pytest.mark.parametrize(
    ("query", "words"), [({"failUnder": "much"}, "failUnder must be a number"), ({}, "At least one check")]
)
def test_a_preview_that_cannot_be_made_says_why(client, gated, dataset, query, words):  # noqa: F811
    assert words in page(client, "gates_preview", dataset=dataset["_id"], **query)
    assert "no completed run" in page(client, "gates_preview", dataset="x" * 21, failUnder="7")


@pytest.mark.parametrize("slug", ["github", "gitlab", "curl"])
def test_set_up_texts_hold_the_address_of_this_server(client, gated, slug):
    assert "http://testserver/api/v1" in page(client, snippet=slug)


@pytest.mark.parametrize("slug", ["python", "pytest", "curl"])
def test_set_up_texts_hold_the_id_of_the_dataset(client, gated, dataset, slug):  # noqa: F811
    setup = page(client, snippet=slug)
    assert dataset["_id"] in setup[setup.index('id="snippet"') :]


def test_python_texts_are_python():
    for snippet in ci_snippets.SNIPPETS:
        code = ci_snippets.fill(snippet.code, base_url="http://h/api/v1", dataset_id="d")
        if snippet.language == "python":
            compile(code, snippet.file, "exec")
        if snippet.slug == "github":
            assert "${{ secrets.AGENTX_API_KEY }}" in code


def test_the_documentation_has_the_same_texts():
    text = (Path(__file__).parents[2] / "docs/ci.md").read_text()
    for snippet in ci_snippets.SNIPPETS:
        code = ci_snippets.fill(snippet.code, base_url="https://agentx.example.com/api/v1", dataset_id="<dataset id>")
        assert code.strip() in text, snippet.slug


def test_more_gates_take_no_more_queries(client, gated):
    def queries():
        with CaptureQueriesContext(connection) as found:
            page(client)
        return len(found)

    queries()
    few = queries()
    row = GateVerdict.objects.first()
    for _ in range(60):
        row.pk = None
        row._state.adding = True
        GateVerdict.objects.create(
            project=row.project, run=row.run, dataset_id=row.dataset_id, passed=True, checks=row.checks
        )
    assert queries() == few
    assert "Older" in page(client)
