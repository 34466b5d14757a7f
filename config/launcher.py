"""`agentx-server install-launcher`: make the SDK's `agentx-trace-eval` start this server (source sdk cli.py:187-250).

That launcher runs `<dir>/agentx-server` when `<dir>/.version` holds the release it wants. We put a small script there
that calls this very installation; nothing is downloaded, now or later.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

# The release that agentx-python 0.8.29 pins; with another SDK give --stamp, or set AGENTX_TRACE_EVAL_VERSION=latest.
SDK_PIN = "v0.3.32"


def install(arguments: list[str]) -> int:
    """Write the script and the stamp; answers the exit code."""
    parser = argparse.ArgumentParser(
        prog="agentx-server install-launcher",
        description="Let the SDK's agentx-trace-eval start this server instead of downloading one.",
    )
    parser.add_argument("--stamp", help=f"Release to stand for. Default: the installed SDK's pin, else {SDK_PIN}.")
    options = parser.parse_args(arguments)
    directory = Path(os.environ.get("AGENTX_INSTALL_DIR") or Path.home() / ".agentx" / "bin").expanduser()
    stamp = options.stamp or _pin_of_installed_sdk() or SDK_PIN
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _replace(directory / "agentx-server", _script(), mode=0o755)
        _replace(directory / ".version", stamp + "\n", mode=0o644)
    except OSError as error:
        print(f"agentx-server: cannot write to {directory}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"agentx-trace-eval now starts this server ({directory / 'agentx-server'}, stamped {stamp})")
    return 0


def _script() -> str:
    root = Path(__file__).resolve().parent.parent
    python = shlex.quote(sys.executable)
    # exec keeps the process id: signals reach the server itself.
    return (
        "#!/bin/sh\n"
        f'PYTHONPATH={shlex.quote(str(root))}"${{PYTHONPATH:+:$PYTHONPATH}}"; export PYTHONPATH\n'
        f'exec {python} -m config.server "$@"\n'
    )


def _pin_of_installed_sdk() -> str | None:
    try:
        from agentx.version import ENGINE_VERSION
    except ImportError:
        return None
    return str(ENGINE_VERSION)


def _replace(path: Path, text: str, *, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".agentx-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(name, mode)
    os.replace(name, path)
