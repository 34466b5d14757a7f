"""Rate limits: budgets per address and surface, draft-7 headers, and whose address counts."""

from __future__ import annotations

import pytest
import time_machine
from django.core.exceptions import ImproperlyConfigured

from apps.core import ratelimit


@pytest.fixture(autouse=True)
def small_limits(settings):
    settings.RATE_LIMIT = True
    settings.RATE_LIMIT_CREDENTIAL = 3
    settings.RATE_LIMIT_DATA_PLANE = 5
    settings.TRUST_PROXY = None


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/api/v1/auth/config", "credential"),
        ("/api/v1/auth/sign-in/email", "credential"),
        ("/api/v1/auth-org/audit", "credential"),
        ("/api/v1/projects", "credential"),
        ("/api/v1/projects/abc", "credential"),
        ("/api/v1/admin/overview", "credential"),
        ("/api/v1/mcp-oauth/callback", "credential"),
        ("/admin/login/", "credential"),
        ("/api/v1/ingest/traces", "data"),
        ("/api/v1/projectsx", "data"),
        ("/api/v1/agents", "data"),
        ("/api/schema/", "data"),
        ("/health", "data"),
        ("/metrics", None),
        ("/", None),
        ("/static/css/base.css", None),
        ("/admin/", None),
    ],
)
def test_each_path_draws_on_its_surface(path, surface):
    assert ratelimit.surface_of(path) == surface


def test_the_request_after_the_last_is_refused_and_headers_count_down():
    answers = [ratelimit.hit("credential", "10.0.0.1") for _ in range(4)]
    assert [allowed for allowed, _ in answers] == [True, True, True, False]
    assert answers[0][1] == [("RateLimit-Policy", "3;w=60"), ("RateLimit", "limit=3, remaining=2, reset=60")]
    assert dict(answers[3][1]) == {
        "RateLimit-Policy": "3;w=60",
        "RateLimit": "limit=3, remaining=0, reset=60",
        "Retry-After": "60",
    }


def test_surfaces_and_addresses_have_budgets_of_their_own():
    for _ in range(4):
        ratelimit.hit("credential", "10.0.0.1")
    assert ratelimit.hit("data", "10.0.0.1")[0]
    assert ratelimit.hit("credential", "10.0.0.2")[0]
    assert not ratelimit.hit("credential", "10.0.0.1")[0]


def test_a_minute_later_the_budget_is_whole_again(monkeypatch):
    for _ in range(4):
        ratelimit.hit("credential", "10.0.0.1")
    later = ratelimit.time.monotonic() + 61
    monkeypatch.setattr(ratelimit.time, "monotonic", lambda: later)
    assert ratelimit.hit("credential", "10.0.0.1")[0]


def test_off_means_no_limit_and_no_headers(settings):
    settings.RATE_LIMIT = False
    assert [ratelimit.hit("credential", "10.0.0.1") for _ in range(9)][-1] == (True, [])


def test_one_ipv6_subscriber_has_one_budget():
    for host in range(3):
        assert ratelimit.hit("credential", f"2001:db8:1:2::{host:x}")[0]
    assert not ratelimit.hit("credential", "2001:db8:1:2:ffff::1")[0]
    assert ratelimit.hit("credential", "2001:db8:1:3::1")[0]
    assert ratelimit.hit("credential", "::ffff:10.0.0.9")[1] != []


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(ratelimit, "_MAX_ADDRESSES", 100)
    for number in range(1000):
        ratelimit.hit("data", f"10.1.{number // 250}.{number % 250}")
    assert len(ratelimit._windows["data"]) <= 100
    # The newest windows are the ones that are remembered.
    assert dict(ratelimit.hit("data", "10.1.3.249")[1])["RateLimit"].startswith("limit=5, remaining=3")


@pytest.mark.parametrize(
    ("setting", "peer", "header", "expected"),
    [
        (None, "10.0.0.1", "1.2.3.4", "10.0.0.1"),
        ("false", "10.0.0.1", "1.2.3.4", "10.0.0.1"),
        ("0", "10.0.0.1", "1.2.3.4", "10.0.0.1"),
        ("true", "10.0.0.1", "1.2.3.4, 5.6.7.8", "1.2.3.4"),
        ("true", "10.0.0.1", None, "10.0.0.1"),
        ("true", "10.0.0.1", "1.2.3.4:4711", "1.2.3.4"),
        ("true", "10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
        ("true", "10.0.0.1", "garbage, 5.6.7.8", "5.6.7.8"),
        ("true", "10.0.0.1", "unknown", "10.0.0.1"),
        ("1", "10.0.0.1", "9.9.9.9, 5.6.7.8", "5.6.7.8"),
        ("2", "10.0.0.1", "9.9.9.9, 5.6.7.8", "9.9.9.9"),
        ("5", "10.0.0.1", "9.9.9.9, 5.6.7.8", "9.9.9.9"),
        ("10.0.0.0/8", "10.0.0.1", "9.9.9.9, 10.0.0.7", "9.9.9.9"),
        ("10.0.0.0/8", "10.0.0.1", "9.9.9.9, 5.6.7.8", "5.6.7.8"),
        ("10.0.0.0/8", "11.0.0.1", "9.9.9.9", "11.0.0.1"),
        ("10.0.0.0/8, 11.0.0.1", "11.0.0.1", "9.9.9.9", "9.9.9.9"),
        ("loopback", "127.0.0.1", "9.9.9.9", "9.9.9.9"),
        ("uniquelocal", "::ffff:192.168.1.1", "9.9.9.9", "9.9.9.9"),
    ],
)
def test_whose_address_counts(settings, setting, peer, header, expected):
    settings.TRUST_PROXY = setting
    assert ratelimit.client_ip(peer, header) == expected


def test_a_wrong_trust_setting_is_named(settings):
    with pytest.raises(ImproperlyConfigured, match="AGENTX_TRUST_PROXY must be true, a hop count or CIDRs"):
        ratelimit.trust_of("everybody")


def test_the_start_names_it_too(monkeypatch):
    from config.startup import ConfigurationError, check_configuration

    monkeypatch.setenv("AGENTX_TRUST_PROXY", "10.0.0.0/33")
    with pytest.raises(ConfigurationError, match="AGENTX_TRUST_PROXY must be true, a hop count or CIDRs"):
        check_configuration()
    monkeypatch.setenv("AGENTX_TRUST_PROXY", "10.0.0.0/8, loopback")
    check_configuration()


def test_the_wall_clock_may_jump():
    with time_machine.travel("2030-01-01"):
        assert ratelimit.hit("data", "10.0.0.1")[0]
