"""The server under load: one that runs already (`--base-url`), or one of our own, started as a user starts it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks import load, probes

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 120.0
STOP_SECONDS = 40.0
_BANNER_KEY = "Default project API key: "
# Load from one address would meet the limit of requests a minute before it met the server's.
_ENVIRONMENT = {"AGENTX_RATE_LIMIT": "off", "AGENTX_HOST": "127.0.0.1", "PYTHONUNBUFFERED": "1"}


@dataclass
class Target:
    """Where the server answers and what is known about it. Without `pid` no CPU or memory is told."""

    base_url: str
    key: str
    pid: int | None = None
    home: Path | None = None
    db_url: str = ""
    count_postgres: bool = False
    process: subprocess.Popen[bytes] | None = None
    ready_seconds: float | None = None
    api: str = "/api/v1"
    _postgres: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        if self.host not in ("127.0.0.1", "localhost", "::1"):
            raise SystemExit("the load goes to this machine only: give a loopback --base-url")
        if self.count_postgres:
            self._postgres = probes.postgres_root()

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"x-api-key": self.key, "Accept": "application/json"}

    def cpu_seconds(self) -> float:
        """CPU seconds of the server's processes so far, and of Postgres' when asked for."""
        return probes.cpu_seconds(self.pid) + probes.cpu_seconds(self._postgres)

    def quiet_cpu_seconds(self, limit: float = 30.0) -> float:
        """The same once background work has calmed down (or the limit is over)."""
        last, deadline = self.cpu_seconds(), time.monotonic() + limit
        while self.pid is not None and time.monotonic() < deadline:
            time.sleep(0.5)
            now = self.cpu_seconds()
            if now - last < 0.06:
                return now
            last = now
        return last

    def get(self, path: str) -> Any:
        """The JSON of a route below /api/v1."""
        return self._ask("GET", self.api + path)

    def post(self, path: str, body: bytes, kind: str = "application/json") -> Any:
        """The JSON of a POST below /api/v1."""
        return self._ask("POST", self.api + path, body, kind)

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            headers = self.headers | ({"Content-Type": kind} if kind else {})
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read()
            if response.status >= 300:
                raise SystemExit(f"{method} {path} answered {response.status}: {text[:200]!r}")
            return json.loads(text)
        finally:
            connection.close()

    def read(self, path: str) -> bytes:
        """The bytes of a GET request below /api/v1."""
        return load.request("GET", self.api + path, host=f"{self.host}:{self.port}", headers=self.headers)

    def write(self, path: str, body: bytes, kind: str) -> bytes:
        """The bytes of a POST request below /api/v1."""
        return load.request(
            "POST", self.api + path, host=f"{self.host}:{self.port}", headers=self.headers, body=body, kind=kind
        )

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the server we started, and what it started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)


def start(home: Path, *, db_url: str = "", count_postgres: bool = False) -> Target:
    """Start `agentx-server` on a free port in this home; `ready_seconds` is from there to the first healthy answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AGENTX_")}
    environment |= _ENVIRONMENT | {"AGENTX_HOME": str(home), "PYTHONPATH": str(ROOT), "AGENTX_OTLP_GRPC_PORT": "0"}
    if db_url:
        environment["AGENTX_DB_URL"] = db_url
    log = home / "server.log"
    began = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "config.server", "--port", str(port)],
            env=environment,
            cwd=home,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    ready = _wait(process, port, began, log)
    key = next(
        line.split(_BANNER_KEY)[1].strip() for line in log.read_text().splitlines() if line.startswith(_BANNER_KEY)
    )
    return Target(
        base_url=f"http://127.0.0.1:{port}",
        key=key,
        pid=process.pid,
        home=home,
        db_url=db_url,
        count_postgres=count_postgres,
        process=process,
        ready_seconds=round(ready, 3),
    )


def _wait(process: subprocess.Popen[bytes], port: int, began: float, log: Path) -> float:
    while time.perf_counter() - began < START_SECONDS:
        if process.poll() is not None:
            raise SystemExit(f"the server ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            healthy = connection.getresponse().status == 200
            connection.close()
            if healthy:
                return time.perf_counter() - began
        except OSError:
            pass
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    raise SystemExit(f"the server was not healthy within {START_SECONDS} s:\n{log.read_text()[-2000:]}")


@contextlib.contextmanager
def own_server(*, db_url: str = "", count_postgres: bool = False, home: Path | None = None) -> Iterator[Target]:
    """A server of our own for a block, in a temporary home unless one is given."""
    with contextlib.ExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentx-bench-")))
        target = start(home, db_url=db_url, count_postgres=count_postgres)
        try:
            yield target
        finally:
            target.stop()


def path_part(text: str) -> str:
    """A value as one part of a path."""
    return quote(text, safe="")
