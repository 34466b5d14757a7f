"""Loading the demo beside a running server: one load at a time, progress for the page that waits for it.

The load runs in a thread of the process that was asked and holds a lease, so two clicks, two processes or a click
during `--demo` load once. Progress lies in the database, where every process can read it. A load whose process died
is finished by asking again.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import asdict, dataclass

from django.db import connections

from apps.core import leases
from apps.core.models import InstanceSetting
from apps.core.times import now_ms
from apps.operations.demo.build import EXPECTED_SPANS, build_demo, demo_project, ensure_demo_project, store_trace
from apps.operations.demo.history import conversation
from apps.operations.demo.scripts import cast
from apps.projects.models import Project
from apps.tracing.ingest.errors import QueueFull, StorageUnavailable

logger = logging.getLogger(__name__)

_LEASE = "demo"
_LEASE_SECONDS = 60.0
_SETTING = "demo.progress"
_STALE_MS = 60_000
# How long the trickle of live traces may go on, and the pauses between them.
MAX_LIVE_MINUTES = 240
_LIVE_PAUSE_SECONDS = (1.5, 7.0)


@dataclass(frozen=True, slots=True)
class DemoProgress:
    """Where a load stands. `state`: `idle` (never asked), `running`, `done` or `failed`; `percent` is 0 to 100.

    `project_id` is the wire id of the demo project once it exists; `error` says in words why a load failed.
    """

    state: str = "idle"
    percent: int = 0
    spans: int = 0
    project_id: str | None = None
    error: str | None = None
    updated_ms: int = 0

    @property
    def running(self) -> bool:
        """Whether a load is under way; one that has been silent for a minute is taken for dead."""
        return self.state == "running" and now_ms() - self.updated_ms < _STALE_MS


def demo_progress() -> DemoProgress:
    """The progress of the latest load. One query."""
    setting = InstanceSetting.objects.filter(key=_SETTING).first()
    return DemoProgress(**setting.value) if setting else DemoProgress()


def start_demo(*, live_minutes: float = 0) -> DemoProgress:
    """Begin to load the demo in the background and return at once; a load under way is left alone.

    With `live_minutes` fresh traces keep trickling in for so long afterwards, so that live pages have something to
    show; at most four hours.
    """
    progress = demo_progress()
    if progress.running:
        return progress
    project = ensure_demo_project()
    progress = _note(DemoProgress(state="running", project_id=project.uid))
    minutes = min(max(live_minutes, 0), MAX_LIVE_MINUTES)
    threading.Thread(target=_in_thread, args=(project, minutes), name="demo", daemon=True).start()
    return progress


def load_demo(*, live_minutes: float = 0) -> DemoProgress:
    """The same in the calling thread: returns when everything is loaded. Raises nothing; a failure is in the answer."""
    project = ensure_demo_project()
    return _load(project, min(max(live_minutes, 0), MAX_LIVE_MINUTES))


def _in_thread(project: Project, live_minutes: float) -> None:
    try:
        _load(project, live_minutes)
    finally:
        connections.close_all()


def _load(project: Project, live_minutes: float) -> DemoProgress:
    with leases.held(_LEASE, seconds=_LEASE_SECONDS) as lease:
        if lease is None:
            return demo_progress()

        def tell(spans: int) -> None:
            lease.renew()
            percent = min(99, spans * 100 // EXPECTED_SPANS)
            _note(DemoProgress("running", percent, spans, project.uid))

        try:
            result = build_demo(project=project, on_progress=tell)
        except (QueueFull, StorageUnavailable) as error:
            logger.warning("the demo could not be loaded: %s", error)
            return _note(DemoProgress("failed", project_id=project.uid, error=str(error)))
        progress = _note(DemoProgress("done", 100, result.spans, project.uid))
    if live_minutes > 0:
        trickle(project, seconds=live_minutes * 60)
    return progress


def trickle(project: Project, *, seconds: float, rng: random.Random | None = None) -> int:
    """Store one fresh conversation turn after another, every few seconds, for so long; returns how many traces.

    Ends early when the demo project is deleted or the store refuses a trace.
    """
    rng = rng or random.Random()
    end = time.monotonic() + seconds
    scripts = [script for script in cast() if not script.imported]
    stored = 0
    while time.monotonic() < end:
        script = rng.choices(scripts, [script.share for script in scripts])[0]
        began = now_ms() - rng.randint(1_000, 4_000)
        for trace in conversation(rng, script, began, not_after_ms=began):
            if demo_project() is None:
                return stored
            try:
                store_trace(project, trace.spans)
            except (QueueFull, StorageUnavailable) as error:
                logger.warning("the live demo stops: %s", error)
                return stored
            stored += 1
        time.sleep(min(rng.uniform(*_LIVE_PAUSE_SECONDS), max(0.0, end - time.monotonic())))
    return stored


def _note(progress: DemoProgress) -> DemoProgress:
    progress = DemoProgress(**{**asdict(progress), "updated_ms": now_ms()})
    InstanceSetting.objects.update_or_create(key=_SETTING, defaults={"value": asdict(progress)})
    return progress
