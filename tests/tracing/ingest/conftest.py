"""Fixtures of ingest tests."""

from tests.support.reads import api  # noqa: F401
