"""What /metrics shows: operational counters of this process, never content, keys or projects (source 1:8306-8321)."""

from __future__ import annotations

import os
import resource
import sys
import time

from apps.tracing.ingest import pipeline

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

# name, type, help, attribute of the ingest pipeline's counters
INGEST = (
    ("agentx_ingest_queue_depth", "gauge", "Spans queued for the next batch.", "depth"),
    ("agentx_ingest_queue_max_depth", "gauge", "Highest queue depth since the start.", "max_depth"),
    ("agentx_ingest_spans_total", "counter", "Spans accepted into the queue.", "spans"),
    ("agentx_ingest_spans_stored_total", "counter", "Spans durably stored.", "stored"),
    ("agentx_ingest_spans_deduped_total", "counter", "Replays dropped by the idempotency key.", "deduped"),
    ("agentx_ingest_spans_rejected_total", "counter", "Spans shed with 429 on a full queue.", "rejected"),
    (
        "agentx_ingest_spans_dropped_total",
        "counter",
        "Spans lost after a failed batch was retried and failed again.",
        "dropped",
    ),
    ("agentx_ingest_batches_total", "counter", "Batches flushed.", "batches"),
)

_started = time.monotonic()


def render() -> str:
    """The page in Prometheus' text format 0.0.4."""
    counters = pipeline.stats()
    lines: list[str] = []
    for name, kind, text, key in INGEST:
        lines += _metric(name, kind, text, getattr(counters, key))
    lines += _metric(
        "agentx_process_resident_memory_bytes", "gauge", "Resident memory of the server process.", resident_bytes()
    )
    lines += _metric(
        "agentx_process_uptime_seconds",
        "gauge",
        "Seconds since the process started.",
        round(time.monotonic() - _started, 3),
    )
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, text: str, value: float) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value}"]


def resident_bytes() -> int:
    """Resident memory now; the peak where the system does not tell (not Linux)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
