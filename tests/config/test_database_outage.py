"""Postgres restarted under load: clear refusals meanwhile, nothing acknowledged lost, everything back by itself."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import RunningServer, free_port, running_server

BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
pytestmark = pytest.mark.skipif(not BINARIES, reason="needs a Postgres installation in /usr/lib/postgresql")


class Cluster:
    """A private Postgres that a test may stop and start."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        folder.chmod(0o755)
        for name in ("data", "run"):
            (folder / name).mkdir()
            if os.getuid() == 0:
                subprocess.run(["chown", "postgres", str(folder / name)], check=True)
        self._run("initdb", "-D", f"{folder}/data", "-U", "agentx", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")

    @property
    def url(self) -> str:
        return f"postgres://agentx@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}/run -c fsync=off"
        )
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/data/log", "-o", options, "start")

    def stop(self, mode: str) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    @staticmethod
    def _run(program: str, *arguments: str) -> None:
        as_postgres = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        subprocess.run(
            [*as_postgres, f"{BINARIES[-1]}/{program}", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=90,
        )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="agentx-pg-") as folder:
        running = Cluster(Path(folder))
        running.start()
        try:
            yield running
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                running.stop("immediate")


def ask(server: RunningServer, path: str, body: dict | None = None) -> tuple[int, dict, str | None]:
    request = urllib.request.Request(
        f"{server.base_url}{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"x-api-key": server.key, "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read()), None
    except urllib.error.HTTPError as error:
        text = error.read()
        is_json = error.headers["content-type"].startswith("application/json")
        return error.code, json.loads(text) if is_json else {}, error.headers["retry-after"]


def test_postgres_restarted_under_load(cluster):
    with running_server(db_url=cluster.url, worker=True, env={"AGENTX_RATE_LIMIT": "off"}) as server:
        done, counts, stored = threading.Event(), Counter(), []

        def send(name: str) -> None:
            number = 0
            while not done.is_set():
                number += 1
                span_id = f"{name}-{number}"
                status, _, _ = ask(server, "/api/v1/ingest/traces", {"name": "agent", "spanId": span_id})
                counts[status] += 1
                if status == 200:
                    stored.append(span_id)
                else:
                    time.sleep(0.05)

        senders = [threading.Thread(target=send, args=(f"sender{number}",)) for number in range(4)]
        for sender in senders:
            sender.start()
        try:
            while len(stored) < 100:
                time.sleep(0.05)
            cluster.stop("fast")
            status, body, retry_after = ask(server, "/api/v1/ingest/traces")
            assert (status, set(body), retry_after) == (503, {"error"}, "2")
            assert ask(server, "/traces")[0] == 503
            assert ask(server, "/health")[0] == 200
            cluster.start()
            known = len(stored)
            deadline = time.monotonic() + 60
            while len(stored) < known + 100 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(stored) >= known + 100
        finally:
            done.set()
            for sender in senders:
                sender.join(90)
        assert set(counts) <= {200, 503}
        assert ask(server, "/api/v1/ingest/traces")[0] == 200
        for span_id in stored:
            assert ask(server, "/api/v1/ingest/traces", {"name": "agent", "spanId": span_id})[1]["deduped"] is True
        assert server.stop() == 0
        assert "EMERGENCY" not in server.output
        assert "RestartFreqExceeded" not in server.output
