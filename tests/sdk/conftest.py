"""One server for a module, and for each test a project of its own with the published client inside it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from agentx import AgentX

from tests.sdk.recording import Recording
from tests.support.server import RunningServer, running_server


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server started as a user starts it; its limits are other tests' matter."""
    with running_server(env={"AGENTX_RATE_LIMIT": "off"}) as started:
        yield started


@pytest.fixture
def recording(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[Recording]:
    """An empty project and its client; the client's warnings (a dropped trace) fail the test."""
    project = AgentX(api_key=server.key, base_url=server.api_url).projects.create(request.node.name[:60])
    client = AgentX(api_key=project["apiKey"], base_url=server.api_url)
    yield Recording(client, project["_id"])
    assert client.close(timeout=30)
    assert client._ingest_client._dropped == 0


@pytest.fixture(autouse=True)
def quiet_libraries(caplog: pytest.LogCaptureFixture) -> None:
    """HTTP libraries tell every request; that is noise here."""
    for name in ("httpx", "httpx2", "httpcore", "urllib3"):
        caplog.set_level(logging.WARNING, logger=name)
