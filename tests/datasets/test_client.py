"""The published client against a running server: build, import, read, delete; and drafting through a real provider."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from agentx import AgentX

from tests.support.providers import Answer, running_provider
from tests.support.server import running_server


@pytest.fixture(scope="module")
def provider():
    with running_provider() as found:
        yield found


@pytest.fixture(scope="module")
def server(provider):
    env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.openai_url}
    with running_server(env=env) as running:
        yield running


@pytest.fixture
def datasets(server):
    return AgentX(api_key=server.key, base_url=server.api_url).evaluations.datasets


@pytest.fixture
def http(server):
    with httpx.Client(base_url=server.api_url, headers={"x-api-key": server.key}, timeout=30) as client:
        yield client


def full_builder(datasets: Any) -> Any:
    with pytest.warns(UserWarning, match="sovereignty"):
        return (
            datasets.builder(
                "Support",
                description="d",
                number_of_requests=2,
                acceptance_criteria="a",
                rejection_criteria="r",
                evaluation_criteria="e",
                judge_prompt="{input}",
                judge_model="gpt-5.6-luna",
                vector_similarity=True,
                similarity_model="text-embedding-3-small",
                jaccard_similarity=True,
                bleu_score=True,
                rouge_score=True,
                sovereignty_models=["a", "b"],
                code_scorers=[{"code": "return 1"}, {"name": "empty", "code": ""}],
            )
            .add_case(
                "How do I reset?",
                expected_results="Click.",
                expected_capabilities=["reset"],
                expected_knowledge_base=["kb"],
                expected_delegations=["id"],
                follow_up_questions=[{"query": "And then?"}],
                judge_guideline="strict",
                smoke_test_count=3,
                smoke_test_guidance="slang",
                expected_tools=[],
                trajectory_match_mode="subset",
                expected_retrieval_context=["one"],
                splits=["smoke"],
            )
            .add_case("😀?")
            .publish()
        )


def test_build_read_import_delete(datasets):
    """Everything the builder says is there on every read, and in a copy (DATA-029, SDK-036, SDK-037)."""
    made = full_builder(datasets)
    read = datasets.get(made.id)
    assert read == made
    first, second = read.questions
    assert first.main_question.expected_trajectory == {"tools": [], "mode": "subset"}
    assert first.main_question.smoke_test.count == 3
    assert first.main_question.splits == ["smoke"]
    assert first.follow_up_questions[0].query == "And then?"
    assert second.main_question.query == "😀?"
    assert read.number_of_requests == 2
    assert read.sovereignty_models == ["a", "b"]
    assert read.judge_model == "gpt-5.6-luna"
    assert [scorer["name"] for scorer in read.code_scorers] == ["Code scorer 1"]
    copy = datasets.import_dataset(read, name="Copy")
    assert copy.id != read.id
    assert copy.model_copy(update={"id": read.id, "name": read.name}) == read
    assert [item.id for item in datasets.list()][:2] == [copy.id, made.id]
    assert datasets.delete(made.id) is None
    assert made.id not in [item.id for item in datasets.list()]
    with pytest.raises(Exception, match="Dataset not found"):
        datasets.get(made.id)


def test_from_csv_and_dataframe(datasets, tmp_path):
    """One ordinary create each (DATA-030)."""
    path = tmp_path / "cases.csv"
    path.write_text(
        'query,expected_results,expected_capabilities\n"a, b",x,one;two\n,skipped,\nc,,\n', encoding="utf-8"
    )
    made = datasets.from_csv(str(path), "From CSV").publish()
    assert [item.main_question.query for item in made.questions] == ["a, b", "c"]
    assert made.questions[0].main_question.expected_capabilities == ["one", "two"]
    assert made.code_scorers is None

    class Frame:
        """What the client uses of a DataFrame."""

        class columns:
            tolist = staticmethod(lambda: ["query", "expected_results"])

        rows = ({"query": "q", "expected_results": "x"}, {"query": "nan", "expected_results": "y"})

        def iterrows(self):
            return enumerate(self.rows)

    made = datasets.from_dataframe(Frame(), "From a frame").publish()
    assert [item.main_question.query for item in made.questions] == ["q"]


def test_import_of_the_export(datasets, http):
    """A line of the export through the client's own import (DATA-044)."""
    made = full_builder(datasets)
    rows = [line for line in http.get("/export/datasets").text.splitlines() if made.id in line]
    copy = datasets.import_dataset(httpx.Response(200, text=rows[0]).json())
    assert copy.model_copy(update={"id": made.id}) == made
    answer = http.post("/evaluate/datasets/import", content=rows[0], headers={"content-type": "application/json"})
    assert answer.status_code == 201


def test_large_dataset(datasets):
    """Ten thousand cases and a query of a megabyte."""
    builder = datasets.builder("Large")
    for n in range(10_000):
        builder.add_case(f"Question {n}?", expected_results=f"Answer {n}.", splits=["full"])
    builder.add_case("x" * 1_000_000)
    made = builder.publish()
    read = datasets.get(made.id)
    assert len(read.questions) == 10_001
    assert len(read.questions[-1].main_question.query) == 1_000_000
    datasets.delete(made.id)


def test_body_over_the_limit_is_refused(http):
    """With a readable 413."""
    response = http.post("/evaluate/datasets", json={"name": "n", "questions": ["x" * 11_000_000]})
    assert response.status_code == 413
    assert "10 MB" in response.json()["error"]


def test_production_to_dataset(datasets, http, provider):
    """Record, preview, suggest, add; the same again from many clients at once is one case (DATA-045..060)."""
    for query, at in (("Second?", 2), ("First?", 1)):
        span = {"name": "agent", "input": query, "output": "out", "sessionId": "s1", "latencyMs": 1}
        span["startedAtUnixNano"] = str(1_790_000_000_000_000_000 + at)
        assert http.post("/ingest/traces", json=span).status_code < 300
    preview = http.post("/evaluate/datasets/case-preview", json={"sessionId": "s1"}).json()
    assert preview["case"]["main_question"]["query"] == "First?"
    provider.answer(Answer.of_json({"expected": "E", "rationale": "R"}))
    suggestion = http.post("/evaluate/datasets/suggest-expected", json={"query": "First?", "actualOutput": "out"})
    assert suggestion.json() == {"expected": "E", "rationale": "R"}
    preview["case"]["main_question"]["expectedResults"] = "E"
    dataset = datasets.builder("Golden").add_case("unrelated").publish()
    path = f"/custom-agent-evaluations/datasets/{dataset.id}/cases"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: http.post(path, json={"case": preview["case"]}), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert {answer.json()["duplicate"]["reason"] for answer in answers if answer.status_code == 409} == {"same-source"}
    stored = datasets.get(dataset.id)
    assert [item.main_question.query for item in stored.questions] == ["unrelated", "First?"]
    assert stored.questions[1].main_question.expected_results == "E"
    assert [item.query for item in stored.questions[1].follow_up_questions] == ["Second?"]
