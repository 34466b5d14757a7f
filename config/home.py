"""The home directory: config.json with the default project's key and the instance secret, and the start lock."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_config(home: Path) -> dict[str, Any]:
    """config.json as a dict; empty when the file is missing. Raises ValueError when it is not a JSON object."""
    path = home / "config.json"
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON ({error}). Repair or remove it.") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object. Repair or remove it.")
    return data


def update_config(home: Path, **values: Any) -> dict[str, Any]:
    """Merge values into config.json, replacing the file in one step, readable by its owner only."""
    home.mkdir(parents=True, exist_ok=True)
    current = read_config(home)
    data = current | values
    if data == current:
        return data
    handle, name = tempfile.mkstemp(dir=home, prefix=".config-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(name, home / "config.json")
    return data


def load_or_create_secret(home: Path) -> str:
    """The instance secret kept in config.json, made on first use."""
    secret = read_config(home).get("secret")
    if not isinstance(secret, str) or len(secret) < 32:
        secret = secrets.token_urlsafe(48)
        update_config(home, secret=secret)
    return secret


@contextlib.contextmanager
def home_lock(home: Path, *, timeout: float) -> Iterator[None]:
    """Hold the home's start lock, so that of several servers starting at once one prepares and the others wait.

    The lock is the kernel's and ends with its holder, however that ends. Raises TimeoutError after `timeout` seconds.
    """
    home.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    with (home / ".start.lock").open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"another server has been starting in {home} for {timeout:.0f} s") from None
                time.sleep(0.05)
        yield
