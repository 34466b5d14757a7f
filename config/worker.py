"""`agentx-server worker`: runs background tasks and the schedule, in threads of one process.

As the embedded child (`--embedded`) it ends with its parent: the parent holds the other end of our standard input.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

logger = logging.getLogger("agentx.worker")

# How long a worker waits for a server to bring the schema up to date.
SCHEMA_WAIT_SECONDS = 600.0
BEAT_INTERVAL_SECONDS = 5.0
CATCH_UP_SECONDS = 60.0


def run(arguments: list[str]) -> int:
    """Work until told to stop; answers the exit code."""
    parser = argparse.ArgumentParser(prog="agentx-server worker", description="Run background work only.")
    parser.add_argument("--concurrency", type=int, default=2, help="Tasks at the same time. Default: 2.")
    parser.add_argument("--no-beat", action="store_true", help="Do not run the schedule in this worker.")
    parser.add_argument("--embedded", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.embedded:
        threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    os.environ["AGENTX_CHILD_PROCESS"] = "1"
    # The server has checked; importing every view for it would double this process's memory.
    os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
    from config.startup import setup_django

    setup_django()
    _wait_for_schema()
    from config.celery import app

    if not options.no_beat:
        app.steps["worker"].add(_beat_step())
        _catch_up()
    worker = _worker_class(app.Worker)(
        app=app,
        pool="threads",
        concurrency=max(1, options.concurrency),
        loglevel=logging.getLogger().getEffectiveLevel(),
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _worker_class(base: Any) -> Any:
    """Celery's worker with our stop signals, which say nothing on the terminal."""
    from celery.platforms import SecurityWarning
    from celery.worker import state

    # A container's only user may well be root.
    warnings.simplefilter("ignore", SecurityWarning)

    def finish(number: int, frame: Any) -> None:
        state.should_stop = 0

    class Worker(base):
        def install_platform_tweaks(self, worker: Any) -> None:
            signal.signal(signal.SIGTERM, finish)
            signal.signal(signal.SIGINT, finish)

    return Worker


def _catch_up() -> None:
    """Run the rare jobs soon after a start, too: an install that restarts often still gets its turn."""
    from django.conf import settings

    from apps.core.jobs import enqueue

    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        if entry["schedule"] >= 600:
            enqueue(entry["task"], countdown=CATCH_UP_SECONDS)


def _end_with_parent() -> None:
    """Read the pipe the parent never writes to; its end is the parent's end, and ours at once.

    No clean-up: unfinished tasks keep their rows and run again, which is what the leases are for.
    """
    while os.read(sys.stdin.fileno(), 1024):
        pass
    # An orderly stop closes the pipe too, after SIGTERM; give that a moment to finish by itself.
    time.sleep(0.5)
    os._exit(0)


def _wait_for_schema() -> None:
    from config.startup import StartError, applied_migrations, known_migrations

    deadline = time.monotonic() + SCHEMA_WAIT_SECONDS
    while not known_migrations() <= applied_migrations():
        if time.monotonic() >= deadline:
            raise StartError("the database is not migrated; start agentx-server on it first")
        time.sleep(1)


def _beat_step() -> Any:
    from celery import bootsteps
    from celery.beat import Service
    from django.db import DatabaseError, connections

    class BeatThread(bootsteps.StartStopStep):
        """The schedule in a thread of the worker; Celery's own embedded beat would be one more process.

        Several workers may run it: every scheduled task takes a database lease.
        """

        # Not the consumer: its start is the working itself and returns only at the end.
        requires = {"celery.worker.components:Pool"}

        def __init__(self, worker: Any, **kwargs: Any) -> None:
            self._service: Service | None = None
            self._stopping = threading.Event()
            super().__init__(worker, **kwargs)

        def start(self, worker: Any) -> None:
            threading.Thread(target=self._run, args=(worker.app,), name="beat", daemon=True).start()

        def stop(self, worker: Any) -> None:
            self._stopping.set()
            if self._service is not None:
                self._service.stop(wait=False)

        terminate = stop

        def _run(self, app: Any) -> None:
            while not self._stopping.is_set():
                self._service = Service(app, max_interval=BEAT_INTERVAL_SECONDS, scheduler_cls=app.conf.beat_scheduler)
                try:
                    self._service.start()
                except (DatabaseError, OSError) as error:
                    logger.warning("the schedule is interrupted and goes on shortly: %s", error)
                    connections.close_all()
                    self._stopping.wait(BEAT_INTERVAL_SECONDS)

    return BeatThread
