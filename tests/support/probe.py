"""A task that leaves files: `<name>.started`, and `<name>.done` once a file `go` is there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import shared_task


@shared_task
def slow_task(name: str) -> None:
    """Wait for the test's permission, at most a minute."""
    folder = Path(os.environ["AGENTX_PROBE_DIR"])
    (folder / f"{name}.started").touch()
    deadline = time.monotonic() + 60
    while not (folder / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    (folder / f"{name}.done").touch()
