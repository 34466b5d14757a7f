"""The embedded worker: it does what is queued, loses nothing to kill -9, and never outlives its server."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.server import ROOT, clean_environment, running_server, temporary_database

PROBE_APP = ROOT / "tests" / "support"


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def children_of(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError):
            found += [int(child) for child in task.read_text().split()]
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")


@needs_proc
def test_the_worker_ends_with_its_server_also_by_kill_9():
    with running_server(worker=True) as server:
        assert wait_for(lambda: bool(children_of(server.pid)))
        child = children_of(server.pid)[0]
        server.process.kill()
        server.process.wait(10)
        assert wait_for(lambda: not alive(child))


@needs_proc
def test_a_worker_that_dies_is_started_again_and_stops_with_the_server():
    with running_server(worker=True) as server:
        assert wait_for(lambda: "celery@" in server.output and "ready" in server.output)
        child = children_of(server.pid)[0]
        os.kill(child, signal.SIGKILL)
        assert wait_for(lambda: bool(children_of(server.pid)) and children_of(server.pid)[0] != child)
        second = children_of(server.pid)[0]
        assert "the embedded worker ended" in server.output
        assert server.stop() == 0
        assert not alive(second)


@contextlib.contextmanager
def own_database(tmp_path: Path):
    """Environment of processes that share one fresh database."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(temporary_database()) if os.environ.get("AGENTX_TEST_DB_URL") else ""
        env = clean_environment(
            tmp_path,
            AGENTX_DB_URL=url,
            DJANGO_SETTINGS_MODULE="tests.support.probe_settings",
            AGENTX_PROBE_DIR=str(tmp_path),
        )
        run_manage(env, "migrate", "-v0")
        yield env


def run_manage(env: dict[str, str], *arguments: str) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments], env=env, check=True, timeout=120, capture_output=True
    )


def queue(env: dict[str, str], names: list[str]) -> None:
    code = (
        "import django; django.setup()\n"
        "from apps.core.jobs import enqueue\n"
        f"for name in {names!r}: enqueue('tests.support.probe.slow_task', name=name)\n"
    )
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)


def start_worker(env: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "config.server", "worker", "--no-beat", *arguments],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_no_task_is_lost_when_the_worker_is_killed_at_work(tmp_path):
    names = [f"task-{number}" for number in range(6)]
    with own_database(tmp_path) as env:
        queue(env, names)
        first = start_worker(env)
        # Two are at work (they have started and not finished) when the worker is killed.
        assert wait_for(lambda: len(list(tmp_path.glob("*.started"))) >= 2)
        first.kill()
        first.wait(10)
        (tmp_path / "go").touch()
        second = start_worker(env)
        try:
            assert wait_for(lambda: len(list(tmp_path.glob("*.done"))) == len(names), seconds=120)
        finally:
            second.terminate()
            assert second.wait(30) == 0
        assert {file.stem for file in tmp_path.glob("*.done")} == set(names)


def test_a_worker_that_is_stopped_gives_back_what_it_did_not_begin(tmp_path):
    with own_database(tmp_path) as env:
        queue(env, ["one", "two", "three", "four"])
        first = start_worker(env, "--concurrency", "1")
        assert wait_for(lambda: bool(list(tmp_path.glob("*.started"))))
        first.terminate()
        (tmp_path / "go").touch()
        assert first.wait(60) == 0
        second = start_worker(env)
        try:
            assert wait_for(lambda: len(list(tmp_path.glob("*.done"))) == 4)
        finally:
            second.terminate()
            second.wait(30)


@pytest.mark.redis
def test_the_same_tasks_run_over_redis(tmp_path):
    url = os.environ.get("AGENTX_TEST_REDIS_URL")
    if not url:
        pytest.skip("needs AGENTX_TEST_REDIS_URL")
    with own_database(tmp_path) as env:
        env["AGENTX_BROKER_URL"] = url
        (tmp_path / "go").touch()
        queue(env, ["over-redis"])
        worker = start_worker(env)
        try:
            assert wait_for(lambda: (tmp_path / "over-redis.done").exists())
        finally:
            worker.terminate()
            assert worker.wait(30) == 0
