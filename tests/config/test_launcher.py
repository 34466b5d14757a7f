"""`agentx-trace-eval` of the published SDK starts this server, downloads nothing, and hands its signals on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.server import clean_environment, free_port, wait_for_exit

LAUNCHER = Path(sys.executable).parent / "agentx-trace-eval"
pytestmark = pytest.mark.skipif(not LAUNCHER.exists(), reason="needs agentx-python with its launcher")


def install(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "config.server", "install-launcher", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("version", [None, "latest", "v9.9.9"])
def test_the_sdks_launcher_runs_what_the_install_command_wrote(tmp_path, version):
    port = free_port()
    directory = tmp_path / "somewhere" / "bin"
    environment = clean_environment(
        tmp_path / "home",
        HOME=str(tmp_path),
        AGENTX_INSTALL_DIR=str(directory),
        AGENTX_HOST="127.0.0.1",
        AGENTX_OTLP_GRPC_PORT="0",
        AGENTX_WORKER="off",
        # A download would fail at once and be seen.
        HTTPS_PROXY="http://127.0.0.1:9",
        https_proxy="http://127.0.0.1:9",
    )
    if version:
        environment["AGENTX_TRACE_EVAL_VERSION"] = version
    result = install(environment, *(["--stamp", version] if version == "v9.9.9" else []))
    assert result.returncode == 0, result.stderr
    assert os.access(directory / "agentx-server", os.X_OK)
    del environment["PYTHONPATH"]
    process = subprocess.Popen(
        [str(LAUNCHER), "--port", str(port), "--upgrade"],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        healthy = False
        while not healthy and time.monotonic() < deadline and process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                    healthy = answer.status == 200
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        assert healthy
        process.terminate()
        assert wait_for_exit(process) == 0
        assert process.stdout is not None
        assert "Default project API key: agtx_local_" in process.stdout.read()
    finally:
        process.kill()
        process.wait(10)


def test_the_default_place_and_stamp_are_the_launchers(tmp_path):
    environment = clean_environment(tmp_path / "home", HOME=str(tmp_path))
    assert install(environment).returncode == 0
    from agentx.version import ENGINE_VERSION

    assert (tmp_path / ".agentx" / "bin" / ".version").read_text().strip() == ENGINE_VERSION


def test_a_directory_that_cannot_be_written_is_told_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    result = install(clean_environment(tmp_path, AGENTX_INSTALL_DIR=str(tmp_path / "file" / "bin")))
    assert result.returncode == 1
    assert result.stderr.startswith("agentx-server: cannot write to ")
    assert len(result.stderr.splitlines()) == 1
