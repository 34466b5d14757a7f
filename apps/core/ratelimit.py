"""Requests a minute and IP, in memory and per process (source 1:2216-2219).

Two surfaces, each with its own budget: "credential" (sign-in, organizations, projects, operator routes) and "data"
(every other API route and /health). The router in config/asgi.py asks `hit()` once for every request on a surface,
before anything else, so this module knows nothing of Django requests and allocates next to nothing.

A window starts with the first request of an address and ends 60 seconds later; there is no look-up in a shared store,
and nothing is keyed on the API key. Memory is bounded: beyond `_MAX_ADDRESSES` the oldest windows are forgotten.
"""

from __future__ import annotations

import functools
import ipaddress
import time
from collections.abc import Callable
from typing import Literal

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

Surface = Literal["credential", "data"]
Headers = list[tuple[str, str]]

WINDOW_SECONDS = 60
# The body of a refusal; the one answer of the API that is not `{ "error": … }` (source 1:2195-2196).
REFUSAL = {"statusCode": 429, "message": "Too many requests"}
_MAX_ADDRESSES = 50_000

# address -> [end of its window on the monotonic clock, requests in it]; insertion order is order of window start.
_windows: dict[Surface, dict[str, list[float]]] = {"credential": {}, "data": {}}

_CREDENTIAL_ROOTS = ("auth", "auth-org", "projects", "admin")
_CREDENTIAL_PATHS = ("/api/v1/mcp-oauth/callback", "/admin/login")
_API = "/api/v1/"


def surface_of(path: str) -> Surface | None:
    """Which budget a path draws on; None for pages, static files and /metrics, which are not limited.

    The operators' sign-in page (/admin/login) counts as a credential route: it takes passwords.
    """
    if path.startswith(_API):
        first, _, _ = path[len(_API) :].partition("/")
        if first in _CREDENTIAL_ROOTS or path.rstrip("/") == _CREDENTIAL_PATHS[0]:
            return "credential"
        return "data"
    if path == "/health" or path.startswith("/api/"):
        return "data"
    if path.rstrip("/") == _CREDENTIAL_PATHS[1]:
        return "credential"
    return None


def hit(surface: Surface, ip: str) -> tuple[bool, Headers]:
    """Count one request; returns whether it may go on, and the draft-7 headers its answer carries.

    `RateLimit: limit=120, remaining=119, reset=60` and `RateLimit-Policy: 120;w=60`; a refusal also carries
    `Retry-After`. With AGENTX_RATE_LIMIT=off everything is allowed and there are no headers.
    """
    if not settings.RATE_LIMIT:
        return True, []
    limit = settings.RATE_LIMIT_CREDENTIAL if surface == "credential" else settings.RATE_LIMIT_DATA_PLANE
    windows = _windows[surface]
    now = time.monotonic()
    key = ip if ":" not in ip else _network_of(ip)
    window = windows.get(key)
    if window is None or window[0] <= now:
        # Popped before it is set again, so that a new window goes to the end of the order of eviction.
        windows.pop(key, None)
        if len(windows) >= _MAX_ADDRESSES:
            _make_room(windows, now)
        windows[key] = window = [now + WINDOW_SECONDS, 0]
    window[1] += 1
    used = int(window[1])
    reset = max(1, int(window[0] - now + 0.999))
    remaining = limit - used
    headers = [
        ("RateLimit-Policy", f"{limit};w={WINDOW_SECONDS}"),
        ("RateLimit", f"limit={limit}, remaining={remaining if remaining > 0 else 0}, reset={reset}"),
    ]
    if remaining < 0:
        headers.append(("Retry-After", str(reset)))
        return False, headers
    return True, headers


def forget() -> None:
    """Start all budgets afresh (tests)."""
    for windows in _windows.values():
        windows.clear()


def _make_room(windows: dict[str, list[float]], now: float) -> None:
    """Drop ended windows, which stand first; if none has ended, a tenth of the oldest."""
    quota = _MAX_ADDRESSES // 10
    for index, (key, window) in enumerate(list(windows.items())):
        if window[0] > now and index >= quota:
            break
        windows.pop(key, None)


@functools.lru_cache(maxsize=10_000)
def _network_of(ip: str) -> str:
    """The key of an IPv6 address: its /64, which is what one subscriber holds; mapped IPv4 counts as IPv4."""
    try:
        address = ipaddress.IPv6Address(ip.partition("%")[0])
    except ValueError:
        return ip[:64]
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))


def client_ip(peer: str, forwarded_for: str | None) -> str:
    """The address a request counts for: the peer's, or one of X-Forwarded-For when AGENTX_TRUST_PROXY allows it.

    `true` takes the first (leftmost) address; a hop count N believes the N nearest proxies, the connecting one
    included; CIDRs believe proxies in those networks and take the first address outside them. An entry that is not an
    address ends the walk, so that a forged header never counts for more than the proxy that passed it on.
    """
    setting = settings.TRUST_PROXY
    if not setting or not forwarded_for:
        return peer
    trusted = trust_of(setting)
    if trusted is None:
        return peer
    current = peer
    for hop, entry in enumerate(reversed(forwarded_for.split(","))):
        address = _plain_address(entry)
        if address is None or not trusted(current, hop):
            break
        current = address
    return current


def _plain_address(entry: str) -> str | None:
    """`1.2.3.4` for `1.2.3.4:567`, `::1` for `[::1]:80`; None for what is no address."""
    text = entry.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


_NAMED_NETWORKS = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    "linklocal": ("169.254.0.0/16", "fe80::/10"),
    "uniquelocal": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
}


@functools.lru_cache(maxsize=8)
def trust_of(setting: str) -> Callable[[str, int], bool] | None:
    """AGENTX_TRUST_PROXY as a test "is the address at this hop a proxy of ours"; None when no proxy is believed.

    Raises ImproperlyConfigured for a value that is none of true, false, a hop count, CIDRs.
    """
    text = setting.strip().lower()
    if text in {"false", "off", "no", "0", ""}:
        return None
    if text in {"true", "on", "yes"}:
        return lambda address, hop: True
    if text.isdigit():
        hops = int(text)
        return lambda address, hop: hop < hops
    networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
    for part in text.split(","):
        for name in _NAMED_NETWORKS.get(part.strip(), (part.strip(),)):
            try:
                networks.append(ipaddress.ip_network(name, strict=False))
            except ValueError:
                raise ImproperlyConfigured(
                    f"AGENTX_TRUST_PROXY must be true, a hop count or CIDRs, not {setting!r}"
                ) from None

    @functools.lru_cache(maxsize=4096)
    def in_networks(address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in networks)

    return lambda address, hop: in_networks(address)
