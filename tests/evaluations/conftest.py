"""A project with a dataset, a judge that says what the test scripts, and helpers that submit results over HTTP."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from tests.support.providers import Answer, FakeProvider, ProviderRequest
from tests.support.reads import api, other_api, other_project, span  # noqa: F401

SDK = "/custom-agent-evaluations"


@pytest.fixture
def judge(fake_provider, monkeypatch) -> FakeProvider:
    """The OpenAI of this test: rates every answer by the number in it (`rate 7`), 8 when there is none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    fake_provider.respond = rate
    return fake_provider


def rate(request: ProviderRequest) -> Answer:
    """The verdict of a judge who reads `rate <number>` in the answer; `unusable` makes it say nothing usable."""
    text = json.dumps(request.json)
    if "unusable" in text:
        return Answer("I would rather not say.")
    found = re.search(r"rate (\d+(?:\.\d+)?)", text)
    rating = float(found.group(1)) if found else 8
    return Answer.of_json({"rating": rating, "justification": f"It says {rating:g}."})


def verdicts(judge: FakeProvider) -> int:
    """How often the judge was asked."""
    return sum(1 for request in judge.requests if request.dialect in ("chat", "responses", "messages", "gemini"))


@pytest.fixture
def make_dataset(api):  # noqa: F811
    """Creates a dataset of questions and gives its document; a question is a text or a `main_question`."""

    def create(*questions: Any, **body: Any) -> dict[str, Any]:
        cases = [
            {"main_question": {"query": item} if isinstance(item, str) else item}
            for item in questions or ("What is one?", "What is two?", "What is three?")
        ]
        response = api.post(f"{SDK}/datasets", {"name": "Support", "questions": cases, **body})
        assert response.status_code == 201, response.content
        return response.json()

    return create


@pytest.fixture
def dataset(make_dataset) -> dict[str, Any]:
    """Three questions."""
    return make_dataset()


@pytest.fixture
def start(api, dataset):  # noqa: F811
    """Starts a run and gives its id."""

    def create(dataset_id: str | None = None, **body: Any) -> str:
        response = api.post(f"{SDK}/runs", {"datasetId": dataset_id or dataset["_id"], **body})
        assert response.status_code == 201, response.content
        return response.json()["runId"]

    return create


_keys = itertools.count(1)


def result(text: str | None = "rate 8", question: int = 0, **more: Any) -> dict[str, Any]:
    """One result as a client sends it."""
    body: dict[str, Any] = {
        "idempotencyKey": f"key-{next(_keys)}",
        "questionIndex": question,
        "runNumber": 1,
        "input": {"query": f"question {question}"},
    }
    if text is not None:
        body["output"] = {"text": text}
    return {**body, **more}


@pytest.fixture
def submit(api):  # noqa: F811
    """Submits results to a run and gives the reply."""

    def send(run_id: str, *results: dict[str, Any], status: int = 200) -> dict[str, Any]:
        response = api.post(f"{SDK}/runs/{run_id}/results", {"batchId": "batch-1", "results": list(results)})
        assert response.status_code == status, response.content
        return response.json()

    return send


@pytest.fixture
def finished(api, start, submit):  # noqa: F811
    """A completed run with these answers, one a question; gives its id."""

    def create(*texts: str | None, dataset_id: str | None = None, **body: Any) -> str:
        run_id = start(dataset_id, **body)
        rows = [
            result(text, at) if text is not None else result(None, at, error={"type": "E", "message": "broke"})
            for at, text in enumerate(texts)
        ]
        if rows:
            submit(run_id, *rows)
        assert api.post(f"{SDK}/runs/{run_id}/finalize", {}).status_code == 200
        return run_id

    return create
