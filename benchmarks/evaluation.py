"""What an evaluation run costs beside its judge: one JSON line a figure.

    python -m benchmarks.evaluation [--db-url postgres://...] [--cases 200] [--delay 0.2] [--results 10000]

A server of its own in a temporary home, and a provider on loopback that answers after `--delay` seconds. The client's
pattern: batches of ten, one after the other. Nothing leaves this machine.

- `judged-run`: seconds for all cases, beside what the provider alone takes for as many calls, eight at a time.
- `overhead`: the same with a provider that answers at once, as milliseconds a result.
- `open-run`: milliseconds to read a run of `--results` results over the API, first and later times.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from tests.support.providers import Answer, FakeProvider, running_provider
from tests.support.server import ROOT, RunningServer, clean_environment, running_server

SDK = "/api/v1/custom-agent-evaluations"
BATCH = 10
PROVIDER_CALLERS = 8

_FILL = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()
from apps.evaluations.models import Result, Run
from apps.evaluations.services import finalize
from apps.projects.models import Project
count = int(sys.argv[1])
questions = [{"main_question": {"query": f"Question {n} about orders?", "expectedResults": "x" * 120}} for n in range(count)]
run = Run.objects.create(
    project=Project.objects.first(), dataset_id="benchmark", snapshot={"questions": questions},
    grader={"primary": {"id": "p", "name": "Primary"}, "extras": [], "group": None},
)
Result.objects.bulk_create(
    [
        Result(
            run=run, idempotency_key=f"{run.pk}:case-{n}:run-1", case_id=f"case-{n}", question_index=n, status="scored",
            rating=float(n % 11), justification="The answer is right and complete. " * 5,
            input={"query": f"Question {n} about orders?"}, output={"text": "An answer of some length. " * 12},
            latency_ms=1200.0, input_tokens=100, output_tokens=50, code_scorer_results=[{"name": "length", "score": 1}],
        )
        for n in range(count)
    ],
    batch_size=500,
)
finalize.finalize(project=run.project, run_id=run.pk)
print(run.pk)
"""


class Client:
    """One kept connection to the server."""

    def __init__(self, server: RunningServer) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self._headers = {"x-api-key": server.key, "content-type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """The body of an answer; raises when it is no success."""
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {answer[:200]!r}")
        return answer


def _judged(client: Client, dataset: str, cases: int) -> float:
    """Seconds to submit answers to every case."""
    run = json.loads(client.ask("POST", f"{SDK}/runs", {"datasetId": dataset}))["runId"]
    results = [
        {
            "idempotencyKey": f"{run}:case-{n}:run-1",
            "questionIndex": n,
            "input": {"query": f"Question {n}?"},
            "output": {"text": "An answer of some length. " * 12},
        }
        for n in range(cases)
    ]
    began = time.perf_counter()
    for start in range(0, cases, BATCH):
        client.ask(
            "POST", f"{SDK}/runs/{run}/results", {"batchId": str(start), "results": results[start : start + BATCH]}
        )
    return time.perf_counter() - began


def _provider_alone(provider: FakeProvider, cases: int) -> float:
    """Seconds the provider takes for as many calls on eight kept connections."""
    parts = urlsplit(provider.openai_url)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]})

    def work(count: int) -> None:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        for _ in range(count):
            connection.request("POST", f"{parts.path}/chat/completions", body, {"content-type": "application/json"})
            connection.getresponse().read()

    began = time.perf_counter()
    with ThreadPoolExecutor(PROVIDER_CALLERS) as pool:
        list(pool.map(work, [cases // PROVIDER_CALLERS] * PROVIDER_CALLERS))
    return time.perf_counter() - began


def _open(server: RunningServer, client: Client, results: int) -> dict[str, Any]:
    extra = {"AGENTX_DB_URL": server.db_url} if server.db_url else {}
    filled = subprocess.run(
        [sys.executable, "-c", _FILL, str(results)],
        cwd=ROOT,
        env=clean_environment(server.home, **extra),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    run = filled.stdout.split()[-1]
    taken = []
    for _ in range(11):
        began = time.perf_counter()
        size = len(client.ask("GET", f"{SDK}/runs/{run}"))
        taken.append((time.perf_counter() - began) * 1000)
    return {
        "results": results,
        "megabytes": round(size / 1e6, 1),
        "firstMs": round(taken[0], 1),
        "medianMs": round(statistics.median(taken[1:]), 1),
    }


def main() -> None:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluation", description=__doc__)
    parser.add_argument("--db-url", default="")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--delay", type=float, default=0.2)
    parser.add_argument("--results", type=int, default=10_000)
    arguments = parser.parse_args()
    delay = arguments.delay
    with running_provider() as provider:

        def respond(_: object) -> Answer:
            return Answer.of_json({"rating": 8, "justification": "Right."}, delay=delay)

        provider.respond = respond
        env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.openai_url, "AGENTX_RATE_LIMIT": "off"}
        with running_server(env=env, db_url=arguments.db_url or None) as server:
            client = Client(server)
            questions = [{"main_question": {"query": f"Question {n}?"}} for n in range(arguments.cases)]
            dataset = json.loads(client.ask("POST", f"{SDK}/datasets", {"name": "b", "questions": questions}))["_id"]
            _judged(client, dataset, BATCH)
            alone = _provider_alone(provider, arguments.cases)
            seconds = _judged(client, dataset, arguments.cases)
            figures = {
                "cases": arguments.cases,
                "seconds": round(seconds, 2),
                "providerAloneSeconds": round(alone, 2),
                "ratio": round(seconds / alone, 3),
            }
            print(json.dumps({"scenario": "judged-run", **figures}), flush=True)
            delay = 0.0
            each = _judged(client, dataset, arguments.cases) / arguments.cases
            print(json.dumps({"scenario": "overhead", "msPerResult": round(each * 1000, 2)}), flush=True)
            print(json.dumps({"scenario": "open-run", **_open(server, client, arguments.results)}), flush=True)


if __name__ == "__main__":
    main()
