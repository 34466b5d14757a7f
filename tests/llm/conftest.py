"""A client that speaks with the default project's key."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient


@pytest.fixture
def api(project) -> APIClient:
    client = APIClient(headers={"x-api-key": project.key})
    client.default_format = "json"
    return client
