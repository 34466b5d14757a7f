"""The fixtures of read tests."""

from tests.support.reads import api, other_api, other_project, span  # noqa: F401
