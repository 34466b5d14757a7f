"""Datasets: the list, and one dataset edited as a whole."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.datasets.models import Dataset
from apps.datasets.services import attachments
from apps.datasets.services.datasets import create_dataset

CASE = {
    "main_question": {
        "query": "Cancel INV-7731 & <pay> me back",
        "expectedResults": "It is paid;\nI asked for a quote.",
        "expectedTrajectory": {"tools": ["billing.get"], "mode": "unordered"},
        "expectedRetrievalContext": ["Paid invoices are refunded.", "A refund needs a quote."],
        "splits": ["smoke"],
        "mystery": {"kept": 1},
    },
    "follow_up_questions": [{"query": "When?"}],
    "source": {"traceId": "0VqK3mR1bN5QsEy9HfT2g"},
}


def dataset_of(project: Any, **body: Any) -> Dataset:
    return create_dataset(project=project, body={"name": "Support set", "questions": [CASE], **body})


def posted(client: Any, url: str, **changes: Any) -> dict[str, Any]:
    """What a browser would send from the page, with changes; None takes a field out."""
    form = client.get(url).context["form"]
    data: dict[str, Any] = {}
    for field in form:
        value = field.value()
        if value is True:
            data[field.html_name] = "on"
        elif value is not None and value is not False:
            data[field.html_name] = value
    data |= changes
    return {key: value for key, value in data.items() if value is not None}


def test_the_list_searches_pages_and_has_empty_states(client, project):
    assert "No datasets yet" in client.get("/datasets").content.decode()
    dataset_of(project)
    dataset_of(project, name="Billing", ci={"enabled": True})
    html = client.get("/datasets").content.decode()
    assert "Support set" in html and html.index("Billing") < html.index("Support set") and "v0" in html
    assert "Billing" not in client.get("/datasets?q=SUPPORT").content.decode()
    assert "No dataset matches" in client.get("/datasets?q=zzz").content.decode()
    assert 'aria-current="page"' in html and ">Datasets<" in html


def test_the_list_has_a_fixed_query_count(client, project):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            client.get("/datasets")
        return len(caught)

    dataset_of(project)
    queries()
    few = queries()
    for n in range(20):
        dataset_of(project, name=f"Set {n}")
    assert queries() == few


def test_a_dataset_is_created_by_its_name(client, project):
    refused = client.post("/datasets/new", {"name": " "})
    assert refused.status_code == 400 and "Fill this in." in refused.content.decode()
    answer = client.post("/datasets/new", {"name": "Checks", "description": "a\r\nb"})
    dataset = Dataset.objects.get(name="Checks")
    assert answer.status_code == 302 and answer.url == f"/datasets/{dataset.pk}"
    assert dataset.description == "a\nb"
    assert "No cases yet" in client.get(answer.url).content.decode()


def test_saving_what_the_page_shows_changes_nothing(client, project):
    dataset = dataset_of(
        project,
        acceptanceCriteria="Names the delay\nand a date",
        vectorSimilarity={"enabled": True, "model": "m"},
        codeScorers=[{"name": "n", "code": "return 1"}],
        sovereigntyIndex={"models": ["a"]},
        ci={"enabled": True, "thresholds": {"rating": 8}},
        numberOfRequests=3,
    )
    url = f"/datasets/{dataset.pk}"
    answer = client.post(url, posted(client, url))
    assert answer.status_code == 302
    assert [row.version for row in dataset.versions.all()] == [0]


def test_an_edit_is_saved_as_one_version(client, project):
    dataset = dataset_of(project)
    url = f"/datasets/{dataset.pk}"
    cases = [CASE, {"main_question": {"query": "New"}, "follow_up_questions": []}]
    data = posted(
        client,
        url,
        name="Renamed",
        questions=json.dumps(cases),
        acceptance_criteria="Short",
        bleu_score="on",
        code_scorers=json.dumps([{"name": "Words", "code": "return 1", "enabled": False}]),
        ci_enabled="on",
        ci_pass_rate="0.9",
        threshold_rating="6",
        number_of_requests="2",
        tab="ci",
    )
    answer = client.post(url, data)
    assert answer.status_code == 302 and answer.url == f"{url}?tab=ci"
    wire = client.get(f"/api/v1/custom-agent-evaluations/datasets/{dataset.pk}", headers={"x-api-key": project.key})
    wire = wire.json()
    wire = wire.get("dataset", wire)
    assert wire["name"] == "Renamed" and wire["numberOfRequests"] == 2 and wire["acceptanceCriteria"] == "Short"
    assert wire["questions"] == cases and wire["bleuScore"] == {"enabled": True}
    assert wire["codeScorers"][0]["name"] == "Words" and wire["codeScorers"][0]["enabled"] is False
    assert wire["ci"] == {"enabled": True, "passRateThreshold": 0.9, "thresholds": {"rating": 6}}
    assert list(dataset.versions.order_by("version").values_list("version", "creator")) == [(0, ""), (1, "Dashboard")]


def test_what_cannot_be_saved_is_refused_with_a_reason_and_kept_in_the_form(client, project):
    dataset = dataset_of(project)
    url = f"/datasets/{dataset.pk}"
    blank = json.dumps([CASE, {"main_question": {"query": " "}}])
    for changes, reason in (
        ({"questions": blank}, "Case 2 has no query"),
        ({"questions": "{oops"}, "could not be read"),
        ({"name": ""}, "Fill this in."),
        ({"ci_pass_rate": "7"}, "less than or equal to 1"),
        ({"ci_webhook": "ftp://example.com/x"}, "ci.webhookUrl"),
        ({"code_scorers": json.dumps([{"name": "A", "code": " "}])}, "Code scorer “A” has no code"),
        ({"number_of_requests": "11"}, "less than or equal to 10"),
    ):
        answer = client.post(url, posted(client, url, **{"acceptance_criteria": "typed text", **changes}))
        assert answer.status_code == 400, changes
        html = answer.content.decode()
        assert reason in html and "typed text" in html
    assert dataset.versions.count() == 1


def test_an_edit_that_others_overtook_is_refused(client, project):
    dataset = dataset_of(project)
    url = f"/datasets/{dataset.pk}"
    mine = posted(client, url, name="Mine")
    client.post(url, posted(client, url, name="Theirs"))
    answer = client.post(url, mine)
    assert answer.status_code == 409 and "changed since it was opened" in answer.content.decode()
    dataset.refresh_from_db()
    assert dataset.name == "Theirs"


def test_a_dataset_in_use_is_not_deleted_and_the_reason_is_told(client, project, monkeypatch):
    dataset = dataset_of(project)
    monkeypatch.setitem(attachments.checks, "test", lambda _project, _grading: ["Live judge"])
    answer = client.post(f"/datasets/{dataset.pk}/delete", follow=True)
    assert "attached to a live scorer" in answer.content.decode() and "Live judge" in answer.content.decode()
    monkeypatch.delitem(attachments.checks, "test")
    answer = client.post(f"/datasets/{dataset.pk}/delete", follow=True)
    assert "deleted" in answer.content.decode() and not Dataset.objects.exists()


def test_unknown_ids_are_not_found(client, project):
    for url in ("/datasets/nope", "/datasets/%00", f"/datasets/{'a' * 21}"):
        assert client.get(url).status_code == 404
