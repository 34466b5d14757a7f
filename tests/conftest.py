"""Fixtures shared by the whole suite."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fresh_caches():
    """Each test rolls its rows back, so what a process remembers of them goes too."""
    from apps.analytics.day_cache import CACHE
    from apps.core import ratelimit
    from apps.llm import pricing
    from apps.projects.services.keys import forget_cached_keys
    from apps.tracing.ingest import checks

    forget_cached_keys()
    checks.forget()
    pricing.forget()
    ratelimit.forget()
    CACHE.clear()


@pytest.fixture
def project(db):
    """The default project of a fresh install, with its key in `project.key`."""
    from apps.projects.services.projects import ensure_default_project

    project, key = ensure_default_project()
    project.key = key
    return project


@pytest.fixture
def fake_provider():
    """A model provider on loopback that answers what the test scripts; see tests/support/providers.py."""
    from tests.support.providers import running_provider

    with running_provider() as provider:
        yield provider
