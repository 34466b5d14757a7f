"""POST /api/v1/ingest/traces against a server started as a user starts it: what a client sees."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.server import running_server

URL = "/api/v1/ingest/traces"


@pytest.fixture(scope="module")
def server():
    with running_server(env={"AGENTX_RATE_LIMIT": "off"}) as started:
        yield started


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.base_url, headers={"x-api-key": server.key}, timeout=30) as http:
        yield http


def post(client, body, **headers):
    """Post JSON text, bytes, or a value."""
    content = body if isinstance(body, bytes | str) else json.dumps(body)
    return client.post(URL, content=content, headers={"content-type": "application/json", **headers})


def read(client, answer):
    """The detail read of what was just stored."""
    assert answer.status_code == 200, answer.text
    found = client.get(f"{URL}/{answer.json()['traceId']}")
    assert found.status_code == 200, found.text
    return found.json()


def test_the_answer_has_both_spellings_and_deduped(client):
    answer = post(client, {"name": "a"})
    assert answer.status_code == 200
    assert set(answer.json()) == {"traceId", "trace_id", "deduped"}
    assert answer.json()["traceId"] == answer.json()["trace_id"]
    assert answer.json()["deduped"] is False


def test_both_spellings_store_the_same_and_snake_case_wins(client):
    camel = {
        "name": "twin",
        "latencyMs": 5,
        "toolCalls": [{"name": "t", "success": True, "extra": {"a": None}}],
        "spanKind": "guardrail",
        "sessionId": "twins",
        "performanceSummary": {"x": 1},
        "inputTokens": 3,
        "outputTokens": 4,
        "cacheReadTokens": 1,
        "cacheWriteTokens": 2,
        "startedAtUnixNano": "1764400000123456789",
        "agentId": "someone",
    }
    snake = {
        "name": "twin",
        "latency_ms": 5,
        "tool_calls": camel["toolCalls"],
        "span_kind": "guardrail",
        "session_id": "twins",
        "performance_summary": {"x": 1},
        "input_tokens": 3,
        "output_tokens": 4,
        "cache_read_tokens": 1,
        "cache_write_tokens": 2,
        "started_at_unix_nano": "1764400000123456789",
        "agent_id": "someone",
    }
    first, second = read(client, post(client, camel)), read(client, post(client, snake))
    assert {**first, "_id": ""} == {**second, "_id": ""}
    assert first["latencyMs"] == 5 and first["createdAt"] == first["startedAt"] == "2025-11-29T07:06:40.123Z"
    both = read(client, post(client, {"name": "b", "latencyMs": 1, "latency_ms": 2}))
    assert both["latencyMs"] == 2


@pytest.mark.parametrize("value", ["text", 12.5, True, [1, {"a": None}], {"k": {"deep": [[]]}}, "", 0])
def test_input_and_output_come_back_as_sent(client, value):
    found = read(client, post(client, {"name": "a", "input": value, "output": value}))
    assert (found["input"], found["output"]) == (value, value)


def test_null_counts_as_absent_and_unknown_keys_are_ignored(client):
    found = read(client, post(client, {"name": "a", "error": None, "toolCalls": None, "foo": 1, "workspaceId": "w"}))
    assert "error" not in found and "toolCalls" not in found


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"name": ["Required"]}),
        ({"name": None}, {"name": ["Required"]}),
        ({"name": 3}, {"name": ["Expected string, received number"]}),
        ({"name": "a", "latencyMs": "x"}, {"latencyMs": ["Expected number, received string"]}),
        ({"name": "a", "latency_ms": True}, {"latency_ms": ["Expected number, received boolean"]}),
        ({"name": "a", "metadata": []}, {"metadata": ["Expected object, received array"]}),
        ({"name": "a", "performanceSummary": "x"}, {"performanceSummary": ["Expected object, received string"]}),
        ({"name": "a", "toolCalls": {}}, {"toolCalls": ["Expected array, received object"]}),
        ({"name": "a", "tool_calls": ["x"]}, {"tool_calls": ["Expected object, received string"]}),
        ({"name": "a", "monitor": "yes"}, {"monitor": ["Expected boolean, received string"]}),
        ({"name": "a", "patternIds": [1]}, {"patternIds": ["Expected string, received number"]}),
        (
            {"error": 1, "input_tokens": "3", "spanId": {}},
            {
                "name": ["Required"],
                "error": ["Expected string, received number"],
                "input_tokens": ["Expected number, received string"],
                "spanId": ["Expected string, received object"],
            },
        ),
    ],
)
def test_every_field_error_is_named_by_the_spelling_sent(client, body, fields):
    answer = post(client, body)
    assert answer.status_code == 422
    assert answer.json() == {
        "error": "Invalid trace payload",
        "details": {"fieldErrors": fields, "formErrors": []},
    }


def test_a_blank_root_name_is_refused_and_a_blank_child_name_kept(client):
    refused = post(client, {"name": "  "})
    assert refused.status_code == 422 and list(refused.json()["details"]["fieldErrors"]) == ["name"]
    assert post(client, {"name": " ", "parentSpanId": "p"}).status_code == 200


def test_what_is_not_an_object_or_not_json(client):
    answer = post(client, "[]")
    assert answer.status_code == 422
    assert answer.json()["details"] == {"fieldErrors": {}, "formErrors": ["Expected object, received array"]}
    for body in ("{", "", "nope", b"\xff\xfe", '{"name": "a",}'):
        answer = post(client, body)
        assert answer.status_code == 400 and set(answer.json()) == {"error"}, body


def test_numbers_json_does_not_know_become_null(client):
    found = read(client, post(client, '{"name":"a","input":[NaN,Infinity,-Infinity,1e999],"latencyMs":NaN}'))
    assert found["input"] == [None, None, None, None] and "latencyMs" not in found


def test_integers_no_reader_takes_become_text(client):
    """Thousands of digits are legal JSON, but Python's json refuses the whole page that holds them."""
    digits = "7" * 5000
    body = (
        f'{{"name":"endless","spanId":"endless","sessionId":"endless","input":{digits},"output":[-{digits},12,"{digits}"],'
        f'"metadata":{{"n":{digits},"tools":[]}},"toolCalls":[{{"name":"t","input":{digits}}}],'
        f'"performanceSummary":{{"n":{digits}}}}}'
    )
    for text in (body, body.replace("[-", '["\\ud800",-')):
        found = read(client, post(client, text.replace('"spanId":"endless",', "")))
        assert found["input"] == digits and found["output"][-3:] == ["-" + digits, 12, digits]
        assert found["metadata"]["n"] == digits and found["performanceSummary"] == {"n": digits}
    assert len(client.get("/api/v1/ingest/sessions/endless/spans").json()["spans"]) == 2
    assert client.get(URL).status_code == 200 and client.get(URL).json()["traces"]
    # What readers can take stays the number that was sent.
    assert read(client, post(client, '{"name":"long","input":' + "7" * 4000 + "}"))["input"] == int("7" * 4000)


def test_an_endless_latency_hides_nothing(client):
    """It is cut to what dates and sums can hold: the session, its neighbours and the pages stay readable."""
    for name, latency in (("calm", "5"), ("endless-wait", "1e300"), ("endless-count", "9" * 400)):
        assert post(client, f'{{"name":"{name}","sessionId":"{name}","latencyMs":{latency}}}').status_code == 200
    answer = client.get("/api/v1/agent-monitoring/sessions")
    assert answer.status_code == 200
    rows = {row["sessionId"]: row for row in answer.json()["sessions"]}
    for name in ("endless-wait", "endless-count"):
        assert rows[name]["totalLatencyMs"] == 1e12
        assert rows["calm"]["lastAt"] < rows[name]["lastAt"] < "9999-12-31T23:59:59.999Z"
    assert rows["calm"]["turnCount"] == 1
    for page in ("/sessions", "/sessions/endless-wait", "/traces", "/"):
        assert client.get(page).status_code == 200, page


def test_what_the_store_cannot_hold_is_replaced(client):
    body = '{"name":"n\\u0000","input":"half \\ud83e","output":{"k\\u0000":"pair \\ud83e\\udd16"},"error":"\\udfff"}'
    found = read(client, post(client, body))
    assert (found["name"], found["input"]) == ("n\ufffd", "half \ufffd")
    assert found["output"] == {"k\ufffd": "pair 🤖"} and found["error"] == "\ufffd"
    invalid = read(client, post(client, b'{"name":"a","input":"\xff\xfe"}'))
    assert invalid["input"] == "\ufffd\ufffd"


@pytest.mark.parametrize("depth", [200, 900, 10_000, 100_000])
def test_deep_nesting_is_stored_or_refused_but_never_fails(client, depth):
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        body = f'{{"name":"deep","input":{opened * depth}1{closed * depth}}}'
        assert post(client, body).status_code in ((200,) if depth == 200 else (200, 400))
        assert post(client, body.replace("deep", "\\u0000")).status_code in (200, 400)


def test_bodies_up_to_ten_megabytes(client, server):
    large = read(
        client, post(client, {"name": "big", "input": "x" * 9_000_000, "metadata": {"v": 1, "w": "y" * 200_000}})
    )
    assert large["input"].endswith(" [agentx.truncated]") and len(large["input"]) < 100_100
    assert large["metadata"]["v"] == 1 and large["metadata"]["agentx.truncated"] is True
    assert len(read(client, post(client, {"name": "m", "metadata": {"k": "z" * 20_000}}))["metadata"]["k"]) == 20_000
    answer = post(client, b'{"name":"' + b"a" * 11_000_000 + b'"}')
    assert answer.status_code == 413 and set(answer.json()) == {"error"}

    def chunks():
        for _ in range(12):
            yield b"x" * 1_000_000

    assert client.post(URL, content=chunks()).status_code == 413
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(
            f"POST {URL} HTTP/1.1\r\nHost: x\r\nx-api-key: {server.key}\r\nContent-Length: 100\r\n\r\n".encode() + b"{}"
        )
    assert post(client, {"name": "after"}).status_code == 200


def test_no_key_and_wrong_key(client):
    expected = {"error": "Invalid or missing API key"}
    for headers in ({}, {"x-api-key": "agtx_local_nope"}, {"x-api-key": "ü".encode()}):
        answer = httpx.post(str(client.base_url) + URL, json={"name": "a"}, headers=headers)
        assert answer.status_code == 401 and answer.json() == expected


def test_fifty_tool_calls_and_verbatim_entries(client):
    calls = [{"name": f"t{n}", "served": n, "latency_ms": None} for n in range(60)]
    assert read(client, post(client, {"name": "a", "toolCalls": calls}))["toolCalls"] == calls[:50]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"spanKind": "guardrail", "model": "m"}, "guardrail"),
        ({"spanKind": "RETRIEVER"}, "retrieval"),
        ({"spanKind": "generation"}, "llm"),
        ({"spanKind": "execute_tool"}, "tool"),
        ({"spanKind": "recall"}, "memory"),
        ({"spanKind": "banana", "model": "m"}, "llm"),
        ({"toolCalls": [{"name": "x"}]}, "tool"),
        ({"metadata": {"kind": "retrieval"}}, "retrieval"),
        ({}, "chain"),
    ],
)
def test_kinds(client, fields, kind):
    assert read(client, post(client, {"name": "k", **fields}))["spanKind"] == kind


@pytest.mark.parametrize(
    ("name", "kind"), [("LLM Call 2", "llm"), ("Retrieval 1", "retrieval"), ("Memory x", "memory")]
)
def test_names_the_sdk_gives_speak(client, name, kind):
    assert read(client, post(client, {"name": name, "parentSpanId": "q"}))["spanKind"] == kind


def test_framework_is_folded_and_negatives_are_zero(client):
    found = read(client, post(client, {"name": "a", "framework": " LangChain ", "latencyMs": -1, "inputTokens": -5}))
    assert (found["framework"], found["latencyMs"], found["inputTokens"]) == ("langchain", 0, 0)
    assert len(read(client, post(client, {"name": "a", "framework": "x" * 100}))["framework"]) == 64


@pytest.mark.parametrize("start", ["abc", "1.7e18", "", [], "99999999999999999999", -5, "٣"])
def test_an_unusable_start_is_ignored(client, start):
    found = read(client, post(client, {"name": "a", "startedAtUnixNano": start}))
    assert "startedAt" not in found and found["createdAt"] > "2026"


@pytest.mark.parametrize(("nanos", "day"), [("1000000", "1970-01-01"), ("7258118400000000000", "2200-01-01")])
def test_clocks_far_away_are_taken_at_their_word(client, nanos, day):
    assert read(client, post(client, {"name": "far", "startedAtUnixNano": nanos}))["createdAt"].startswith(day)


def test_huge_numbers_do_not_poison_a_batch(client):
    bodies = [{"name": "n", "inputTokens": 10**400, "latencyMs": 10**400}, {"name": "n", "inputTokens": 1e308}] + [
        {"name": "n"}
    ] * 20
    with ThreadPoolExecutor(22) as pool:
        assert {answer.status_code for answer in pool.map(lambda body: post(client, body), bodies)} == {200}


def test_parallel_replays_make_one_row_and_one_agent(client):
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: post(client, {"name": "parallel", "spanId": "same"}).json(), range(40)))
    assert len({answer["traceId"] for answer in answers}) == 1
    assert sorted(answer["deduped"] for answer in answers) == [False] + [True] * 39
    agents = [agent for agent in client.get("/api/v1/agents").json()["agents"] if agent["name"] == "parallel"]
    assert len(agents) == 1


def test_rows_without_span_id_are_never_deduplicated(client):
    first, second = (post(client, {"name": "same", "input": 1}).json() for _ in range(2))
    assert first["traceId"] != second["traceId"]


def test_counters_move_with_spans(client, server):
    def value(name):
        text = httpx.get(f"{server.base_url}/metrics").text
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))

    names = ("agentx_ingest_spans_total", "agentx_ingest_spans_stored_total", "agentx_ingest_spans_deduped_total")
    before = [value(name) for name in names]
    for _ in range(3):
        post(client, {"name": "c", "spanId": "counted"})
    assert [value(name) - start for name, start in zip(names, before, strict=True)] == [3, 1, 2]
    assert value("agentx_ingest_queue_depth") == 0
