"""No library at all: a root and a child over HTTP. Ids make it safe to send again: what is stored is stored once."""

import json
import os
import time
import urllib.request

BASE = os.environ["AGENTX_API_BASE_URL"]
HEADERS = {"x-api-key": os.environ["AGENTX_API_KEY"], "content-type": "application/json"}


def send(span: dict) -> dict:
    """POST one span; 200 means it is stored."""
    request = urllib.request.Request(f"{BASE}/ingest/traces", json.dumps(span).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def main() -> None:
    """Two spans, each sent twice; the child goes first, for order does not matter."""
    run = f"plain-{time.time_ns()}"
    child = {"name": "search", "spanKind": "tool", "spanId": f"{run}-1", "parentSpanId": run, "output": ["a", "b"]}
    root = {
        "name": "plain-agent",
        "spanKind": "agent",
        "spanId": run,
        "sessionId": run,
        "input": "find it",
        "output": "found it",
        "latencyMs": 120,
    }
    for span in (child, root, child, root):
        answer = send(span)
        print(span["name"], answer["traceId"], "already stored" if answer["deduped"] else "stored")


if __name__ == "__main__":
    main()
