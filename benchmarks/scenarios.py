"""What is measured. Each scenario takes a Target and Options and answers a JSON object; none of them judges."""

from __future__ import annotations

import json
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import probes, target
from benchmarks.load import Stream, drive
from benchmarks.payloads import WORDS, JsonSpans, OtlpBatches
from benchmarks.target import Target, path_part

JSON_PATH, OTLP_PATH = "/ingest/traces", "/otel/v1/traces"
JSON_SENDERS, OTLP_SENDERS, READERS = 32, 8, 4
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Options:
    """How long and how much."""

    seconds: float = 15.0
    read_seconds: float = 5.0
    spans: int = 100_000
    days: int = 7
    rounds: int = 20
    disk_spans: int = 100_000

    @classmethod
    def quick(cls) -> Options:
        """About two minutes for everything."""
        return cls(seconds=4.0, read_seconds=1.0, spans=20_000, rounds=3, disk_spans=20_000)


def _run_number() -> int:
    return time.time_ns() // 1_000_000 & 0xFFFFFFFF


def _json_stream(server: Target, source: JsonSpans, senders: int = JSON_SENDERS) -> Stream:
    return Stream(lambda: server.write(JSON_PATH, source.next(), _JSON), senders)


def _otlp_stream(server: Target, source: OtlpBatches, senders: int = OTLP_SENDERS) -> Stream:
    return Stream(lambda: server.write(OTLP_PATH, source.next(), _PROTOBUF), senders)


def _ingest(server: Target, stream: Stream, per_request: int, seconds: float, mean_bytes: int) -> dict[str, Any]:
    before = server.cpu_seconds()
    drive(server.host, server.port, [stream], seconds=seconds)
    stored = len(stream.outcome.latencies) * per_request
    spent = server.quiet_cpu_seconds() - before
    return {
        **stream.outcome.summary(),
        "spans": stored,
        "spansPerSecond": round(stored / stream.outcome.seconds, 1) if stream.outcome.seconds else 0,
        "serverCpuSeconds": round(spent, 2) if server.pid else None,
        "spansPerCpuSecond": round(stored / spent, 1) if spent > 0 else None,
        "bodyBytes": mean_bytes,
    }


def ingest_json(server: Target, options: Options) -> dict[str, Any]:
    """32 senders, one span of about 2 KB a request."""
    source = JsonSpans(run=_run_number())
    return _ingest(server, _json_stream(server, source), 1, options.seconds, source.mean_bytes)


def ingest_otlp(server: Target, options: Options) -> dict[str, Any]:
    """8 senders, batches of 50 spans as protobuf."""
    source = OtlpBatches(run=_run_number())
    return _ingest(server, _otlp_stream(server, source), source.spans_per_body, options.seconds, source.mean_bytes)


def seed(server: Target, options: Options) -> dict[str, Any]:
    """Fill up to `spans` stored spans, laid out over the last `days`, as fast as the server takes OTLP batches."""
    stored = server.get("/monitor/metrics?window=90d").get("totals", {}).get("spans", 0)
    missing = max(0, options.spans - stored)
    source = OtlpBatches(run=_run_number(), spread_seconds=options.days * _DAY)
    began = time.perf_counter()
    sent = 0
    while sent < missing:
        stream = _otlp_stream(server, source)
        stream.limit = -(-(missing - sent) // source.spans_per_body)
        drive(server.host, server.port, [stream], seconds=60)
        if not stream.outcome.latencies:
            raise SystemExit(f"seeding stands still: {dict(stream.outcome.statuses)}")
        sent += len(stream.outcome.latencies) * source.spans_per_body
    server.quiet_cpu_seconds(60)
    return {"spans": sent, "seconds": round(time.perf_counter() - began, 1)}


def _samples(server: Target, pages: int = 6) -> tuple[list[str], list[str]]:
    """Trace ids and session ids of the newest traces."""
    traces: list[str] = []
    sessions: list[str] = []
    cursor = ""
    for _ in range(pages):
        page = server.get(f"/ingest/traces?limit=50{cursor}")
        traces += [trace["_id"] for trace in page["traces"]]
        sessions += [trace["sessionId"] for trace in page["traces"] if trace.get("sessionId")]
        if not page.get("nextCursor"):
            break
        cursor = f"&cursor={page['nextCursor']}"
    return traces, sorted(set(sessions))


def _measure(server: Target, paths: list[str], options: Options) -> dict[str, Any]:
    requests = [server.read(path) for path in paths]
    random.Random(5).shuffle(requests)
    position = 0

    def following() -> bytes:
        nonlocal position
        position += 1
        return requests[position % len(requests)]

    drive(server.host, server.port, [Stream(following, READERS)], seconds=min(0.4, options.read_seconds))
    stream = Stream(following, READERS)
    before = server.cpu_seconds()
    drive(server.host, server.port, [stream], seconds=options.read_seconds)
    spent = server.cpu_seconds() - before
    good = len(stream.outcome.latencies)
    return stream.outcome.summary() | {"requestsPerCpuSecond": round(good / spent, 1) if spent > 0 else None}


def reads(server: Target, options: Options) -> dict[str, Any]:
    """What dashboards and clients poll, four readers at once."""
    traces, sessions = _samples(server)
    if not traces:
        return {"skipped": "nothing is stored; seed first"}
    cases = {
        "trace list of 50": ["/ingest/traces?limit=50"],
        "trace list of 50, older pages": [f"/ingest/traces?limit=50&cursor={trace}" for trace in traces],
        "trace list of 50, one framework": ["/ingest/traces?limit=50&framework=openai"],
        "trace detail": [f"/ingest/traces/{trace}" for trace in traces],
        "session spans": [f"/ingest/sessions/{path_part(session)}/spans" for session in sessions],
        "session list": ["/agent-monitoring/sessions?window=7d"],
        "kpis": ["/monitor/kpis?window=7d"],
        "kpis 30d": ["/monitor/kpis?window=30d"],
        "trend": ["/agent-monitoring/trend?window=7d"],
        "cost trend": ["/agent-monitoring/cost-trend?window=7d"],
        "model comparison": ["/agent-monitoring/model-comparison?window=7d"],
        "top failing": ["/agent-monitoring/top-failing?window=7d"],
        "metrics 1d": ["/monitor/metrics?window=1d"],
        "metrics 7d": ["/monitor/metrics?window=7d"],
        "metrics 7d, failed": ["/monitor/metrics?window=7d&status=error"],
    }
    stored = server.get("/ingest/traces?limit=1")["totalCount"]
    return {"traces": stored} | {name: _measure(server, paths, options) for name, paths in cases.items()}


def search(server: Target, options: Options) -> dict[str, Any]:
    """Full-text search of the trace list: a frequent word, two words, a rare one."""
    _, sessions = _samples(server)
    rng = random.Random(9)
    cases = {
        "one frequent word": [f"/ingest/traces?limit=50&search={word}" for word in rng.sample(WORDS, 20)],
        "two words": [
            f"/ingest/traces?limit=50&search={first}%20{second}"
            for first, second in (rng.sample(WORDS, 2) for _ in range(20))
        ],
        "a session id": [f"/ingest/traces?limit=50&search={path_part(session)}" for session in sessions[:50]] or [""],
    }
    return {name: _measure(server, paths, options) for name, paths in cases.items() if paths != [""]}


def mixed(server: Target, options: Options) -> dict[str, Any]:
    """JSON ingest by 32 senders while two dashboards poll the list and the KPIs without a pause."""
    source = JsonSpans(run=_run_number())
    writers = _json_stream(server, source)
    polled: Iterator[bytes] = _cycle([server.read("/ingest/traces?limit=50"), server.read("/monitor/kpis?window=7d")])
    readers = Stream(lambda: next(polled), 2)
    before = server.cpu_seconds()
    drive(server.host, server.port, [writers, readers], seconds=options.seconds)
    spent = server.quiet_cpu_seconds() - before
    stored = len(writers.outcome.latencies)
    return {
        "ingest": writers.outcome.summary() | {"spansPerSecond": round(stored / writers.outcome.seconds, 1)},
        "reads": readers.outcome.summary(),
        "serverCpuSeconds": round(spent, 2) if server.pid else None,
    }


def _cycle(items: list[bytes]) -> Iterator[bytes]:
    while True:
        yield from items


def replays(server: Target, options: Options) -> dict[str, Any]:
    """The same spans sent again, eight times in parallel: nothing is stored twice."""
    source = JsonSpans(run=_run_number())
    distinct = 500
    start_ns = time.time_ns()
    before = server.get("/ingest/traces?limit=1")["totalCount"]
    number = 0

    def following() -> bytes:
        nonlocal number
        number += 1
        return server.write(JSON_PATH, source.body(number // 8 % distinct, start_ns), _JSON)

    stream = Stream(following, JSON_SENDERS, limit=distinct * 8)
    drive(server.host, server.port, [stream], seconds=60)
    after = server.get("/ingest/traces?limit=1")["totalCount"]
    return {
        "sent": len(stream.outcome.latencies),
        "distinct": distinct,
        "stored": after - before,
        "duplicates": after - before - distinct,
        "errors": stream.outcome.summary()["errors"],
    }


def memory(server: Target, options: Options) -> dict[str, Any]:
    """Memory of all processes of the server, now."""
    return probes.memory_mb(server.pid) or {"skipped": "needs --pid"}


def startup(options: Options, db_url: str = "") -> dict[str, Any]:
    """Seconds from start to the first healthy answer: a fresh home, then the same one again."""
    with tempfile.TemporaryDirectory(prefix="agentx-bench-") as folder:
        result = {}
        for name in ("fresh", "again"):
            with target.own_server(home=Path(folder), db_url=db_url) as server:
                result[f"{name}Seconds"] = server.ready_seconds
                time.sleep(1.0)
                result[f"{name}Idle"] = probes.memory_mb(server.pid)
        return result


def disk(options: Options) -> dict[str, Any]:
    """MB on disk for each 100,000 spans, on SQLite: JSON spans and OTLP spans in a fresh home each."""
    result: dict[str, Any] = {}
    for name in ("json", "otlp"):
        with tempfile.TemporaryDirectory(prefix="agentx-bench-") as folder:
            home = Path(folder)
            with target.own_server(home=home) as server:
                empty = probes.disk_bytes(home=home, db_url="") or 0
                if name == "json":
                    stream, per_request = _json_stream(server, JsonSpans(run=_run_number())), 1
                else:
                    stream, per_request = _otlp_stream(server, OtlpBatches(run=_run_number())), 50
                stream.limit = options.disk_spans // per_request
                drive(server.host, server.port, [stream], seconds=120)
                server.quiet_cpu_seconds()
            # Stopped: the write-ahead log is back in the file.
            spans = len(stream.outcome.latencies) * per_request
            used = (probes.disk_bytes(home=home, db_url="") or 0) - empty
            result[name] = {"spans": spans, "mbPer100k": round(used / max(spans, 1) * 100_000 / 1e6, 1)}
    return result


def kills(options: Options, db_url: str = "") -> dict[str, Any]:
    """kill -9 of all processes under load, again and again; then every acknowledged span is asked for by a replay.

    `lost` counts acknowledged spans the server no longer knew.
    """
    acknowledged = lost = 0
    with tempfile.TemporaryDirectory(prefix="agentx-bench-") as folder:
        home = Path(folder)
        for round_number in range(options.rounds):
            source = JsonSpans(run=_run_number())
            server = target.start(home, db_url=db_url)
            good, last = _load_until_killed(server, source, random.Random(round_number).uniform(0.4, 1.4))
            acknowledged += len(good)
            with target.own_server(home=home, db_url=db_url) as again:
                lost += sum(not again.post(JSON_PATH, source.body(number, last))["deduped"] for number in sorted(good))
    return {"rounds": options.rounds, "acknowledged": acknowledged, "lost": lost}


def _load_until_killed(server: Target, source: JsonSpans, seconds: float) -> tuple[set[int], int]:
    """Numbers of the spans that were acknowledged before the kill, and a start time for their replay.

    Each sender sends under numbers of its own, so that an answer names its span.
    """
    good: set[int] = set()
    start_ns = time.time_ns()
    streams = []
    for sender in range(16):
        streams.append(_numbered_stream(server, source, sender, start_ns, good))
    killer = threading.Timer(seconds, lambda: server.stop(signal.SIGKILL))
    killer.start()
    drive(server.host, server.port, streams, seconds=seconds)
    killer.join()
    return good, start_ns


def _numbered_stream(server: Target, source: JsonSpans, sender: int, start_ns: int, good: set[int]) -> Stream:
    last = -1

    def following() -> bytes:
        nonlocal last
        last += 1
        return server.write(JSON_PATH, source.body(sender << 20 | last, start_ns), _JSON)

    def acknowledged(body: bytes) -> None:
        if json.loads(body).get("trace_id"):
            good.add(sender << 20 | last)

    return Stream(following, 1, on_good=acknowledged)


ON_SERVER: dict[str, Callable[[Target, Options], dict[str, Any]]] = {
    "ingest-json": ingest_json,
    "ingest-otlp": ingest_otlp,
    "mixed": mixed,
    "replays": replays,
    "seed": seed,
    "reads": reads,
    "search": search,
    "memory": memory,
}
