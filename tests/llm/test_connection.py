"""POST …/models/test-connection against real servers on loopback (PROJ-041)."""

from __future__ import annotations

import socket

import pytest
from werkzeug import Request, Response

URL = "/api/v1/agent-monitoring/portability/models"
SECRET = "sk-endpoint-0123456789abcdef"


@pytest.fixture
def try_it(api, httpserver):
    def call(**body):
        answer = api.post(f"{URL}/test-connection", {"baseUrl": httpserver.url_for("/v1"), "modelId": "llama", **body})
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()
        return answer.json()

    return call


def test_a_live_endpoint(try_it, httpserver):
    def models(request: Request) -> Response:
        assert request.headers["Authorization"] == f"Bearer {SECRET}"
        return Response('{"object":"list","data":[{"id":"llama"},{"id":"qwen"}]}')

    httpserver.expect_request("/v1/models").respond_with_handler(models)
    assert try_it(apiKey=SECRET) == {"live": True, "availableModelIds": ["llama", "qwen"]}
    assert try_it(apiKey=SECRET, baseUrl=httpserver.url_for("/v1/"))["live"] is True


def test_a_model_that_is_not_there(try_it, httpserver):
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "qwen"}]})
    assert try_it() == {
        "live": False,
        "error": "The endpoint does not list this model",
        "availableModelIds": ["qwen"],
    }


def test_an_endpoint_without_a_list_is_asked_for_one_token(try_it, httpserver):
    httpserver.expect_request("/v1/models").respond_with_data("", 404)
    httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_json({"choices": []})
    assert try_it() == {"live": True}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, f"bad key {SECRET}", "The endpoint refused the API key (HTTP 401)"),
        (302, "", "The endpoint redirects (HTTP 302); redirects are not followed"),
        (500, "secret stack trace", "The endpoint answered HTTP 500"),
        (200, "<html>", "The endpoint did not answer with a list of models"),
        (200, "[" * 5000, "The endpoint did not answer with a list of models"),
        (200, '{"data": "x"}', "The endpoint did not answer with a list of models"),
    ],
)
def test_what_is_wrong_is_said_without_the_reply(try_it, httpserver, status, body, error):
    httpserver.expect_request("/v1/models").respond_with_data(body, status)
    assert try_it(apiKey=SECRET) == {"live": False, "error": error}


def test_a_dead_address_is_a_200_too(try_it):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    answer = try_it(baseUrl=f"http://127.0.0.1:{port}/v1")
    assert answer["live"] is False
    assert answer["error"].startswith("Could not connect")


def test_addresses_that_are_refused_are_a_200_too(try_it, settings):
    assert try_it(baseUrl="file:///etc/passwd") == {
        "live": False,
        "error": "The URL must start with http:// or https://",
    }
    settings.BLOCK_PRIVATE_URLS = True
    assert "AGENTX_BLOCK_PRIVATE_URLS" in try_it()["error"]


@pytest.mark.parametrize("missing", ["baseUrl", "modelId"])
def test_missing_fields_are_400(api, missing):
    body = {"baseUrl": "http://127.0.0.1/v1", "modelId": "m"}
    del body[missing]
    answer = api.post(f"{URL}/test-connection", body)
    assert (answer.status_code, answer.json()) == (400, {"error": f"{missing} is required"})


def test_the_stored_key_serves_its_own_address_only(api, try_it, httpserver):
    seen: list[str | None] = []

    def models(request: Request) -> Response:
        seen.append(request.headers.get("Authorization"))
        return Response('{"data":[{"id":"llama"}]}')

    httpserver.expect_request("/v1/models").respond_with_handler(models)
    httpserver.expect_request("/evil/models").respond_with_handler(models)
    api.post(
        URL,
        {
            "id": "llama",
            "provider": "custom",
            "label": "Llama",
            "pricePerMInputTokens": 0,
            "pricePerMOutputTokens": 0,
            "baseUrl": httpserver.url_for("/v1"),
            "apiKey": SECRET,
        },
    )
    assert try_it()["live"] is True
    assert try_it(baseUrl=httpserver.url_for("/evil"))["live"] is True
    assert seen == [f"Bearer {SECRET}", None]
