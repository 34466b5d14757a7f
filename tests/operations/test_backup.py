"""Backup and restore as docs/backup.md says: a hot copy under load opens clean, and copying it back restores all."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import threading
import urllib.error
import urllib.request

from tests.support.server import RunningServer, running_server


def call(server: RunningServer, path: str, body: dict | None = None) -> dict:
    request = urllib.request.Request(
        f"{server.api_url}{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"x-api-key": server.key, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def send(server: RunningServer, span_id: str) -> dict:
    return call(server, "/ingest/traces", {"name": "agent", "spanId": span_id, "input": "hello"})


def test_a_hot_copy_under_load_is_whole_and_restores_without_config_json(tmp_path):
    home, copy = tmp_path / "home", tmp_path / "backup.db"
    home.mkdir()
    with running_server(home=home, db_url="") as server:
        key = server.key
        before = [f"before-{number}" for number in range(30)]
        for span_id in before:
            send(server, span_id)
        stop = threading.Event()

        def load() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                with contextlib.suppress(urllib.error.URLError, ConnectionError):
                    send(server, f"during-{number}")

        sender = threading.Thread(target=load)
        sender.start()
        try:
            with (
                contextlib.closing(sqlite3.connect(home / "agentx.db")) as source,
                contextlib.closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target, pages=16)
        finally:
            stop.set()
            sender.join(30)
        assert server.stop() == 0

    with contextlib.closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copy(copy, restored / "agentx.db")
    with running_server(home=restored, db_url="") as server:
        # The same key, though config.json was not restored: the secret is in the database.
        assert server.key == key
        assert json.loads((restored / "config.json").read_text())["apiKey"] == key
        assert all(send(server, span_id)["deduped"] for span_id in before)


def test_the_database_is_in_wal_mode_and_survives_kill_9(tmp_path):
    with running_server(home=tmp_path, db_url="") as server:
        ids = [f"span-{number}" for number in range(20)]
        for span_id in ids:
            assert send(server, span_id)["deduped"] is False
        server.process.kill()
        server.process.wait(10)
    with contextlib.closing(sqlite3.connect(tmp_path / "agentx.db")) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with running_server(home=tmp_path, db_url="") as server:
        assert all(send(server, span_id)["deduped"] for span_id in ids)
