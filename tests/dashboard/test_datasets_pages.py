"""Datasets: the list, and one dataset edited as a whole."""

from __future__ import annotations

import json
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.datasets.models import Dataset
from apps.datasets.services import attachments
from apps.datasets.services.datasets import create_dataset
from tests.dashboard.conftest import span
from tests.support.providers import Answer

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


def test_history_shows_changes_and_applying_a_version_only_fills_the_form(client, project):
    dataset = dataset_of(project, acceptanceCriteria="Old rule", sovereigntyIndex={"models": ["a"]})
    url = f"/datasets/{dataset.pk}"
    client.post(url, posted(client, url, acceptance_criteria="New rule", questions="[]", name="Other"))
    html = client.get(f"{url}?tab=history").content.decode()
    assert "v1" in html and html.count("Apply this version") == 1
    first, second = dataset.versions.order_by("version")
    changes = client.get(f"{url}/versions/{second.pk}").content.decode()
    assert "Old rule" in changes and "New rule" in changes and "Case 1" in changes and "INV-7731" in changes
    assert "The first version" in client.get(f"{url}/versions/{first.pk}").content.decode()
    assert "New rule" in client.get(f"{url}/versions/{first.pk}?against=current").content.decode()

    applied = client.get(f"{url}?version={first.pk}").content.decode()
    assert "Nothing is stored until you save" in applied and "Old rule" in applied and "INV-7731" in applied
    assert dataset.versions.count() == 2
    client.post(url, posted(client, f"{url}?version={first.pk}"))
    dataset.refresh_from_db()
    assert dataset.name == "Support set" and dataset.questions == [CASE]
    assert dataset.versions.get(version=2).snapshot == first.snapshot

    assert client.post(f"{url}/versions/{first.pk}/delete").status_code == 302
    current = dataset.versions.get(version=2)
    refused = client.post(f"{url}/versions/{current.pk}/delete", follow=True)
    assert "current version cannot be deleted" in refused.content.decode()
    assert [row.version for row in dataset.versions.order_by("version")] == [1, 2]


def test_a_csv_file_is_previewed_with_its_bad_rows_and_then_stored(client, project):
    text = "query,expected_results,what\nHello,Hi,x\n,nothing,\nBye,,\n"
    file = SimpleUploadedFile("greetings.csv", text.encode())
    preview = client.post("/datasets/import", {"file": file})
    html = preview.content.decode()
    assert "2 cases were understood" in html and "Row 3: empty query" in html and "not used: what" in html
    assert not Dataset.objects.exists()
    payload = preview.context["payload"]
    answer = client.post("/datasets/import", {"payload": payload, "name": preview.context["name"], "into": ""})
    made = Dataset.objects.get(name="greetings")
    assert answer.url == f"/datasets/{made.pk}" and made.case_count == 2
    client.post("/datasets/import", {"payload": payload, "into": made.pk})
    made.refresh_from_db()
    assert made.case_count == 4 and made.versions.count() == 2


def test_files_that_hold_nothing_are_refused_with_a_reason(client, project):
    for file, reason in (
        (SimpleUploadedFile("a.csv", b"name\nx\n"), "no column"),
        (SimpleUploadedFile("a.json", b"{oops"), "not valid JSON"),
    ):
        answer = client.post("/datasets/import", {"file": file})
        assert answer.status_code == 400 and reason in answer.content.decode()
    assert "Choose a file first" in client.post("/datasets/import", {}).content.decode()
    assert client.post("/datasets/import", {"payload": "[]"}).status_code == 400


def test_what_is_exported_comes_back_equal(client, project):
    dataset = dataset_of(project, acceptanceCriteria="Rule")
    exported = client.get(f"/datasets/{dataset.pk}/export.json")
    assert 'filename="support-set.json"' in exported["Content-Disposition"]
    preview = client.post("/datasets/import", {"file": SimpleUploadedFile("x.json", exported.content)})
    client.post("/datasets/import", {"payload": preview.context["payload"]})
    twin = Dataset.objects.exclude(pk=dataset.pk).get()
    assert twin.questions == dataset.questions and twin.grading == dataset.grading
    rows = b"".join(client.get(f"/datasets/{dataset.pk}/export.csv").streaming_content)
    preview = client.post("/datasets/import", {"file": SimpleUploadedFile("x.csv", rows)})
    assert json.loads(preview.context["payload"])["cases"] == [CASE]
    assert client.get(f"/datasets/{dataset.pk}/export.exe").status_code == 404


def test_generating_without_a_provider_key_says_why(client, project):
    dataset = dataset_of(project)
    answer = client.post(f"/datasets/{dataset.pk}/generate", {"source_text": "Facts", "count": "3"})
    assert "KEY" in answer.content.decode() and dataset.versions.count() == 1
    assert "sourceText is required" in client.post(f"/datasets/{dataset.pk}/generate").content.decode()


def test_a_trace_is_added_once_and_again_only_on_purpose(client, project, tree):
    dataset = create_dataset(project=project, body={"name": "From production"})
    assert "Add to dataset" in client.get(f"/traces/{tree[0]}").content.decode()
    url = f"/datasets/add?trace={tree[0]}"
    html = client.get(url).content.decode()
    assert "Where is my order?" in html and "On its way." in html
    data = {"query": "Where is order 7?", "expected": "With the carrier", "dataset": dataset.pk}
    assert "has 1 case now" in client.post(url, data).content.decode()
    again = client.post(url, data).content.decode()
    assert "already added" in again and "Where is order 7?" in again and "Add anyway" in again
    assert "has 2 cases now" in client.post(url, {**data, "anyway": "yes"}).content.decode()
    dataset.refresh_from_db()
    case = dataset.questions[0]
    assert case["main_question"] == {"query": "Where is order 7?", "expectedResults": "With the carrier"}
    assert case["source"]["traceId"] == tree[0] and dataset.versions.count() == 3


def test_a_session_becomes_a_case_with_follow_ups_in_a_new_dataset(client, project, store):
    store(
        span("bot", session_id="se/2 ü", input="First?", output="One."),
        span("bot", session_id="se/2 ü", at_ms=1000, input="Second?", error="It broke"),
    )
    url = "/datasets/add?session=se%2F2%20%C3%BC"
    html = client.get(url).content.decode()
    assert "Turn 2" in html and "It broke" in html
    refused = client.post(url, {"query": ["First?", "Second?"], "expected": ["", ""], "dataset": ""})
    assert "Pick a dataset" in refused.content.decode()
    client.post(url, {"query": ["First?", "Second?"], "expected": ["1", ""], "dataset": "", "new_name": "Talks"})
    [case] = Dataset.objects.get(name="Talks").questions
    assert [turn["query"] for turn in case["follow_up_questions"]] == ["Second?"]
    assert case["source"]["sessionId"] == "se/2 ü"


def test_adding_from_nothing_and_suggesting_without_a_model_say_why(client, project, tree):
    assert "Trace not found" in client.get("/datasets/add?trace=nope").content.decode()
    assert client.post("/datasets/suggest?trace=nope&turn=0").status_code == 404
    assert client.post(f"/datasets/suggest?trace={tree[0]}&turn=9").status_code == 404
    answer = client.post(f"/datasets/suggest?trace={tree[0]}&turn=0", {"query": "Where?", "expected": "typed"})
    assert answer.status_code == 200 and "typed" in answer.content.decode() and "KEY" in answer.content.decode()


def test_generated_cases_come_as_a_checklist_and_a_suggestion_fills_its_field(
    client, project, tree, monkeypatch, fake_provider
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    dataset = dataset_of(project)
    fake_provider.answer(Answer.of_json({"cases": [{"query": 'Is "it" <paid>?', "expectedResults": "Yes & no"}]}))
    answer = client.post(f"/datasets/{dataset.pk}/generate", {"source_text": "Facts", "count": "1"})
    html = answer.content.decode()
    assert html.count("data-generated=") == 1 and "&lt;paid&gt;" in html and "Yes &amp; no" in html
    assert dataset.versions.count() == 1
    fake_provider.answer(Answer.of_json({"expected": "With the carrier", "rationale": "It named no place"}))
    url = f"/datasets/suggest?trace={tree[0]}&turn=0"
    html = client.post(url, {"query": "Where is my order?", "expected": ""}).content.decode()
    assert "With the carrier" in html and "It named no place" in html
