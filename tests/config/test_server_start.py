"""`agentx-server` as a user starts it: banner, logs, home, twice, two at once, stop, refusals."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.support.server import clean_environment, free_port, running_server, start_server, temporary_database


def get(url: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status, answer.read().decode()


def test_a_fresh_home_serves_at_once_and_prints_the_two_banner_lines():
    with running_server() as server:
        assert get(f"{server.base_url}/health") == (200, '{"status":"ok"}')
        banner = [line for line in server.lines if not line.startswith("{")]
        assert banner == [
            f"AgentX self-host engine listening on http://localhost:{server.port}",
            f"Default project API key: {server.key}",
        ]
        assert server.key.startswith("agtx_local_")
        for line in server.lines:
            if line not in banner:
                assert {"time", "level", "logger", "message"} <= json.loads(line).keys()
        config = json.loads((server.home / "config.json").read_text())
        assert config["apiKey"] == server.key
        assert (server.home / "config.json").stat().st_mode & 0o077 == 0
        assert server.stop() == 0


def test_the_second_start_keeps_the_key(tmp_path):
    with running_server(home=tmp_path) as first:
        key = first.key
    with running_server(home=tmp_path) as second:
        if first.process.args and not second.output.count("postgres"):
            assert second.key == key


def test_two_servers_at_once_prepare_one_database(tmp_path):
    servers = [start_server(tmp_path, wait=False) for _ in range(2)]
    try:
        for server in servers:
            server.wait_until_healthy()
        assert servers[0].key == servers[1].key
        assert [server.stop() for server in servers] == [0, 0]
    finally:
        for server in servers:
            server.process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_during_the_start_ends_it_with_zero(tmp_path, number):
    server = start_server(tmp_path, wait=False)
    deadline = time.monotonic() + 30
    # The lock file is the first thing a start writes.
    while not (tmp_path / ".start.lock").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert server.stop(number) == 0
    with running_server(home=tmp_path) as again:
        assert get(f"{again.base_url}/health")[0] == 200


def run(home, *arguments, cwd=None, **env):
    return subprocess.run(
        [sys.executable, "-m", "config.server", *arguments],
        env=clean_environment(home, **env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "abc", "PORT must be a whole number"),
        ("PORT", "70000", "PORT must be at most 65535"),
        ("AGENTX_RATE_LIMIT", "maybe", "AGENTX_RATE_LIMIT must be true or false"),
        ("AGENTX_INGEST_QUEUE_MAX", "-5", "AGENTX_INGEST_QUEUE_MAX must be a whole number"),
        ("AGENTX_LOG_LEVEL", "loud", "AGENTX_LOG_LEVEL must be"),
        ("AGENTX_DB_URL", "mysql://x/y", "AGENTX_DB_URL must be a postgres:// address"),
        ("AGENTX_BROKER_URL", "sqs://x", "AGENTX_BROKER_URL must be a redis:// or amqp:// address"),
        ("AGENTX_AUTH", "enabled", "AGENTX_AUTH=enabled is not available"),
        ("AGENTX_AUTH", "sometimes", "AGENTX_AUTH must be disabled or enabled"),
        ("AGENTX_TELEMETRY_URL", "http://ch:8123/db", "AGENTX_TELEMETRY_URL is not available"),
    ],
)
def test_what_cannot_be_honoured_is_refused_in_one_line(tmp_path, name, value, told):
    result = run(tmp_path, **{"PORT": str(free_port()), name: value})
    assert result.returncode == 2
    assert told in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "agentx.db").exists()


def test_a_home_that_cannot_be_is_told_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for home in ("/proc/no-such-home", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        result = run(home, cwd=tmp_path, PORT=str(free_port()))
        assert result.returncode == 2
        assert result.stderr.startswith("agentx-server: AGENTX_HOME ")
        assert len(result.stderr.strip().splitlines()) == 1


def test_a_port_in_use_is_told_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = run(tmp_path, "--port", str(taken.getsockname()[1]), AGENTX_HOST="127.0.0.1")
    assert result.returncode == 1
    assert "is in use" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_database_that_is_away_is_told_without_its_password(tmp_path):
    result = run(tmp_path, PORT=str(free_port()), AGENTX_DB_URL="postgres://u:hunter2@127.0.0.1:5432/no_such_db_here")
    assert result.returncode == 1
    assert "cannot connect to the database" in result.stderr
    assert "hunter2" not in result.stderr + result.stdout


def test_a_newer_schema_is_refused(tmp_path):
    import contextlib
    import sqlite3

    with running_server(home=tmp_path, db_url="") as server:
        server.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "agentx.db")) as connection, connection:
        connection.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('core', '9999_future', '2030-01-01')"
        )
    result = run(tmp_path, PORT=str(free_port()))
    assert result.returncode == 1
    assert "newer version" in result.stderr
    assert "core.9999_future" in result.stderr


def test_help_lists_every_variable(tmp_path):
    from config.env import VARIABLES

    result = run(tmp_path, "--help")
    assert result.returncode == 0
    for name, variable in VARIABLES.items():
        assert name in result.stdout
        if variable.flag:
            assert variable.flag in result.stdout


def test_flags_of_the_launcher_are_accepted(tmp_path):
    arguments = ["--dev", "--upgrade", "--engine-bin", "/nowhere/engine"]
    with running_server(home=tmp_path, arguments=arguments) as server:
        assert get(f"{server.base_url}/health")[0] == 200
        assert "--upgrade: the dashboard ships with the server" in server.output
        assert "--engine-bin is ignored" in server.output


def test_multi_tenant_alone_is_ignored_with_a_warning():
    with running_server(env={"AGENTX_MULTI_TENANT": "true"}) as server:
        warning = next(json.loads(line) for line in server.lines if "AGENTX_MULTI_TENANT" in line)
        assert warning["level"] == "warning"


def test_debug_adds_a_line_for_each_request():
    with running_server(env={"AGENTX_LOG_LEVEL": "debug"}) as server:
        get(f"{server.base_url}/health", **{"x-request-id": "my-request-1"})
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.lines if line.startswith("{")]
        line = next(line for line in lines if line.get("request_id") == "my-request-1")
        assert (line["path"], line["status"]) == ("/health", 200)


@pytest.mark.postgres
def test_a_second_home_on_the_same_postgres_reads_what_the_first_stored(tmp_path):
    import os

    if not os.environ.get("AGENTX_TEST_DB_URL"):
        pytest.skip("needs AGENTX_TEST_DB_URL")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with temporary_database() as url:
        with running_server(home=tmp_path / "one", db_url=url) as first:
            key = first.key
        # A container without a volume comes back with an empty home.
        with running_server(home=tmp_path / "two", db_url=url) as second:
            assert second.key == key


def test_the_demo_is_loaded_while_the_server_runs_and_keeps_to_json_lines():
    with running_server(arguments=["--demo"]) as server:
        deadline = time.monotonic() + 120
        names: set[str] = set()
        while "Demo project" not in server.output and time.monotonic() < deadline:
            time.sleep(0.2)
        names = {
            project["name"]
            for project in json.loads(get(f"{server.api_url}/projects", **{"x-api-key": server.key})[1])["projects"]
        }
        assert len(names) == 2
        assert server.stop() == 0
        assert len([line for line in server.lines if not line.startswith("{")]) == 2
