"""What ingest does when things break: a full queue, a locked, failing or full store, quotas, restarts, crashes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.server import running_server, start_server

URL = "/api/v1/ingest/traces"
FULL = {"error": "Ingest queue is full - retry with backoff (Retry-After: 1s)."}
UNAVAILABLE = {"error": "Trace storage is unavailable - the span was not stored; retry."}
ON_POSTGRES = bool(os.environ.get("AGENTX_TEST_DB_URL"))
sqlite_only = pytest.mark.skipif(ON_POSTGRES, reason="needs the SQLite file as the store")
postgres_only = pytest.mark.skipif(not ON_POSTGRES, reason="needs AGENTX_TEST_DB_URL")


logging.getLogger("httpx").setLevel(logging.WARNING)
# One client: making one costs more than a request.
http = httpx.Client(timeout=60, verify=False, limits=httpx.Limits(max_keepalive_connections=0))


def post(server, **body):
    """One span as a client sends it."""
    return http.post(server.base_url + URL, json={"name": "a", **body}, headers={"x-api-key": server.key})


def total(server):
    """How many traces the list counts."""
    answer = http.get(server.base_url + URL, headers={"x-api-key": server.key}, timeout=30)
    return answer.json()["totalCount"]


def metric(server, name):
    """A value of /metrics."""
    text = http.get(f"{server.base_url}/metrics").text
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


@contextlib.contextmanager
def locked(home):
    """Hold SQLite's write lock."""
    raw = sqlite3.connect(home / "agentx.db", isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        raw.execute("ROLLBACK")
        raw.close()


@sqlite_only
def test_a_blocked_store_fills_the_queue_then_answers_503_then_resumes():
    with running_server(env={"AGENTX_INGEST_QUEUE_MAX": "1", "AGENTX_RATE_LIMIT": "off"}) as server:
        assert post(server, spanId="before").status_code == 200
        with locked(server.home), ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(post, server, spanId="x")
            time.sleep(0.5)
            refused = post(server, spanId="y")
            assert (refused.status_code, refused.json(), refused.headers["retry-after"]) == (429, FULL, "1")
            assert httpx.get(f"{server.base_url}/health").status_code == 200
            answer = waiting.result()
            assert (answer.status_code, answer.json(), answer.headers["retry-after"]) == (503, UNAVAILABLE, "2")
        assert metric(server, "agentx_ingest_spans_rejected_total") == 1
        assert metric(server, "agentx_ingest_spans_dropped_total") == 1
        again = post(server, spanId="x")
        assert again.status_code == 200 and again.json()["deduped"] is False
        assert total(server) == 2


@sqlite_only
def test_a_short_lock_is_waited_out():
    with running_server() as server:
        assert post(server).status_code == 200
        with ThreadPoolExecutor(1) as pool:
            with locked(server.home):
                waiting = pool.submit(post, server)
                time.sleep(0.8)
            assert waiting.result().status_code == 200
        assert metric(server, "agentx_ingest_spans_dropped_total") == 0


@sqlite_only
def test_a_row_the_store_refuses_never_fails_its_neighbours():
    with running_server(env={"AGENTX_RATE_LIMIT": "off"}) as server:
        raw = sqlite3.connect(server.home / "agentx.db", isolation_level=None, timeout=10)
        raw.execute(
            "CREATE TRIGGER poison BEFORE INSERT ON tracing_span WHEN NEW.name = 'poison'"
            " BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        raw.close()
        names = ["good", "poison"] * 20
        with ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(lambda name: (name, post(server, name=name).status_code), names))
        assert set(answers) == {("good", 200), ("poison", 503)}
        assert total(server) == 20


@sqlite_only
def test_a_full_disk_answers_503_and_ingest_resumes_when_there_is_room():
    with running_server() as server:
        assert post(server).status_code == 200
        size = sum(path.stat().st_size for path in server.home.iterdir() if path.is_file())
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (min(size, 64 * 1024), hard))
        answer = post(server, input="x" * 90_000)
        assert (answer.status_code, answer.json()) == (503, UNAVAILABLE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert post(server).status_code == 200
        assert total(server) == 2


@sqlite_only
def test_the_log_never_fills_the_disk_it_is_on(tmp_path):
    """On a small disk many small commits write far more into the log than into the database. The log must be copied
    back long before it has taken the room that copying needs, and a disk that was full must be usable once emptied."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        with running_server(home=disk, env={"AGENTX_RATE_LIMIT": "off"}) as server:
            acknowledged = []

            def send(number):
                if post(server, spanId=f"s{number}", input="x" * 300).status_code == 200:
                    acknowledged.append(f"s{number}")

            # One after the other: each is a commit of its own, some 100 KB of log each.
            for number in range(700):
                send(number)
            assert len(acknowledged) == 700
            filler = disk / "filler"
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 65536)
            refused = 0
            for number in range(1000, 1100):
                answer = post(server, spanId=f"s{number}", input="y" * 5000)
                refused += answer.status_code == 503
                assert answer.status_code in (200, 503)
                if answer.status_code == 200:
                    acknowledged.append(f"s{number}")
                if refused == 3:
                    break
            assert refused
            assert httpx.get(server.base_url + URL, headers={"x-api-key": server.key}, timeout=30).status_code == 200
            filler.unlink()
            send(2000)
            assert acknowledged[-1] == "s2000"
            assert set(acknowledged) <= set(stored_ids(server)[0])
    finally:
        subprocess.run(["umount", str(disk)], check=True, capture_output=True)


def test_the_quota_counts_roots_of_the_day_and_lets_replays_and_children_pass():
    with running_server(env={"AGENTX_QUOTA_TRACES_PER_DAY": "2"}) as server:
        assert post(server, spanId="1").status_code == 200
        old = str((time.time_ns() // 10**9 - 7 * 86_400) * 10**9)
        assert post(server, spanId="2", startedAtUnixNano=old, source="eval-run").status_code == 200
        refused = post(server, spanId="3")
        assert refused.status_code == 429 and "retry-after" not in refused.headers
        text = refused.json()["error"]
        assert text.startswith("Daily trace quota reached (") and "AGENTX_QUOTA_TRACES_PER_DAY" in text
        assert "midnight" in text
        assert post(server, spanId="1").json()["deduped"] is True
        assert post(server, spanId="4", parentSpanId="1").status_code == 200
        created = httpx.post(
            f"{server.api_url}/projects", json={"name": "other"}, headers={"x-api-key": server.key}
        ).json()
        other = created.get("apiKey") or created["project"]["apiKey"]
        answer = httpx.post(server.base_url + URL, json={"name": "a", "spanId": "1"}, headers={"x-api-key": other})
        assert answer.status_code == 200 and answer.json()["deduped"] is False


@sqlite_only
def test_the_log_file_stays_bounded_and_shrinks_and_a_hot_backup_opens(tmp_path):
    with running_server(home=tmp_path, env={"AGENTX_RATE_LIMIT": "off"}) as server:
        load = Load([server])
        time.sleep(1.0)
        source, copy = sqlite3.connect(tmp_path / "agentx.db"), sqlite3.connect(tmp_path / "copy.db")
        source.backup(copy)
        source.close()
        acknowledged = load.stop()
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        copied = {row[0] for row in copy.execute("SELECT span_id FROM tracing_span")}
        copy.close()
        assert copied and len(copied) <= len(acknowledged) + 8
        log = tmp_path / "agentx.db-wal"
        deadline = time.monotonic() + 20
        while log.stat().st_size > 1024 * 1024 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert log.stat().st_size <= 1024 * 1024
        raw = sqlite3.connect(tmp_path / "agentx.db")
        assert raw.execute("PRAGMA page_size").fetchone() == (16384,)
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        raw.close()
        assert set(acknowledged) <= set(stored_ids(server)[0])


class Load:
    """Senders that post distinct spans until told to stop, and remember which were acknowledged."""

    def __init__(self, servers, senders=8, prefix=""):
        self._prefix = prefix
        self.acknowledged: list[str] = []
        self.codes: set[object] = set()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(servers[n % len(servers)], n), daemon=True)
            for n in range(senders)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, server, number):
        with httpx.Client(
            base_url=server.base_url, headers={"x-api-key": server.key}, timeout=20, verify=False
        ) as http:
            count = 0
            while not self._stop.is_set():
                span_id = f"{self._prefix}{number}-{count}"
                count += 1
                try:
                    answer = http.post(URL, json={"name": "load", "spanId": span_id, "input": "x" * 500})
                except httpx.HTTPError:
                    self.codes.add("lost")
                    time.sleep(0.02)
                    continue
                self.codes.add(answer.status_code)
                if answer.status_code == 200:
                    self.acknowledged.append(span_id)

    def stop(self):
        """End the load; returns the acknowledged span ids."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        return self.acknowledged


def stored_ids(server):
    """Span ids the list knows."""
    found, cursor = [], None
    with httpx.Client(base_url=server.base_url, headers={"x-api-key": server.key}, timeout=30, verify=False) as http:
        while True:
            page = http.get(URL, params={"limit": 100, **({"cursor": cursor} if cursor else {})}).json()
            found += [trace["spanId"] for trace in page["traces"]]
            cursor = page["nextCursor"]
            if cursor is None:
                return found, page["totalCount"]


def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path):
    from tests.support.server import temporary_database

    with contextlib.ExitStack() as stack:
        db_url = stack.enter_context(temporary_database()) if ON_POSTGRES else None
        acknowledged: list[str] = []
        for round_number in range(3):
            server = start_server(tmp_path, db_url=db_url, env={"AGENTX_RATE_LIMIT": "off"})
            try:
                load = Load([server], prefix=f"{round_number}-")
                time.sleep(1.0)
                server.process.kill()
                server.process.wait(10)
                acknowledged += load.stop()
            finally:
                server.process.kill()
        server = start_server(tmp_path, db_url=db_url, env={"AGENTX_RATE_LIMIT": "off"})
        try:
            found, count = stored_ids(server)
            assert len(acknowledged) > 100
            assert set(acknowledged) <= set(found)
            assert len(found) == len(set(found)) == count
        finally:
            server.stop()


def test_sigterm_drains_what_was_accepted(tmp_path):
    with running_server(home=tmp_path, env={"AGENTX_RATE_LIMIT": "off"}) as server:
        load = Load([server], senders=16)
        time.sleep(1.0)
        assert server.stop() == 0
        acknowledged = load.stop()
        assert load.codes <= {200, 503, "lost"}
        if not ON_POSTGRES:
            with sqlite3.connect(tmp_path / "agentx.db") as raw:
                found = {row[0] for row in raw.execute("SELECT span_id FROM tracing_span")}
            assert set(acknowledged) <= found


@postgres_only
def test_two_processes_on_one_database_keep_every_promise(tmp_path):
    from tests.support.server import temporary_database

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with temporary_database() as url:
        env = {"AGENTX_RATE_LIMIT": "off", "AGENTX_AUTH_SECRET": "s" * 40, "AGENTX_QUOTA_TRACES_PER_DAY": "1000000"}
        one = start_server(tmp_path / "one", db_url=url, env=env)
        two = start_server(tmp_path / "two", db_url=url, env=env)
        try:
            jobs = []
            for n in range(60):
                root, child = {"name": f"agent {n % 3}", "spanId": f"r{n}", "sessionId": f"s{n % 7}"}, None
                child = {"name": "c", "spanId": f"c{n}", "parentSpanId": f"r{n}", "inputTokens": 5}
                for server in (one, two):
                    jobs += [(server, root), (server, child)]
            jobs.sort(key=lambda job: hash((job[0].port, json.dumps(job[1]))))
            with ThreadPoolExecutor(24) as pool:
                answers = list(pool.map(lambda job: (job[1]["spanId"], post(job[0], **job[1])), jobs))
            assert {answer.status_code for _, answer in answers} == {200}
            ids: dict[str, set[str]] = {}
            for span_id, answer in answers:
                ids.setdefault(span_id, set()).add(answer.json()["traceId"])
            assert all(len(found) == 1 for found in ids.values())
            assert sum(answer.json()["deduped"] for _, answer in answers) == 120
            agents = httpx.get(f"{two.api_url}/agents", headers={"x-api-key": two.key}).json()["agents"]
            assert sorted(agent["name"] for agent in agents) == ["agent 0", "agent 1", "agent 2"]
            assert total(one) == total(two) == 60
            import psycopg

            with psycopg.connect(url) as raw:
                loose = raw.execute("SELECT count(*) FROM tracing_span WHERE root_id IS NULL").fetchone()[0]
                used = raw.execute("SELECT used FROM projects_quotausage WHERE kind = 'traces'").fetchone()[0]
                sessions = raw.execute("SELECT sum(span_count), sum(turn_count) FROM tracing_session").fetchone()
            assert (loose, used, tuple(map(int, sessions))) == (0, 60, (120, 60))
        finally:
            one.stop()
            two.stop()


@postgres_only
def test_postgres_away_under_load_gives_503_and_ingest_resumes(tmp_path):
    import psycopg

    from tests.support.server import temporary_database

    with (
        temporary_database() as url,
        running_server(home=tmp_path, db_url=url, env={"AGENTX_RATE_LIMIT": "off"}) as server,
    ):
        name = url.rpartition("/")[2]
        load = Load([server])
        time.sleep(1.0)
        with psycopg.connect(os.environ["AGENTX_TEST_DB_URL"].rpartition("/")[0] + "/postgres", autocommit=True) as raw:
            raw.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
            for _ in range(10):
                raw.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
                time.sleep(0.2)
            raw.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')
        time.sleep(1.5)
        acknowledged = load.stop()
        assert load.codes == {200, 503}
        assert post(server, spanId="after").status_code == 200
        found, count = stored_ids(server)
        assert set(acknowledged) <= set(found) and len(found) == len(set(found)) == count
