"""The one door for requests to addresses that users give (OPS-017): webhooks, custom model endpoints and the like.

What it holds to: http(s) only; the address that is really dialled is the one that was checked (the name is resolved
once); link-local, metadata, multicast and unspecified addresses are never dialled, private ones not when
AGENTX_BLOCK_PRIVATE_URLS is set; redirects are not followed; proxies of the environment are not used; the whole
exchange has one deadline and the answer a size limit. Error texts never hold the answer's text or a header.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

_CHUNK = 64 * 1024
_MAX_URL = 2000
_METADATA = frozenset(ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "168.63.129.16"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class OutboundError(Exception):
    """The request could not be made or answered in time; the text may be shown to the person who gave the address."""


class OutboundRefused(OutboundError):
    """The address is one this server does not call."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, lower-case headers and body (at most the limit asked for) of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def check_url(url: str) -> SplitResult:
    """The parts of a URL this server may call; raises OutboundRefused saying what is wrong. Resolves nothing."""
    if len(url) > _MAX_URL or any(ord(char) <= 32 or ord(char) == 127 for char in url):
        raise OutboundRefused("The URL is not valid")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise OutboundRefused("The URL is not valid") from None
    if parts.scheme not in {"http", "https"}:
        raise OutboundRefused("The URL must start with http:// or https://")
    if not parts.hostname or port == 0:
        raise OutboundRefused("The URL is not valid")
    if parts.username is not None or parts.password is not None:
        raise OutboundRefused("The URL must not contain a user name or password")
    return parts


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 10.0,
    max_bytes: int = 1_000_000,
) -> Answer:
    """Make one request. `timeout` (seconds) bounds the whole exchange, `max_bytes` the answer's body.

    A redirect is returned as the answer it is. Raises OutboundRefused for an address that is not called, OutboundError
    for one that does not answer.
    """
    parts = check_url(url)
    deadline = time.monotonic() + timeout
    connection = _connect(parts, deadline)
    try:
        path = parts.path or "/"
        if parts.query:
            path += f"?{parts.query}"
        sent = {"Host": parts.netloc, "Accept": "application/json", "User-Agent": "agentx-server", **(headers or {})}
        connection.request(method, path, body=body, headers=sent)
        _limit(connection, deadline)
        response = connection.getresponse()
        chunks: list[bytes] = []
        size = 0
        while True:
            _limit(connection, deadline)
            chunk = response.read1(_CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size > max_bytes:
                raise OutboundError(f"The answer is larger than {max_bytes} bytes")
            chunks.append(chunk)
        if response.length:
            raise OutboundError("The connection broke before the answer was complete")
        received = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, received, b"".join(chunks))
    except TimeoutError:
        raise OutboundError(f"No answer within {timeout:g} seconds") from None
    except ssl.SSLError as error:
        raise OutboundError(f"TLS failed: {error.reason or 'handshake error'}") from None
    except OSError as error:
        raise OutboundError(f"The connection broke: {error.strerror or type(error).__name__}") from None
    except (http.client.HTTPException, ValueError):
        raise OutboundError("The address did not answer with valid HTTP") from None
    finally:
        connection.close()


def _connect(parts: SplitResult, deadline: float) -> http.client.HTTPConnection:
    """A connection whose socket is already open to a checked address."""
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection = http.client.HTTPConnection(host, port)
    last: OSError | None = None
    for address in _resolve(host, port):
        try:
            raw = socket.create_connection((str(address), port), timeout=_left(deadline))
        except OSError as error:
            last = error
            continue
        try:
            if parts.scheme == "https":
                raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        except TimeoutError:
            raw.close()
            raise OutboundError("No answer in time") from None
        except ssl.SSLError as error:
            raw.close()
            raise OutboundError(f"TLS failed: {error.reason or 'handshake error'}") from None
        except OSError as error:
            raw.close()
            raise OutboundError(f"TLS failed: {error.strerror or type(error).__name__}") from None
        connection.sock = raw
        return connection
    if isinstance(last, TimeoutError):
        raise OutboundError("No answer in time")
    raise OutboundError(f"Could not connect: {last.strerror if last and last.strerror else 'no address'}")


def _resolve(host: str, port: int) -> list[Address]:
    """Every address of a host, all of them checked; one bad address refuses the host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise OutboundError("The host name could not be resolved") from None
    addresses: list[Address] = []
    for *_, target in found:
        address = ipaddress.ip_address(str(target[0]).partition("%")[0])
        reason = _refusal_of(address)
        if reason:
            raise OutboundRefused(reason)
        if address not in addresses:
            addresses.append(address)
    return addresses[:4]


def _refusal_of(address: Address) -> str | None:
    """Why an address is not called, None when it may be."""
    inner: Address = address
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and address in _NAT64:
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        inner = embedded or address
    if inner.is_link_local or inner.is_multicast or inner in _METADATA:
        return "The address is link-local, multicast or a metadata service and is never called"
    if settings.BLOCK_PRIVATE_URLS and not inner.is_global:
        return "Private addresses are refused on this server (AGENTX_BLOCK_PRIVATE_URLS)"
    return None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutboundError("No answer in time")
    return left


def _limit(connection: http.client.HTTPConnection, deadline: float) -> None:
    """Give the next socket operation only the time that is left."""
    if connection.sock is not None:
        connection.sock.settimeout(_left(deadline))
