"""What holds for every request of a running server: limits, ids, body size, error shapes, health, metrics."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import re
import socket
import threading
import time
import zlib

import pytest

from tests.support.server import RunningServer, running_server


@pytest.fixture(scope="module")
def server():
    with running_server(env={"AGENTX_METRICS_TOKEN": "scrape-me"}) as running:
        yield running


class Answer:
    def __init__(self, raw: http.client.HTTPResponse) -> None:
        self.status = raw.status
        self.headers = raw.headers
        self.body = raw.read()

    @property
    def json(self):
        return json.loads(self.body)


def ask(server: RunningServer, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.request(method, path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_health_is_exact(server):
    answer = ask(server, "GET", "/health")
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')
    assert answer.headers["content-type"] == "application/json"


def test_metrics_need_their_token_and_show_only_operational_values(server):
    assert ask(server, "GET", "/metrics").status == 401
    assert ask(server, "GET", "/metrics", authorization="Bearer wrong").json == {
        "error": "Invalid or missing metrics token"
    }
    answer = ask(server, "GET", "/metrics", authorization="bearer scrape-me")  # the scheme has no case
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.body.decode()
    for name, kind in {
        "agentx_ingest_queue_depth": "gauge",
        "agentx_ingest_queue_max_depth": "gauge",
        "agentx_ingest_spans_total": "counter",
        "agentx_ingest_spans_stored_total": "counter",
        "agentx_ingest_spans_deduped_total": "counter",
        "agentx_ingest_spans_rejected_total": "counter",
        "agentx_ingest_spans_dropped_total": "counter",
        "agentx_ingest_batches_total": "counter",
        "agentx_process_resident_memory_bytes": "gauge",
        "agentx_process_uptime_seconds": "gauge",
    }.items():
        assert f"# TYPE {name} {kind}\n" in text
        assert re.search(rf"^{name} [0-9.]+$", text, re.M)
    assert server.key not in text


def test_counters_rise_with_what_is_stored(server):
    def value(name: str) -> float:
        text = ask(server, "GET", "/metrics", authorization="Bearer scrape-me").body.decode()
        found = re.search(rf"^{name} ([0-9.]+)$", text, re.M)
        assert found
        return float(found[1])

    before = {n: value(f"agentx_ingest_spans_{n}total") for n in ("", "stored_", "deduped_")}
    body = json.dumps({"name": "counted", "spanId": "counted-once"}).encode()
    for _ in range(2):
        answer = ask(
            server, "POST", "/api/v1/ingest/traces", body, x_api_key=server.key, content_type="application/json"
        )
        assert answer.status == 200
    assert value("agentx_ingest_spans_total") == before[""] + 2
    assert value("agentx_ingest_spans_stored_total") == before["stored_"] + 1
    assert value("agentx_ingest_spans_deduped_total") == before["deduped_"] + 1


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_an_unknown_api_path_is_json_404(server, method):
    answer = ask(server, method, "/api/v1/nope")
    assert (answer.status, answer.json) == (404, {"error": "Not found"})


def test_a_page_carries_no_rate_limit_headers_and_an_api_route_does(server):
    assert "ratelimit" not in ask(server, "GET", "/").headers
    for path in ("/health", "/api/v1/nope", "/api/v1/projects"):
        answer = ask(server, "GET", path, x_api_key=server.key)
        assert re.fullmatch(r"limit=\d+, remaining=\d+, reset=\d+", answer.headers["ratelimit"])
        assert re.fullmatch(r"\d+;w=60", answer.headers["ratelimit-policy"])
    assert ask(server, "GET", "/api/v1/projects", x_api_key=server.key).headers["ratelimit-policy"] == "120;w=60"
    assert ask(server, "GET", "/health").headers["ratelimit-policy"] == "6000;w=60"


def test_a_body_over_10_mb_gets_413_on_every_route(server):
    big = b'"' + b"x" * (11 * 1024 * 1024) + b'"'
    for path in ("/api/v1/ingest/traces", "/api/v1/projects"):
        answer = ask(server, "POST", path, big, x_api_key=server.key, content_type="application/json")
        assert answer.status == 413, path
        assert set(answer.json) == {"error"}


GZIPPED_PATHS = ("/api/v1/ingest/traces", "/api/v1/otel/v1/traces", "/api/v1/projects", "/api/v1/agents")


@pytest.mark.parametrize("path", GZIPPED_PATHS)
def test_content_encodings_hold_on_every_route_alike(server, path):
    """Decoded where it is known, refused where it is not, never ignored; the limit holds for the inflated size."""
    span = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "packed"}
    body = {"name": "packed", "resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    text = json.dumps(body).encode()

    def send(content: bytes, encoding: str) -> Answer:
        headers = {"x_api_key": server.key, "content_type": "application/json", "content_encoding": encoding}
        return ask(server, "POST", path, content, **headers)

    for content, encoding in ((gzip.compress(text), "gzip"), (zlib.compress(text), "deflate"), (text, "identity")):
        assert send(content, encoding).status in (200, 201), encoding
    assert send(text, "br").status == 415
    assert send(b"no gzip", "gzip").status == 400
    assert send(gzip.compress(text)[:-6], "gzip").status == 400
    bomb = send(gzip.compress(b" " * (64 * 1024 * 1024)), "gzip")
    assert (bomb.status, bomb.json) == (413, {"error": "Request body is larger than 10 MB"})


def raw_answer(server: RunningServer, request: bytes) -> bytes:
    """What comes back for these bytes until the server closes or says nothing for a while."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        answer = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            raw.sendall(request)
            while piece := raw.recv(65536):
                answer += piece
        return answer


@pytest.mark.parametrize(
    "head",
    [
        b"X-Long: " + b"a" * 200_000 + b"\r\n\r\n",
        b"".join(b"X-%d: a\r\n" % number for number in range(5000)) + b"\r\n",
        # Never ends: the bound holds for what the parser still keeps.
        b"X-Endless: " + b"a" * 2_000_000,
    ],
    ids=["one long field", "many fields", "no end"],
)
def test_a_head_that_is_too_large_is_refused(server, head):
    answer = raw_answer(server, b"GET /health HTTP/1.1\r\nHost: x\r\n" + head)
    # A client that is still sending may see the connection closed before it reads the answer.
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
    assert answer == b"" or answer.endswith(b'{"error":"Request header is too large"}')
    assert ask(server, "GET", "/health").status == 200


def test_an_impossible_host_is_a_bad_request_and_no_error_of_ours(server):
    answer = raw_answer(server, b"GET /api/v1/projects HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ") and b'{"error": "Bad request"}' in answer
    lines: list[dict[str, str]] = []
    deadline = time.monotonic() + 10  # the output is read by a thread of its own
    while not lines and time.monotonic() < deadline:
        lines = [json.loads(line) for line in list(server.lines) if "DisallowedHost" in line]
        time.sleep(0.02)
    assert [line["level"] for line in lines] == ["warning"]
    assert "exception" not in lines[0]


def test_what_is_no_http_is_refused_in_json(server):
    answer = raw_answer(server, b"GET / HTTP/9.9\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.endswith(b'{"error":"Invalid HTTP request"}')


def test_a_client_that_never_ends_its_request_is_let_go():
    """On a server with a short patience; one that does not close makes the read time out."""
    script = (
        "import sys; from config import protocol, server;"
        "protocol.HEAD_SECONDS = protocol.BODY_START_SECONDS = 2.0; sys.exit(server.main())"
    )
    whole = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with running_server(script=script) as server:
        announced = (
            f"POST /api/v1/ingest/traces HTTP/1.1\r\nHost: x\r\nx-api-key: {server.key}\r\ncontent-length: 9\r\n\r\n"
        )
        for start in (b"", whole[:15], whole + whole[:-9], announced.encode()):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
                raw.sendall(start)
                answer = b""
                while piece := raw.recv(65536):
                    answer += piece
            assert answer.count(b"HTTP/1.1 ") == start.count(whole)
        # Slow is not late: pieces of a head, then of a body, each in its time.
        body = json.dumps({"name": "slow"}).encode()
        head = announced.replace("content-length: 9", f"content-length: {len(body)}").encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            for piece in (head[:20], head[20:], body[:3], body[3:]):
                raw.sendall(piece)
                time.sleep(0.2)
            assert raw.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_request_id_is_kept_when_sane_and_made_otherwise(server):
    assert ask(server, "GET", "/health", x_request_id="abc-123").headers["x-request-id"] == "abc-123"
    made = ask(server, "GET", "/health", x_request_id='evil" value').headers["x-request-id"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{21}", made)
    assert ask(server, "GET", "/").headers["x-request-id"] != made


def test_bytes_beyond_ascii_in_a_query_are_no_server_error(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"GET /palette?q=\xc3\xa9\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        status = int(raw.makefile("rb").readline().split()[1])
    assert status < 500


def test_a_nul_in_an_address_a_form_or_a_cookie_is_no_server_error(server):
    """Postgres refuses a NUL even as a value to compare with; the store holds U+FFFD in its place."""
    paths = [
        "/agents/%00",
        "/traces/%00",
        "/sessions/a%00b",
        "/settings/models/edit/%00",
        "/settings/projects/%00/delete",
    ]
    paths += ["/api/v1/agents/%00", "/api/v1/ingest/traces/%00", "/api/v1/projects/%00", "/%00", "/static/%00"]
    names = ("agent", "framework", "model", "tool", "search", "cursor", "q")
    paths += [f"{page}?{name}=a%00b" for page in ("/", "/traces", "/sessions", "/palette") for name in names]
    for path in paths:
        assert ask(server, "GET", path, x_api_key=server.key).status < 500, path
    token = re.search(rb'csrfmiddlewaretoken" value="([^"]+)', ask(server, "GET", "/").body)
    answer = ask(server, "GET", "/traces", cookie='agentx_project="\\000"')
    assert answer.status == 200
    cookie = next(value for name, value in answer.headers.items() if name == "set-cookie" and "csrf" in value)
    form = b"csrfmiddlewaretoken=" + (token.group(1) if token else b"") + b"&name=a%00b"
    for path in ("/settings/projects/new", "/projects/switch"):
        sent = ask(
            server,
            "POST",
            path,
            form,
            cookie=cookie.split(";")[0],
            content_type="application/x-www-form-urlencoded",
            origin=server.base_url,
        )
        assert sent.status < 500, path
    # What was stored with a NUL is found by the id its sender knows.
    body = json.dumps({"name": "nul", "sessionId": "with\x00nul"}).encode()
    ask(server, "POST", "/api/v1/ingest/traces", body, x_api_key=server.key, content_type="application/json")
    spans = ask(server, "GET", "/api/v1/ingest/sessions/with%00nul/spans", x_api_key=server.key).json["spans"]
    assert [span["name"] for span in spans] == ["nul"]


def test_a_header_with_an_underscore_is_not_taken_for_the_key(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/api/v1/projects", headers={"x_api_key": server.key})
    answer = Answer(connection.getresponse())
    connection.close()
    assert (answer.status, answer.json) == (401, {"error": "Invalid or missing API key"})
    assert ask(server, "GET", "/api/v1/projects", x_api_key=server.key).status == 200


def test_a_client_that_leaves_in_the_middle_of_its_body_stores_nothing(server):
    body = json.dumps({"name": "half", "spanId": "half-a-body"}).encode()
    for path in ("/api/v1/ingest/traces", "/api/v1/projects"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
            raw.sendall(
                f"POST {path} HTTP/1.1\r\nHost: x\r\nx-api-key: {server.key}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body) + 50}\r\n\r\n".encode()
                + body
            )
    assert ask(server, "GET", "/health").status == 200
    answer = ask(server, "POST", "/api/v1/ingest/traces", body, x_api_key=server.key, content_type="application/json")
    assert answer.json["deduped"] is False


def test_rate_limits_refuse_with_the_exact_body_and_keep_their_budgets_apart():
    with running_server(env={"AGENTX_RATE_LIMIT_DATA_PLANE": "5", "AGENTX_RATE_LIMIT_CREDENTIAL": "2"}) as server:
        server_answers = [ask(server, "GET", "/api/v1/nope") for _ in range(6)]
        # One request on the data budget went to the harness's own health check.
        refused = server_answers[-1]
        assert refused.status == 429
        assert refused.json == {"statusCode": 429, "message": "Too many requests"}
        assert "remaining=0" in refused.headers["ratelimit"]
        assert int(refused.headers["retry-after"]) <= 60
        ingest = ask(server, "POST", "/api/v1/ingest/traces", b"{}", x_api_key=server.key)
        assert (ingest.status, ingest.json) == (429, {"statusCode": 429, "message": "Too many requests"})
        assert [ask(server, "GET", "/api/v1/auth/config").status == 429 for _ in range(3)] == [False, False, True]
        assert ask(server, "GET", "/").status != 429


def test_forwarded_addresses_count_only_behind_a_trusted_proxy():
    def statuses(server: RunningServer) -> list[int]:
        return [
            ask(server, "GET", "/api/v1/nope", x_forwarded_for=f"198.51.100.{number}").status for number in range(6)
        ]

    limit = {"AGENTX_RATE_LIMIT_DATA_PLANE": "4"}
    with running_server(env=limit) as direct:
        assert 429 in statuses(direct)
    with running_server(env={**limit, "AGENTX_TRUST_PROXY": "1"}) as proxied:
        assert set(statuses(proxied)) == {404}


def test_limits_off_means_no_headers():
    with running_server(env={"AGENTX_RATE_LIMIT": "off", "AGENTX_RATE_LIMIT_DATA_PLANE": "1"}) as server:
        answers = [ask(server, "GET", "/health") for _ in range(3)]
        assert {answer.status for answer in answers} == {200}
        assert all("ratelimit" not in answer.headers for answer in answers)


def test_a_stop_signal_stores_everything_that_was_sent_before_it_answers():
    """SIGTERM while 8 senders are at it: every span that got its 200 is there after the next start."""
    with running_server() as first:
        stored: list[str] = []
        enough = threading.Event()

        def sender(name: str) -> None:
            number = 0
            while True:
                number += 1
                body = json.dumps({"name": name, "spanId": f"{name}-{number}"}).encode()
                try:
                    answer = ask(
                        first,
                        "POST",
                        "/api/v1/ingest/traces",
                        body,
                        x_api_key=first.key,
                        content_type="application/json",
                    )
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 200:
                    stored.append(f"{name}-{number}")
                if len(stored) > 200:
                    enough.set()

        senders = [threading.Thread(target=sender, args=(f"sender{n}",)) for n in range(8)]
        for thread in senders:
            thread.start()
        assert enough.wait(60)
        assert first.stop() == 0
        for thread in senders:
            thread.join(30)
        with running_server(home=first.home, db_url=first.db_url) as second:
            for span_id in stored:
                body = json.dumps({"name": "again", "spanId": span_id}).encode()
                answer = ask(
                    second, "POST", "/api/v1/ingest/traces", body, x_api_key=second.key, content_type="application/json"
                )
                assert answer.json["deduped"] is True, span_id
