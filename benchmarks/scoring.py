"""What judging costs this server itself: code scorers a second, and the overhead of scoring one answer without a judge.

    python -m benchmarks.scoring            # prints a line for each figure

It works on a throw-away home with a SQLite file; no provider is called.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

CODE = """
const wordCount = output.trim().split(/\\s+/).length;
if (wordCount <= 60) { return { score: 1, reasoning: `Concise: ${wordCount} words.` }; }
return { score: 0.5, reasoning: `Wordy: ${wordCount} words.` };
"""
_WORDS = "Refunds are available within thirty days of delivery for unused items in their own box. "


def _timed(work: Callable[[], Any], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def _say(name: str, taken: list[float]) -> None:
    p95 = statistics.quantiles(taken, n=20)[-1]
    print(f"{name}: median {statistics.median(taken):.2f} ms, p95 {p95:.2f} ms, {len(taken)} runs")


def code_scorers(seconds: float = 5.0) -> None:
    """Runs a second of a documented code scorer from one and from four threads."""
    from apps.scorers.sandbox import run_javascript

    names = {"input": "q", "output": _WORDS * 4, "scores": {"rating": 8, "judges": {}}}
    run_javascript(CODE, names)
    for threads in (1, 4):
        end = time.perf_counter() + seconds

        def work(until: float = end) -> int:
            count = 0
            while time.perf_counter() < until:
                assert run_javascript(CODE, names).score == 1.0
                count += 1
            return count

        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(lambda _: work(), range(threads)))
        print(f"code scorers, {threads} thread(s): {done / seconds:.0f} runs/s")


def answers(times: int = 300) -> None:
    """Time of `score_answer` when no judge can be asked: all that is left is this server's own work."""
    from apps.projects.services.projects import ensure_default_project
    from apps.scorers.scoring import Answer, score_answer
    from apps.tracing.ingest.pipeline import store_spans
    from apps.tracing.ingest.records import SpanIn

    project, _ = ensure_default_project()
    calls = b'[{"name":"lookup","input":{"id":1},"output":"paid","success":true}]'
    spans = [SpanIn(name="agent", span_id="root", tool_calls=calls)]
    spans += [
        SpanIn(name="lookup", kind="tool", span_id=f"t{n}", parent_span_id="root", input=b'{"id":1}', output=b'"paid"')
        for n in range(20)
    ]
    spans.append(SpanIn(name="kb", kind="retrieval", span_id="kb", parent_span_id="root", output=b'["one","two"]'))
    trace_id = store_spans(project, spans)[0].id
    member = {"id": "m" * 21, "name": "Quality", "kind": "judge", "judgeModel": "gpt-4o-mini"}
    metrics = {"vector": None, "jaccard": True, "bleu": True, "rouge": True}
    case = {"query": "q", "expectedResults": _WORDS * 3}
    checks = {"expectedTrajectory": {"tools": ["lookup"]}, "expectedRetrievalContext": ["one"]}
    answer = Answer("q", _WORDS * 4)
    linked = Answer("q", _WORDS * 4, trace_id=trace_id)
    plain: dict[str, Any] = {"primary": member}
    full = {"primary": member | {"metrics": metrics, "codeScorers": [{"name": "length", "code": CODE}] * 2}}
    _say("answer alone", _timed(lambda: score_answer(project, plain, case, answer), times))
    _say("with three metrics and two code scorers", _timed(lambda: score_answer(project, full, case, answer), times))
    _say("and a linked trace of 22 rows", _timed(lambda: score_answer(project, full, case | checks, linked), times))


def main() -> None:
    """Set up a home of its own and measure."""
    home = tempfile.mkdtemp(prefix="agentx-bench-")
    os.environ.update(AGENTX_HOME=home, AGENTX_DB_URL="", DJANGO_SETTINGS_MODULE="config.settings")
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        del os.environ[name]
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    code_scorers()
    answers()


if __name__ == "__main__":
    main()
