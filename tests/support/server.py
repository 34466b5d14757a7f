"""Start the product the way a user does, for tests that talk to it over the wire.

    with running_server() as server:
        httpx.get(f"{server.base_url}/health")

`server.key` is the default project's key as printed at start. Everything a test leaves behind ends with the block.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass
class RunningServer:
    """A started server: where it answers, its default project's key, its process, its home and its output."""

    port: int
    home: Path
    process: subprocess.Popen[str]
    db_url: str = ""
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        """http://127.0.0.1:<port>, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        """The base URL the SDK wants: with /api/v1."""
        return f"{self.base_url}/api/v1"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self.process.pid

    @property
    def key(self) -> str:
        """The default project's key, from the banner."""
        marker = "Default project API key: "
        return next(line[len(marker) :] for line in self.lines if line.startswith(marker))

    @property
    def output(self) -> str:
        """Everything printed so far."""
        return "\n".join([*self.lines, *self.errors])

    def wait_until_healthy(self) -> None:
        """Return once the banner is out and /health answers; raises with the output when the process ends first."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                time.sleep(0.1)
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.output}")
            if any(line.startswith("Default project API key: ") for line in list(self.lines)):
                with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                    urllib.request.urlopen(f"{self.base_url}/health", timeout=5).read()
                    return
            time.sleep(0.02)
        raise AssertionError(f"the server was not healthy within {START_SECONDS} s:\n{self.output}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and answer the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


def wait_for_exit(process: subprocess.Popen[str], seconds: float = STOP_SECONDS) -> int:
    """The exit code, once it is there."""
    return process.wait(seconds)


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """The environment of a plain user: none of our variables except those given."""
    from config.env import VARIABLES

    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in VARIABLES and not name.startswith(("AGENTX_", "DJANGO_"))
    }
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "AGENTX_HOME": str(home), **extra}


def start_server(
    home: Path,
    *,
    port: int | None = None,
    env: Mapping[str, str] | None = None,
    db_url: str | None = None,
    arguments: Sequence[str] = (),
    worker: bool = False,
    wait: bool = True,
    script: str | None = None,
) -> RunningServer:
    """Start `python -m config.server` (or a script that ends in its main) in this home; the caller ends it.

    The embedded worker and gRPC are off unless asked for, so that a test file's many servers stay light.
    """
    port = port or free_port()
    defaults = {"AGENTX_HOST": "127.0.0.1", "AGENTX_OTLP_GRPC_PORT": "0", "AGENTX_WORKER": "on" if worker else "off"}
    if db_url:
        defaults["AGENTX_DB_URL"] = db_url
    process = subprocess.Popen(
        [sys.executable, *(("-c", script) if script else ("-m", "config.server")), "--port", str(port), *arguments],
        env=clean_environment(home, **{**defaults, **(env or {})}),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    server = RunningServer(port=port, home=home, process=process, db_url=db_url or "")
    for stream, lines in ((process.stdout, server.lines), (process.stderr, server.errors)):
        threading.Thread(target=_collect, args=(stream, lines), daemon=True).start()
    if wait:
        try:
            server.wait_until_healthy()
        except BaseException:
            process.kill()
            process.wait(10)
            raise
    return server


def _collect(stream: object, lines: list[str]) -> None:
    for line in stream:  # type: ignore[attr-defined]
        lines.append(line.rstrip("\n"))


@contextlib.contextmanager
def running_server(
    *,
    home: Path | None = None,
    env: Mapping[str, str] | None = None,
    db_url: str | None = None,
    port: int | None = None,
    arguments: Sequence[str] = (),
    worker: bool = False,
    script: str | None = None,
) -> Iterator[RunningServer]:
    """A healthy server in a temporary home (or the given one), stopped at the end of the block.

    With AGENTX_TEST_DB_URL set and no `db_url`, the server gets an empty Postgres database of its own.
    """
    with contextlib.ExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentx-server-")))
        if db_url is None and os.environ.get("AGENTX_TEST_DB_URL"):
            db_url = stack.enter_context(temporary_database())
        server = start_server(
            home, port=port, env=env, db_url=db_url, arguments=arguments, worker=worker, script=script
        )
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
            try:
                server.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait(10)


@contextlib.contextmanager
def temporary_database() -> Iterator[str]:
    """The URL of an empty Postgres database beside AGENTX_TEST_DB_URL, dropped at the end."""
    import secrets
    from urllib.parse import urlsplit, urlunsplit

    import psycopg

    parts = urlsplit(os.environ["AGENTX_TEST_DB_URL"])
    name = f"axserver_{secrets.token_hex(6)}"
    maintenance = urlunsplit(parts._replace(path="/postgres"))
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield urlunsplit(parts._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
