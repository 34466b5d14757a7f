"""The guard of requests to addresses that users give: against real servers on loopback (OPS-017)."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from werkzeug import Request, Response

from apps.core import outbound
from apps.core.outbound import OutboundError, OutboundRefused


@pytest.fixture(autouse=True)
def private_allowed(settings):
    settings.BLOCK_PRIVATE_URLS = False


def test_a_plain_exchange(httpserver):
    def handler(request: Request) -> Response:
        assert request.headers["Authorization"] == "Bearer k"
        assert request.get_data() == b'{"a":1}'
        return Response(b"fine", 201, {"X-Thing": "yes"})

    httpserver.expect_request("/v1/models", query_string="a=b", method="POST").respond_with_handler(handler)
    answer = outbound.request(
        "POST",
        httpserver.url_for("/v1/models?a=b"),
        headers={"Authorization": "Bearer k"},
        body=b'{"a":1}',
    )
    assert (answer.status, answer.body, answer.headers["x-thing"]) == (201, b"fine", "yes")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//127.0.0.1/",
        "http://",
        "http:///path",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:0/",
        "http://user:secret@127.0.0.1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nHost: x",
        "http://" + "a" * 3000,
    ],
)
def test_urls_that_are_never_called(url):
    with pytest.raises(OutboundRefused) as refused:
        outbound.request("GET", url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "224.0.0.1",
    ],
)
def test_metadata_and_link_local_are_refused_always(host):
    with pytest.raises(OutboundRefused, match="never called"):
        outbound.request("GET", f"http://{host}/latest/meta-data")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0x7f.1",
        "2130706433",
        "0.0.0.0",
        "10.1.2.3",
        "192.168.1.1",
        "[::ffff:10.0.0.1]",
    ],
)
def test_private_addresses_are_refused_when_switched_on(settings, httpserver, host):
    settings.BLOCK_PRIVATE_URLS = True
    with pytest.raises(OutboundRefused, match="AGENTX_BLOCK_PRIVATE_URLS"):
        outbound.request("GET", f"http://{host}:{httpserver.port}/")
    assert httpserver.log == []


def test_the_address_that_was_checked_is_the_one_that_is_dialled(settings, monkeypatch, httpserver):
    """A name that flips to loopback after the check: the second answer of the resolver is never asked for."""
    settings.BLOCK_PRIVATE_URLS = True
    answers = ["93.184.216.34", "127.0.0.1"]
    dialled: list[str] = []

    def resolve(host, port, **kwargs):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    def dial(address, timeout):
        dialled.append(address[0])
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(outbound.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(outbound.socket, "create_connection", dial)
    with pytest.raises(OutboundError):
        outbound.request("GET", f"http://rebind.test:{httpserver.port}/")
    assert dialled == ["93.184.216.34"]


def test_redirects_are_not_followed(httpserver):
    httpserver.expect_request("/a").respond_with_data(b"", 302, {"Location": httpserver.url_for("/b")})
    httpserver.expect_request("/b").respond_with_data(b"reached")
    assert outbound.request("GET", httpserver.url_for("/a")).status == 302
    assert [request.path for request, _ in httpserver.log] == ["/a"]


def test_a_body_beyond_the_limit_is_cut_off(httpserver):
    httpserver.expect_request("/").respond_with_data(b"x" * 50_000)
    with pytest.raises(OutboundError, match="larger than 1000 bytes"):
        outbound.request("GET", httpserver.url_for("/"), max_bytes=1000)


def test_a_proxy_of_the_environment_is_not_used(httpserver, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    httpserver.expect_request("/").respond_with_data(b"direct")
    assert outbound.request("GET", httpserver.url_for("/")).body == b"direct"


def _listener(talk) -> int:
    """A raw server for one connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server:
            connection, _ = server.accept()
            with connection:
                talk(connection)

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def test_one_deadline_bounds_a_server_that_drips():
    def drip(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        try:
            for _ in range(200):
                connection.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            return

    port = _listener(drip)
    with pytest.raises(OutboundError, match="No answer"):
        outbound.request("GET", f"http://127.0.0.1:{port}/", timeout=0.5)


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"])
def test_what_is_no_http_is_said(reply):
    port = _listener(lambda connection: (connection.recv(4096), connection.sendall(reply)))
    with pytest.raises(OutboundError) as error:
        outbound.request("GET", f"http://127.0.0.1:{port}/", timeout=5)
    assert "SSH" not in str(error.value)


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OutboundError, match="Could not connect"):
        outbound.request("GET", f"http://127.0.0.1:{port}/")


def test_https_to_a_plain_server_is_a_tls_error(httpserver):
    with pytest.raises(OutboundError, match="TLS failed"):
        outbound.request("GET", f"https://127.0.0.1:{httpserver.port}/", timeout=5)
