"""Adding cases from production, once each (DATA-052..061)."""

from __future__ import annotations

import re
import threading

import pytest
from django.db import connection

from apps.datasets.models import CaseEmbedding, Dataset
from tests.datasets.conftest import PAGES, SDK
from tests.support.providers import Answer


def case(query, **source):
    return {"main_question": {"query": query, "expectedResults": None}, "follow_up_questions": [], "source": source}


def add(api, dataset, new, mount=SDK, **body):
    return api.post(f"{mount}/datasets/{dataset['_id']}/cases", {"case": new, **body})


@pytest.fixture
def embeddings(monkeypatch, fake_provider):
    """A provider whose vectors the test says: text -> (x, y); the texts asked for are kept."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    known: dict[str, tuple[float, float]] = {}

    def respond(request):
        texts = request.json["input"]
        rows = [{"object": "embedding", "index": n, "embedding": known.get(t, (0, 1))} for n, t in enumerate(texts)]
        return Answer(body={"object": "list", "model": request.model, "data": rows, "usage": {}})

    fake_provider.respond = respond
    fake_provider.known = known
    return fake_provider


@pytest.mark.parametrize("mount", [SDK, PAGES])
def test_add(api, make, mount):
    """Last in the dataset, with its source and a version entry, which a later edit keeps (DATA-052, DATA-053)."""
    dataset = make("old")
    response = add(api, dataset, case("new", traceId="t1", signalId=None), mount)
    assert (response.status_code, response.json()) == (201, {"ok": True, "caseCount": 2})
    path = f"{PAGES}/datasets/{dataset['_id']}"
    stored = api.get(path).json()["questions"][-1]
    added = stored["source"].pop("addedAt")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", added)
    assert stored == {"main_question": {"query": "new"}, "follow_up_questions": [], "source": {"traceId": "t1"}}
    newest = api.get(f"{path}/versions").json()[0]
    assert (newest["version"], newest["changeSummary"]) == (1, "Updated questions")
    api.put(path, {"name": "renamed"})
    assert api.get(path).json()["questions"][-1]["source"] == {"traceId": "t1", "addedAt": added}


def test_refusals(api, other_api, make):
    """Blank query or missing source 400, unknown or foreign dataset 404 (DATA-054)."""
    dataset = make("old")
    for bad in (None, {}, "x", case(" "), {"main_question": {"query": "q"}}, {**case("q"), "source": None}):
        assert add(api, dataset, bad).status_code == 400
    assert add(api, {"_id": "x" * 21}, case("q", traceId="t")).json() == {"error": "Dataset not found"}
    assert add(other_api, dataset, case("q", traceId="t")).status_code == 404
    assert len(api.get(f"{SDK}/datasets/{dataset['_id']}").json()["questions"]) == 1


def test_same_source_then_same_query(api, make):
    """In this order; a session is another source than its traces; `dedupe: false` stores it (DATA-055, 056, 059, 060)."""
    dataset = make("What is  your Policy?")
    assert add(api, dataset, case("first", traceId="x")).status_code == 201
    again = add(api, dataset, case("what is your policy?", traceId="x"))
    assert again.status_code == 409
    assert again.json()["duplicate"] == {"reason": "same-source", "existingQuery": "first"}
    assert again.json()["error"]
    same = add(api, dataset, case(" what IS\nyour policy? ", sessionId="x"))
    assert add(api, make("caf\u00e9?"), case("CAFE\u0301?", traceId="y")).status_code == 409
    assert same.json()["duplicate"] == {"reason": "same-query", "existingQuery": "What is  your Policy?"}
    assert add(api, dataset, case("other", sessionId="x")).status_code == 201
    assert add(api, dataset, case("another", sessionId="x")).json()["duplicate"]["reason"] == "same-source"
    forced = add(api, dataset, case("what is your policy?", traceId="x"), dedupe=False)
    assert (forced.status_code, forced.json()["caseCount"]) == (201, 4)


def test_only_main_questions_count(api, make):
    """A follow-up is no duplicate (DATA-059)."""
    dataset = make(questions=[{"main_question": {"query": "a"}, "follow_up_questions": [{"query": "b"}]}])
    assert add(api, dataset, case("b", traceId="t")).status_code == 201


PARAPHRASE = "Hi, what's your refund policy?"
RELATED = "How long does a refund take?"


def test_similar_query(api, make, embeddings):
    """At or above the threshold refused, below it not; each text is embedded once (DATA-057, DATA-058)."""
    original = "What is your policy for refunds?"
    embeddings.known |= {original: (1, 0), PARAPHRASE: (0.9, 0.43589), RELATED: (0.7, 0.714143)}
    dataset = make(original)
    response = add(api, dataset, case(PARAPHRASE, traceId="t1"))
    assert response.status_code == 409
    duplicate = response.json()["duplicate"]
    assert duplicate == {
        "reason": "similar-query",
        "existingQuery": original,
        "similarity": pytest.approx(0.9, abs=0.001),
    }
    assert add(api, dataset, case(RELATED, traceId="t2")).status_code == 201
    asked = [text for request in embeddings.requests for text in request.json["input"]]
    assert sorted(asked) == sorted([original, PARAPHRASE, RELATED])
    assert {request.model for request in embeddings.requests} == {"text-embedding-3-small"}
    assert CaseEmbedding.objects.count() == 3
    assert add(api, dataset, case(PARAPHRASE, traceId="t1"), dedupe=False).status_code == 201


def test_exact_duplicates_cost_no_call(api, make, embeddings):
    """The cheap checks come first."""
    assert add(api, make("a"), case("A", traceId="t")).status_code == 409
    assert embeddings.requests == []


def test_without_a_key_or_with_a_failing_provider(api, make, monkeypatch, fake_provider):
    """The third check is left out and the case is stored (DATA-057)."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    dataset = make("What is your policy for refunds?")
    assert add(api, dataset, case(PARAPHRASE, traceId="t1")).status_code == 201
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    fake_provider.respond = lambda request: Answer.failure(400)
    assert add(api, dataset, case("another", traceId="t2")).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_the_same_case_added_at_once_is_stored_once(api, make, embeddings):
    """Eight adds of paraphrases of one question: one is stored, seven are duplicates; others are not held up."""
    dataset = make("unrelated")
    embeddings.known |= {f"refund {n}?": (1, 0.001 * n) for n in range(8)}
    answers: list[int] = []

    def one(n: int) -> None:
        try:
            answers.append(add(api, dataset, case(f"refund {n}?", traceId=f"t{n}")).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == [201] + [409] * 7
    stored = Dataset.objects.get(pk=dataset["_id"])
    assert stored.case_count == len(stored.questions) == 2
    assert stored.versions.count() == 2


@pytest.mark.django_db(transaction=True)
def test_no_add_is_lost(api, make):
    """Different cases added at once are all there, each with its version."""
    dataset = make("first")
    answers: list[int] = []

    def one(n: int) -> None:
        try:
            answers.append(add(api, dataset, case(f"q{n}", traceId=f"t{n}")).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [201] * 8
    stored = Dataset.objects.get(pk=dataset["_id"])
    assert len(stored.questions) == 9
    assert sorted(stored.versions.values_list("version", flat=True)) == list(range(9))


def test_ten_thousand_cases(api, make, django_assert_max_num_queries):
    """An add to a large dataset needs no more queries than one to a small one."""
    dataset = make(*(f"Question {n}?" for n in range(10_000)))
    with django_assert_max_num_queries(12):
        assert add(api, dataset, case("one more", traceId="t")).json()["caseCount"] == 10_001


def test_large_dataset_is_embedded_once(api, make, embeddings):
    """In batches, in order; the next add asks for its own question alone."""
    queries = [f"Question {n}?" for n in range(1500)]
    embeddings.known |= {"Question 1499?": (1, 0), "the last one again": (1, 0.01), "new": (-1, 0)}
    dataset = make(*queries)
    duplicate = add(api, dataset, case("the last one again", traceId="t")).json()["duplicate"]
    assert duplicate["existingQuery"] == "Question 1499?"
    asked = len(embeddings.requests)
    assert add(api, dataset, case("new", traceId="t2")).status_code == 201
    assert [request.json["input"] for request in embeddings.requests[asked:]] == [["new"]]
