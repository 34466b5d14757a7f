"""The home directory: config.json with the default project's key and the instance secret."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
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
    data = read_config(home) | values
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
